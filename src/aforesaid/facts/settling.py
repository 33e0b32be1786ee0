"""Decides what a told value does to known ones: it repeats, completes, corrects, replaces or ends them.

What is open (lost, waited for, out of order) ends with what closes it, and what passes lapses when it is not mentioned
for long, while the person goes on telling.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

from aforesaid.domain.caches import holds_texts
from aforesaid.domain.memory import ENDED, INSTRUCTION, LAPSED, PASSED, MemoryDraft, MemoryRecord
from aforesaid.domain.message import Message
from aforesaid.extras import re
from aforesaid.facts.candidate import Candidate, statement_in
from aforesaid.facts.people import Person
from aforesaid.facts.statement import name_stems, statement
from aforesaid.facts.values import LIVING, SINGLE, adds, alike, only_titles, pattern, same_value, says_move, touches
from aforesaid.text.languages import guess_language
from aforesaid.text.sentences import begins_with_pronoun, is_question, length_in_words, split_sentences
from aforesaid.text.words import fold, words_of

_OPPOSITE: Final = {"like": "dislike", "dislike": "like", "hobby": "dislike"}
SURE: Final = 0.6
"""Least confidence of a value that takes the place of another one."""
_CORRECTED: Final = 20
"""Messages in which something was said that a correction may mean without naming it."""

_REMAINS_OPEN: Final = timedelta(days=45)
"""How long an open matter counts as open after its last mention."""
_POINTED_AT: Final = timedelta(days=14)
"""How old an open matter may be that a sentence such as "They found it" closes."""
_SHORT: Final = 9
"""Maximum words of a sentence that may mean something open without naming it."""
_LAPSES: Final = {"event": timedelta(days=30), "condition": timedelta(days=60)}
"""How long an event without a date, and an illness that passes, are current."""
_LEAST_LAPSE: Final = min(_LAPSES.values())
_PLAIN: Final = 0.75
"""Confidence below which a quote"""
_QUOTE_LAPSES: Final = timedelta(days=180)
"""lapses after this time."""
_PLAIN_LAPSES: Final = timedelta(days=365)
"""When others lapse. What lasts becomes a value; what was said in passing tells of its day."""
_AFTERWARDS: Final = timedelta(days=1)
"""How long what was to come is current after its date."""
_KEPT_OTHERWISE: Final = frozenset({"reminder", "task"})
"""Categories whose memories are done or expire for themselves."""
_CLAUSES: Final = re.compile(r"[,;:()–—]+\s|\s-\s")

_CACHED: Final = 4_096

Known = MemoryDraft | MemoryRecord


class Over(NamedTuple):
    """Something known that is over, without a value that says so."""

    known: Known
    since: datetime
    reason: str


class Settled(NamedTuple):
    """What a told value does to others."""

    repeats: Known | None = None
    """The one that says it already."""
    replaces: tuple[Known, ...] = ()
    """Those in whose place it comes."""
    ends: tuple[Known, ...] = ()
    """Those that are over, without anything in their place."""
    is_stored: bool = True


def settle(candidate: Candidate, known: Sequence[Known], language: str) -> Settled:
    """Return what a candidate with a matter does to the active values of the same speaker.

    `known` are those said before, the oldest first, of any matter.
    """
    ours = [each for each in known if each.subject == candidate.subject]
    value = candidate.value
    if candidate.holds == "over":
        return _ended(candidate, ours, known, language)
    assert value is not None  # noqa: S101 - what holds has a value
    opposite = [
        each
        for each in known
        if each.subject == _with_matter(candidate, _OPPOSITE.get(candidate.matter or ""))
        and (same_value(_value(each), value, language) or same_value(value, _value(each), language))
    ]
    if candidate.matter == "diet" and pattern("meat").search(value):
        # "I eat meat again": the person is no vegetarian any more.
        return Settled(ends=tuple(each for each in ours if pattern("diet").search(_value(each))), is_stored=False)
    if candidate.matter == "home" and says_move(candidate.quote):
        opposite += _left(candidate, known, language)
    same = next((each for each in ours if _repeats(candidate, each, language)), None)
    if same is not None:
        return Settled(repeats=same, ends=tuple(opposite), is_stored=False)
    # The dentist of last month stays; that of next week was moved.
    less = [each for each in ours if same_value(_value(each), value, language) and not _is_over(each, candidate)]
    refined, others = less, [each for each in ours if each not in less]
    if candidate.corrects and not less and others and candidate.matter not in SINGLE:
        less = _corrected(candidate, others)
    elif _takes_the_place(candidate, less, language):
        less = [*less, *(each for each in others if candidate.matter != "diet" or pattern("diet").search(_value(each)))]
    if len(less) > len(refined) and (candidate.confidence or 0.0) < SURE and not candidate.corrects:
        # What is not sure takes the place of nothing.
        return Settled(is_stored=False)
    return Settled(replaces=tuple(less), ends=tuple(opposite))


def is_doubtful(candidate: Candidate) -> bool:
    """Return whether a value is not sure enough to be known after one message. Allergies are: missing one does harm."""
    sure = candidate.matter in {None, "allergy"} or candidate.confidence is None
    return not sure and (candidate.confidence or 0.0) < SURE


def ended(memory: MemoryRecord, candidate: Candidate) -> MemoryRecord:
    """Return a memory that is over since a candidate was said."""
    at = max(memory.valid_from, candidate.said)
    return replace(memory, state="expired", active=False, valid_to=at, reason=ENDED)


def as_past(draft: MemoryDraft, candidate: Candidate) -> MemoryDraft:
    """Return a draft of a value that was over already when it was told."""
    return replace(draft, state="expired", valid_to=candidate.said, reason=ENDED)


def over_by(messages: Sequence[Message], known: Sequence[Known], person: Person) -> Iterator[Over]:
    """Return which active memories of a person are over by what the person says, or does not mention any more.

    "They found it" closes what was lost shortly before; a sentence that names something open closes that.
    """
    said = [each for each in messages if each.role == "user" and each.author == person.id and not each.replaced]
    own = [each for each in known if each.state == "active" and each.speaker in {None, person.id}]
    over: dict[int, Over] = {}
    for message in sorted(said, key=lambda each: each.seq) if own else ():
        for sentence in split_sentences(statement_in(message)):
            closes = not is_question(sentence) and any(map(_closes, _CLAUSES.split(sentence)))
            meant = _meant(sentence, message, filter(_is_open, own), person) if closes else []
            over |= {id(each): Over(each, message.at, ENDED) for each in meant}
    yield from over.values()
    if not said:
        return
    newest = max(each.at for each in said)
    for each in own:
        if id(each) in over:
            continue
        if _has_passed(each, newest):
            assert each.event is not None  # noqa: S101 - what has passed has a date
            yield Over(each, each.event.end, PASSED)
            continue
        if newest - _seen(each) <= _LEAST_LAPSE:
            continue
        if (kept := _kept(each)) is not None and newest - _seen(each) > kept:
            yield Over(each, _seen(each) + kept, LAPSED)


def _meant(sentence: str, message: Message, opened: Iterable[Known], person: Person) -> list[Known]:
    """Return what a sentence that closes something means: what it names, or what was open shortly before."""
    before = [each for each in opened if each.sources and max(each.sources) < message.seq]
    words, language = _things(sentence, person), guess_language(sentence)
    named = [
        each
        for each in before
        if any(alike(one, other, language) for one in words for other in _things(each.text, person))
    ]
    if named or not before or length_in_words(sentence) > _SHORT:
        return named
    newest = max(before, key=lambda each: max(each.sources))
    points = begins_with_pronoun(sentence, language) or not words
    return [newest] if points and message.at - _seen(newest) <= _POINTED_AT else []


def _closes(clause: str) -> bool:
    """Return whether a clause says that something open is over: "it arrived", but not "it has not arrived"."""
    found = pattern("closed").search(clause)
    if found is None or pattern("not").search(clause):
        return False
    return pattern("nothing").search(clause, 0, found.start()) is None


def _things(text: str, person: Person) -> frozenset[str]:
    """Return the stems of the words that say what something is about, without those for being open or closed."""
    said = [found[0] for name in ("open", "closed") for found in pattern(name).finditer(text)]
    without = {stem for each in said for stem in statement(each).words}
    return statement(text, person.names).words - name_stems(person.names) - without


def _is_open(each: Known) -> bool:
    is_note = each.matter is None and each.trust != "stated" and each.kind != INSTRUCTION
    return is_note and each.category in {"fact", "other"} and _says_open(each.text)


@holds_texts
@lru_cache(_CACHED)
def _says_open(text: str) -> bool:
    return pattern("open").search(text) is not None


def _has_passed(each: Known, now: datetime) -> bool:
    """Return whether something was to come when it was told, and its date is over."""
    if each.event is None or each.trust == "stated" or each.kind == INSTRUCTION or each.category in _KEPT_OTHERWISE:
        return False
    return each.event.end > _seen(each) and each.event.end + _AFTERWARDS < now


def _kept(each: Known) -> timedelta | None:
    """Return how long something is current without being mentioned; None for always."""
    if each.trust == "stated" or (isinstance(each, MemoryRecord) and each.times > 1):
        return None
    if each.matter is not None:
        passes = each.event is None if each.matter == "event" else pattern("passing").search(each.value or "")
        return _LAPSES.get(each.matter) if passes else None
    if _is_open(each):
        return _REMAINS_OPEN
    if each.category != "fact" or each.kind == INSTRUCTION or each.confidence is None:
        return None
    return _QUOTE_LAPSES if each.confidence < _PLAIN else _PLAIN_LAPSES


def _seen(each: Known) -> datetime:
    at = each.seen_at if isinstance(each, MemoryRecord) else each.valid_from
    assert at is not None  # noqa: S101 - what is learned has the time of its message
    return at


def _ended(candidate: Candidate, ours: Sequence[Known], known: Sequence[Known], language: str) -> Settled:
    value = candidate.value
    if value is None:
        if candidate.matter not in SINGLE and len(ours) > 1:
            ours = ours[-1:] if candidate.matter == "event" else []
        return Settled(ends=tuple(ours), is_stored=False)
    living: list[Known] = []
    if candidate.matter in LIVING:
        # An "ex" was somebody's partner, and who has died may be called by the name alone.
        pets = (
            candidate.matter == "pet",
            candidate.matter == "pet" or pattern("died").search(candidate.quote) is not None,
        )
        living = [each for each in known if each.matter in LIVING and _about(each) == _about(candidate)]
        ours = [each for each in living if (each.matter == "pet") in pets]
    touched = [each for each in ours if touches(_value(each), value, language)]
    if not touched and candidate.matter in LIVING and not only_titles(value, language):
        # "We said goodbye to Monty": a name says enough.
        touched = [each for each in living if touches(_value(each), value, language)]
    if not touched and only_titles(value, language):
        own = [each for each in ours if each.matter == candidate.matter]
        touched = own if len(own) == 1 else []
    if candidate.matter in LIVING:
        # What was known about them is over as well.
        whose = {fold(_value(each)) for each in touched}
        touched += [each for each in known if _about(each) in whose]
    return Settled(ends=tuple(touched), is_stored=not touched)


def _repeats(candidate: Candidate, known: Known, language: str) -> bool:
    moved = candidate.event is not None and known.event != candidate.event
    # "The gym is on Thursdays now"
    moved |= candidate.matter == "event" and candidate.text.endswith(")") and candidate.text != known.text
    return not moved and same_value(candidate.value or "", _value(known), language)


def _takes_the_place(candidate: Candidate, less: Sequence[Known], language: str) -> bool:
    if candidate.matter == "diet":
        return pattern("diet").search(candidate.value or "") is not None
    if candidate.matter == "boss":
        return pattern("now").search(candidate.quote.partition(candidate.value or "")[0]) is not None
    if candidate.matter not in SINGLE:
        return False
    return bool(less) or not adds(candidate.quote, language)


def _corrected(candidate: Candidate, others: Sequence[Known]) -> list[Known]:
    """Return what a correction means: what it names, or else what was said last."""
    words = set(words_of(candidate.sources[-1].text))
    named = [each for each in others if words & set(words_of(_value(each)))]
    if named:
        return named[-1:]
    near = [each for each in others if each.sources and max(each.sources) >= candidate.last - _CORRECTED]
    return near[-1:]


def _left(candidate: Candidate, known: Sequence[Known], language: str) -> list[Known]:
    """Return the addresses of who moved that are not at the new home."""
    address = _with_matter(candidate, "address")
    return [
        each
        for each in known
        if each.subject == address
        and (not each.sources or max(each.sources) < candidate.last)
        and not same_value(candidate.value or "", _value(each), language)
    ]


def _is_over(each: Known, candidate: Candidate) -> bool:
    return each.event is not None and each.event.end <= candidate.said


def _with_matter(candidate: Candidate, matter: str | None) -> str | None:
    if matter is None or candidate.subject is None:
        return None
    whose, separator, _ = candidate.subject.rpartition(": ")
    return f"{whose}{separator}{matter}"


def _about(each: Known | Candidate) -> str:
    return (each.subject or "").rpartition(": ")[0]


def _value(each: Known) -> str:
    return each.value or ""
