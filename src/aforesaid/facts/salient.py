"""Candidates that the salience model finds: what a message says, in a form that can be understood later.

A statement keeps its words: it is quoted with the name of its speaker. English sentences are put into the third person
where that is safe. What cannot be understood alone ("Yes, there") is quoted with the message that it answers, or left
out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Final, NamedTuple

from aforesaid.domain.clock import to_zone
from aforesaid.domain.literals import Category, Kind
from aforesaid.domain.memory import CATEGORY_OF, KINDS, Event
from aforesaid.domain.message import Message
from aforesaid.facts.candidate import Candidate, among_people, by_rules, statement_in
from aforesaid.facts.people import Person, by_id
from aforesaid.facts.suspicion import suspicion
from aforesaid.models.embed import Embedder
from aforesaid.models.embed.message_vectors import MessageVectors
from aforesaid.models.offline import is_joke, may_hold_requests, reads_like_an_attack, third_person
from aforesaid.models.offline.memories.extract import written_time
from aforesaid.models.salience import Judgement, load_salience
from aforesaid.store import Store
from aforesaid.text.languages import guess_language
from aforesaid.text.openers import without_opener
from aforesaid.text.pointing import points_elsewhere
from aforesaid.text.scripts import UNSPACED_LANGUAGES
from aforesaid.text.sentences import is_question, length_in_words, split_sentences
from aforesaid.text.stop_words import stop_words
from aforesaid.text.times.find import When, find_times
from aforesaid.text.vocabulary import vocabulary
from aforesaid.text.words import words_of

SALIENCE: Final = "salience/1"
"""The version of this extractor."""
_LONGEST: Final = 400
"""Maximum characters of quoted words. Longer messages become several memories."""
_LONGEST_QUESTION: Final = 160
"""Maximum characters of the message that an answer is quoted with."""
_MOST_PARTS: Final = 4
"""Maximum memories of one message."""
_ENOUGH_WORDS: Final = 4
"""Content words that a statement needs to be understood alone."""
_LEAST_WORDS: Final = 2
"""Content words that a statement needs to be remembered at all, without the message that it answers."""
_COVERED: Final = 0.5
"""Share of a sentence's words in a rule's finding from which the sentence is not quoted again."""
_DAY: Final = timedelta(days=1)
_CATEGORIES: Final[Mapping[Kind, Category]] = {**CATEGORY_OF, "reminder": "task"}
"""The category of each kind. Only a rule makes a reminder: one that was guessed must not ring."""


class Judge:
    """Judges the messages of users with the vectors that the store has, or that the encoder makes."""

    def __init__(self, store: Store, encoder: Embedder) -> None:
        """Make missing vectors with `encoder`, the built-in one."""
        self.vectors = MessageVectors(store, encoder)

    async def judge(self, messages: Sequence[Message]) -> dict[int, Judgement]:
        """Return the judgement of each message of a person, by sequence number.

        Raises ModelError if the encoder does not answer.
        """
        said = [message for message in messages if message.role == "user" and message.text.strip()]
        if not said:
            return {}
        vectors = await self.vectors.of(said)
        # In a thread, since reading many texts would block the event loop.
        judgements = await asyncio.to_thread(lambda: load_salience().judge([each.text for each in said], vectors))
        return {message.seq: each for message, each in zip(said, judgements, strict=True)}


class _Quoted(NamedTuple):
    """Words of a message that become a memory."""

    words: str
    answers: Message | None
    """The message that they are quoted with."""


def by_salience(
    messages: Sequence[Message],
    before: Sequence[Message],
    judgements: Mapping[int, Judgement],
    people: Mapping[str, Person],
    owner: Person,
    zone: tzinfo,
) -> list[Candidate]:
    """Return the candidates in messages. `before` are earlier messages of the same user, which they may answer."""
    by_message: dict[int, list[Candidate]] = {}
    for candidate in by_rules(messages, people, owner, zone):
        by_message.setdefault(candidate.last, []).append(candidate)
    with_assistant = not among_people([*before, *messages], owner)
    last: dict[str, Message] = {message.thread: message for message in before}
    found: list[Candidate] = []
    for message in messages:
        judgement = judgements.get(message.seq)
        ruled = by_message.get(message.seq, [])
        worth = judgement is not None and judgement.worth_remembering
        kept = [_judged(each, judgement) for each in ruled if _is_kept(each, worth=worth)]
        found += kept
        if judgement is not None and worth:
            previous = _answered(message, last.get(message.thread))
            for quoted in _quoted(message, previous, kept, by_id(people, message.author)):
                own = with_assistant and message.author == owner.id
                found.append(_candidate(message, quoted, judgement, people, zone, to_assistant=own))
        last[message.thread] = message
    return found


def in_own_words(
    message: Message,
    before: Sequence[Message],
    kind: Kind,
    importance: int,
    people: Mapping[str, Person],
    owner: Person,
    zone: tzinfo,
) -> list[Candidate]:
    """Return what a message says as candidates, where something else judged it worth remembering."""
    judgement = Judgement(0.0, importance, tuple(float(each == kind) for each in KINDS))
    return by_salience([message], before, {message.seq: judgement}, people, owner, zone)


def _answered(message: Message, previous: Message | None) -> Message | None:
    """Return the message that another one may answer: the one before it, by somebody else, in the same session."""
    if previous is None or previous.session != message.session or not previous.text.strip():
        return None
    return previous if (previous.role, previous.author) != (message.role, message.author) else None


def _is_kept(candidate: Candidate, *, worth: bool) -> bool:
    """Return whether a rule's finding is used. Tasks and events are used only if their message is worth remembering."""
    if candidate.category in {"task", "other"}:
        return worth and candidate.subject is not None
    return True


def _judged(candidate: Candidate, judgement: Judgement | None) -> Candidate:
    """Return a rule's finding with the confidence of the model, and as a relationship if it is one."""
    if judgement is None:
        return candidate
    related = candidate.category == "fact" and candidate.event is None and judgement.kind == "relationship"
    return candidate._replace(confidence=judgement.confidence, kind="relationship" if related else candidate.kind)


def _quoted(message: Message, previous: Message | None, ruled: Sequence[Candidate], speaker: Person) -> list[_Quoted]:
    """Return the words of a message to remember, in pieces of a limited length; none if they say too little."""
    text = statement_in(message)
    language = guess_language(text)
    sentences = split_sentences(text)
    wanted = [not is_question(sentence) for sentence in sentences]
    telling = [want and _content(each, language) > 0 for want, each in zip(wanted, sentences, strict=True)]
    if is_joke(text) or True not in telling:
        return []
    uncovered = [
        sentence
        for tells, sentence in zip(telling, sentences, strict=True)
        if tells and not any(_covers(candidate, sentence) for candidate in ruled)
    ]
    if ruled and _content(" ".join(uncovered), language) < _ENOUGH_WORDS:
        return []
    first, end = telling.index(True), len(telling) - telling[::-1].index(True)
    parts = _joined(sentences[first:end], wanted[first:end])
    parts[0] = without_opener(parts[0], vocabulary(language), words_of(speaker.name))
    content = _content(" ".join(parts), language)
    alone = content >= _ENOUGH_WORDS and not points_elsewhere(parts[0], language)
    answers = None if alone else previous
    if answers is None and content < _LEAST_WORDS:
        return []
    return [_Quoted(part, answers if number == 0 else None) for number, part in enumerate(parts[:_MOST_PARTS])]


def _joined(sentences: Sequence[str], wanted: Sequence[bool]) -> list[str]:
    """Join sentences to texts of limited length, with an ellipsis in the place of each one that is left out."""
    parts = [""]
    gap = False
    for sentence, want in zip(sentences, wanted, strict=True):
        if not want:
            gap = True
            continue
        if parts[-1] and len(parts[-1]) + len(sentence) > _LONGEST:
            parts.append(sentence)
        else:
            parts[-1] += (" … " if gap else " ") * bool(parts[-1]) + sentence
        gap = False
    return parts


def _covers(candidate: Candidate, sentence: str) -> bool:
    quoted, said = set(words_of(candidate.quote)), set(words_of(sentence))
    return bool(quoted) and quoted <= said and len(quoted) >= _COVERED * len(said)


def _content(text: str, language: str) -> float:
    """Return the number of words that carry information."""
    if language in UNSPACED_LANGUAGES:
        return length_in_words(text) / 2
    lists = vocabulary(language)
    dull = stop_words(language) | lists.dull | lists.small_talk
    return len({word for word in words_of(text) if word not in dull})


def _candidate(
    message: Message,
    quoted: _Quoted,
    judgement: Judgement,
    people: Mapping[str, Person],
    zone: tzinfo,
    *,
    to_assistant: bool,
) -> Candidate:
    speaker = by_id(people, message.author)
    when = _time_in(quoted.words, to_zone(message.at, zone))
    kind = _kind(judgement, quoted.words, message, when, to_assistant=to_assistant)
    text = _text(quoted, speaker, people)
    if when is not None and str(when.start.year) not in quoted.words:
        text = f"{text.rstrip('.')} ({written_time(when)})."
    return Candidate(
        category=_CATEGORIES[kind],
        text=text,
        importance=judgement.importance,
        sources=(message,) if quoted.answers is None else (quoted.answers, message),
        speaker=speaker,
        subject=None,
        event=None if when is None else Event(when.start, when.end, when.timed),
        replaces=None,
        extractor=SALIENCE,
        quote=quoted.words,
        request=kind == "instruction",
        kind=kind,
        confidence=judgement.confidence,
    )


def _time_in(words: str, said: datetime) -> When | None:
    """Return the time that words name; None if they name several, or an hour of the same day, as in "open until 5"."""
    times = find_times(words, said, "nearest")
    if len(times) != 1 or (times[0].timed and times[0].start.date() == said.date()):
        return None
    return times[0]


def _kind(judgement: Judgement, words: str, message: Message, when: When | None, *, to_assistant: bool) -> Kind:
    """Return the kind of a statement. What names a time is an event, unless it is an appointment or a task to come."""
    if judgement.is_likely("instruction"):
        own = to_assistant and may_hold_requests(message.text)
        if own and suspicion(words) is None and not reads_like_an_attack(words):
            return "instruction"
    kind = judgement.kind
    exact = when is not None and when.end - when.start <= _DAY
    if kind == "instruction" or (kind == "schedule" and not exact):
        kind = "fact"
    if when is not None and (when.end <= message.at or kind == "fact"):
        return "event"
    return "task" if kind == "reminder" else kind


def _text(quoted: _Quoted, speaker: Person, people: Mapping[str, Person]) -> str:
    if quoted.answers is not None:
        asked = by_id(people, quoted.answers.author).name if quoted.answers.role == "user" else "Assistant"
        return f'{asked}: "{_beginning(quoted.answers.text)}" {speaker.name}: "{quoted.words}"'
    if len(split_sentences(quoted.words)) == 1 and guess_language(quoted.words) == "english":
        turned = third_person(quoted.words, speaker.name)
        if turned is not None:
            return turned if not turned[-1].isalnum() else f"{turned}."
    return f'{speaker.name}: "{quoted.words}"'


def _beginning(text: str) -> str:
    """Return what is quoted of a message that was answered: its last question, or its beginning."""
    sentences = split_sentences(text)
    asked = [sentence for sentence in sentences if is_question(sentence)]
    shown = asked[-1] if asked else " ".join(sentences)
    return shown if len(shown) <= _LONGEST_QUESTION else f"{shown[:_LONGEST_QUESTION].rsplit(' ', 1)[0]} …"
