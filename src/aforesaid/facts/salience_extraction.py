"""Candidates that the salience model finds: what a message says, in a form that can be understood later.

A statement keeps its words: it is quoted with the name of its speaker. English sentences are put into the third person
where that is safe. The text holds words of the speaker alone: what cannot be understood without their last message ("He
has a test") is quoted with it. Where they answer somebody else, that message is a source: what the assistant or another
person said is evidence, and nothing that is known about the speaker. What says too little without it ("Yes, there") is
left out. What answers another user must be clearer, since their message cannot be a source of this user's memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta, tzinfo
from types import MappingProxyType
from typing import Final, NamedTuple

from aforesaid.domain.checks import Category, Kind, to_zone
from aforesaid.domain.memory import CATEGORY_OF, KINDS, Event
from aforesaid.domain.message import Message, in_time_order
from aforesaid.extras import re
from aforesaid.facts.candidate import Candidate, among_people, by_rules, statement_in
from aforesaid.facts.people import Person, by_id, subject_of
from aforesaid.facts.timing import told_time
from aforesaid.models.offline import is_joke, may_ask, third_person
from aforesaid.models.offline.memories.extract import written_time
from aforesaid.models.offline.memories.keys import claim_of
from aforesaid.models.salience import PLAIN_WORDS, Judgement
from aforesaid.text.languages import guess_language, stop_words, vocabulary
from aforesaid.text.relations import mentioned_people
from aforesaid.text.sentences import (
    POLITE,
    begins_with_anaphor,
    begins_with_pronoun,
    is_about_somebody,
    is_question,
    length_in_words,
    split_sentences,
    without_opener,
)
from aforesaid.text.times.find import When
from aforesaid.text.words import UNSPACED_LANGUAGES, words_of

_MOST_WORDS: Final = 40
"""Maximum words of a message whose parts are judged. Longer ones tell a story."""
_STOPS: Final = ".!…。！।"
_CLAUSE: Final = re.compile(r"\s*[,;:،]\s+|\s*[，；、،]\s*|\s+[–—-]+\s+")


class PlainPart(NamedTuple):
    """A part of a message that is worth remembering by itself."""

    words: str
    judgement: Judgement


def parts_of(text: str) -> list[str]:
    """Return the sentences and clauses of a message that may be plain statements. None unless it asks for something."""
    if length_in_words(text) > _MOST_WORDS:
        return []
    sentences = split_sentences(text)
    if not (POLITE.search(text) or any(map(is_question, sentences))) or is_joke(text):
        return []
    return list(dict.fromkeys(_plain_parts(sentences, text)))


def _plain_parts(sentences: list[str], text: str) -> Iterator[str]:
    language = guess_language(text)
    words = vocabulary(language)
    for sentence in sentences:
        asks = is_question(sentence)
        clauses = [clause for clause in _CLAUSE.split(sentence) if clause]
        # What a question asks for comes last: "I'm vegetarian, what can I cook?"
        found = [clause for clause in (clauses[:-1] if asks else clauses) if POLITE.search(clause) is None]
        if not asks and len(found) == len(clauses):
            found = [sentence]
        for each in found:
            part = without_opener(each, words, ())
            alone = not begins_with_anaphor(part, language) and not begins_with_pronoun(part, language)
            if _LEAST_WORDS <= length_in_words(part) <= PLAIN_WORDS and not is_question(part) and alone:
                # The model has learned from whole sentences.
                yield part if part[-1] in _STOPS else part + ("。" if language in UNSPACED_LANGUAGES else ".")


SALIENCE: Final = "salience/2"
"""The version of this extractor."""
_LONGEST: Final = 400
"""Maximum characters of quoted words. Longer messages become several memories."""
_MOST_PARTS: Final = 4
"""Maximum memories of one message."""
_LONGEST_BEFORE: Final = 160
"""Maximum characters that are quoted of the same person's message before."""
_ENOUGH_WORDS: Final = 4
"""Content words that a statement needs to be understood alone."""
_LEAST_WORDS: Final = 2
"""Content words that a statement needs to be remembered at all."""
_MUCH_MORE: Final = 6
"""Content words beside its values from which a sentence is quoted too."""
_COVERED: Final = 0.5
"""Share of a sentence's words in what rules found from which the sentence is not quoted again."""
_SHORT: Final = 40
"""Characters of a message up to which rules look for plain statements even if it does not seem worth remembering."""
_BY_RULES: Final = frozenset[Category]({"fact", "preference", "schedule", "reminder"})
_REMINDERS: Final = frozenset[Category]({"reminder"})
_DIGITS: Final = re.compile(r"\d+")
_DAY: Final = timedelta(days=1)
_CATEGORIES: Final[Mapping[Kind, Category]] = {**CATEGORY_OF, "reminder": "task"}
"""The category of each kind. Only a rule makes a reminder: one that was guessed must not ring."""


class _Quoted(NamedTuple):
    """Words of a message that become a memory."""

    words: str
    answers: Message | None
    """The message before them, where they do not stand alone: a source, which is quoted if the same person wrote it."""


def by_salience(
    messages: Sequence[Message],
    before: Sequence[Message],
    judgements: Mapping[int, Judgement],
    people: Mapping[str, Person],
    owner: Person,
    zone: tzinfo,
    others: Sequence[Message] = (),
    parts: Mapping[int, Sequence[PlainPart]] = MappingProxyType({}),
    told: Sequence[Candidate] = (),
) -> list[Candidate]:
    """Return the candidates in messages of one user.

    `before` are earlier messages of the user, and `others` messages of other users in the same channels. Messages may
    answer both, but only the user's own are sources. `parts` are plain statements in messages to the assistant that are
    not worth remembering as a whole, by sequence number. `told` are the values that the messages tell: a sentence that
    says little more is not quoted.
    """
    by_message: dict[int, list[Candidate]] = {}
    for candidate in told:
        by_message.setdefault(candidate.last, []).append(candidate)
    dated = {candidate.last for candidate in told if candidate.event is not None}
    previous = _previous(messages, [*before, *others])
    with_assistant = not among_people([*before, *others, *messages], owner)
    worth = {message.seq for message in messages if _worth(message, judgements, previous)}
    only = {message.seq: _ruled(message, worth=message.seq in worth) for message in messages}
    for candidate in by_rules(messages, people, owner, zone, only, with_assistant=with_assistant):
        asked = candidate.request or candidate.category == "reminder"
        # "He has a test" is quoted below, with the message that says who he is.
        if not asked and (candidate.category != "schedule" or candidate.last in dated):
            continue
        if asked or not begins_with_pronoun(candidate.quote, guess_language(candidate.quote)):
            by_message.setdefault(candidate.last, []).append(candidate)
    found: list[Candidate] = []
    for message in messages:
        judgement = judgements.get(message.seq)
        ruled = by_message.get(message.seq, [])
        found += [each if each.matter is not None else _judged(each, judgement) for each in ruled]
        if judgement is not None and message.seq in worth:
            speaker = by_id(people, message.author)
            answered = previous.get(message.seq)
            for quoted in _quoted(message, answered, ruled, speaker, judgement):
                candidate = _candidate(message, quoted, judgement, people, owner, zone)
                found.append(candidate._replace(about=_meant(quoted.words, message, [*before, *messages], speaker)))
        else:
            found += [
                _candidate(message, _Quoted(part.words, None), part.judgement, people, owner, zone)
                for part in parts.get(message.seq, ())
                if not _is_covered(part.words, ruled)
            ]
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
    judgement = Judgement.certain(importance, tuple(float(each == kind) for each in KINDS))
    return by_salience([message], before, {message.seq: judgement}, people, owner, zone)


def _previous(messages: Sequence[Message], around: Sequence[Message]) -> dict[int, Message]:
    """Return the message with a text before each one in its thread and session, by sequence number."""
    wanted = {message.seq for message in messages}
    last: dict[str, Message] = {}
    found: dict[int, Message] = {}
    for message in in_time_order({each.seq: each for each in (*around, *messages)}.values()):
        before = last.get(message.thread)
        if message.seq in wanted and before is not None and before.session == message.session and before.text.strip():
            found[message.seq] = before
        last[message.thread] = message
    return found


def _worth(message: Message, judgements: Mapping[int, Judgement], previous: Mapping[int, Message]) -> bool:
    """Return whether a message is worth remembering. What answers another user must be clear without their words."""
    judgement = judgements.get(message.seq)
    if judgement is None or not judgement.worth_remembering:
        return False
    return not _is_hidden(message, previous.get(message.seq)) or judgement.is_clear_reply


def _is_hidden(message: Message, previous: Message | None) -> bool:
    """Return whether the message before belongs to another user, so that it cannot be a source."""
    return previous is not None and previous.user != message.user


def _answers(message: Message, previous: Message) -> bool:
    """Return whether a message may answer the one before it, because somebody else wrote that."""
    return (previous.role, previous.author) != (message.role, message.author)


def _ruled(message: Message, *, worth: bool) -> frozenset[Category]:
    """Return the categories that rules look for in a message.

    A message that is not worth remembering can still ask for a reminder. In a short one, which is hard to judge by its
    vector, rules look for plain statements too: "I like tea".
    """
    if worth or len(message.text) <= _SHORT:
        return _BY_RULES
    return _REMINDERS if may_ask(message.text) else frozenset()


def _judged(candidate: Candidate, judgement: Judgement | None) -> Candidate:
    """Return a rule's finding with the model's confidence and importance, and as a relationship if it is one."""
    if judgement is None:
        return candidate
    related = candidate.category == "fact" and candidate.event is None and judgement.kind == "relationship"
    asked = candidate.request or candidate.category == "reminder"
    return candidate._replace(
        confidence=judgement.confidence,
        importance=candidate.importance if asked else judgement.importance,
        kind="relationship" if related else candidate.kind,
    )


def _quoted(
    message: Message,
    previous: Message | None,
    ruled: Sequence[Candidate],
    speaker: Person,
    judgement: Judgement,
) -> list[_Quoted]:
    """Return the words of a message to remember, in pieces of a limited length; none if they say too little."""
    text = statement_in(message)
    language = guess_language(text)
    sentences = split_sentences(text)
    # What a rule found in the message is not quoted again.
    wanted = [not is_question(each) and not _is_covered(each, ruled) for each in sentences]
    telling = [want and _content(each, language) > 0 for want, each in zip(wanted, sentences, strict=True)]
    if is_joke(text) or True not in telling:
        return []
    told = " ".join(sentence for tells, sentence in zip(telling, sentences, strict=True) if tells)
    if ruled and _content(told, language) < _ENOUGH_WORDS:
        return []
    first, end = telling.index(True), len(telling) - telling[::-1].index(True)
    # "An angel. She gave us the keys": a word or two that begin a reply tell nothing.
    replies = previous is not None and _answers(message, previous)
    while replies and first < end - 1 and _content(_DIGITS.sub("", sentences[first]), language) < _LEAST_WORDS:
        first += 1
    hidden = _is_hidden(message, previous)
    if hidden:
        first = _first_alone(sentences, first, language, answers=_asks(previous))
        if True not in telling[first:end]:
            return []
    between = sentences[first:end]
    # What values tell already is quoted all the same where the rest would be torn apart.
    whole = sum(map(len, between)) <= _LONGEST
    parts = _joined(
        between,
        [not is_question(each) if whole else want for each, want in zip(between, wanted[first:end], strict=True)],
    )
    parts[0] = without_opener(parts[0], vocabulary(language), words_of(speaker.name))
    content = _content(" ".join(parts), language)
    points = begins_with_anaphor(parts[0], language)
    # A short reply to a question needs the question: "Since March." A short statement after another one does not.
    needed = _ENOUGH_WORDS if previous is None or hidden or _asks(previous) else _LEAST_WORDS
    alone = judgement.is_plain or (judgement.stands_alone and content >= needed)
    alone = alone and not points
    answers = None
    if hidden:
        if points:
            return []
    elif previous is not None and not alone:
        # "He has a test next week" goes on with what the same person said before.
        joined = _answers(message, previous) or begins_with_pronoun(parts[0], language)
        answers = previous if joined else None
    enough = alone if judgement.is_plain else judgement.stands_alone and content >= _LEAST_WORDS
    if not enough and (answers is None or content < _ENOUGH_WORDS):
        return []
    return [_Quoted(part, answers if number == 0 else None) for number, part in enumerate(parts[:_MOST_PARTS])]


def _asks(message: Message | None) -> bool:
    return message is not None and any(map(is_question, split_sentences(message.text)))


def _first_alone(sentences: Sequence[str], first: int, language: str, *, answers: bool) -> int:
    """Return the place from which sentences, from `first` on, can be understood without the message that they follow.

    Leading ones that begin with "it" or "there" need that message; so do short ones if it asks: "At 8. In Leeds."
    """
    for place in range(first, len(sentences)):
        short = answers and _content(_DIGITS.sub("", sentences[place]), language) < _ENOUGH_WORDS
        if not short and not begins_with_anaphor(sentences[place], language):
            return place
    return len(sentences)


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


def _is_covered(sentence: str, ruled: Sequence[Candidate]) -> bool:
    """Return whether rules or values tell most of what a sentence says, in one piece or in several."""
    part = sentence.rstrip(_STOPS)
    values = [each.value for each in ruled if each.value is not None and part in each.quote and each.value in sentence]
    values += [each.value for each in ruled if each.value is not None and each.quote == sentence]
    if values:
        language = guess_language(sentence)
        edge = "" if language in UNSPACED_LANGUAGES else r"\b"
        told = "|".join(re.escape(word) for value in values for word in value.split())
        return _content(re.sub(f"{edge}(?:{told}){edge}", " ", sentence), language) < _MUCH_MORE
    ruled = [each for each in ruled if each.matter is None]
    said = set(words_of(sentence))
    quoted = {word for each in ruled if (words := set(words_of(each.quote))) <= said for word in words}
    return bool(quoted) and len(quoted) >= _COVERED * len(said)


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
    owner: Person,
    zone: tzinfo,
) -> Candidate:
    speaker = by_id(people, message.author)
    when = told_time(quoted.words, to_zone(message.at, zone))
    kind = _kind(judgement, quoted.words, message, when)
    text = _text(quoted, speaker)
    if when is not None and str(when.start.year) not in quoted.words:
        text = f"{text.rstrip('.')} ({written_time(when)})."
    return Candidate(
        category=_CATEGORIES[kind],
        text=text,
        importance=judgement.importance,
        sources=(message,) if quoted.answers is None else (quoted.answers, message),
        speaker=speaker,
        # A short statement says one thing. What a longer one is about is not certain.
        subject=subject_of(quoted.words, speaker, owner) if length_in_words(quoted.words) <= PLAIN_WORDS else None,
        event=None if when is None else Event(when.start, when.end, when.timed),
        replaces=None,
        extractor=SALIENCE,
        quote=quoted.words,
        kind=kind,
        confidence=judgement.confidence,
    )


def _meant(words: str, message: Message, around: Sequence[Message], speaker: Person) -> str | None:
    """Return whom "he" or "she" at the beginning of words means: the person whom the speaker mentioned last."""
    if not is_about_somebody(words, guess_language(words)):
        return None
    own = [each for each in around if (each.thread, each.author, each.role) == (message.thread, message.author, "user")]
    for earlier in reversed([each for each in in_time_order(own) if each.session == message.session]):
        if earlier.seq < message.seq and (mentions := mentioned_people(earlier.text, speaker.names)):
            return mentions[-1].name or mentions[-1].relation
    return None


def _kind(judgement: Judgement, words: str, message: Message, when: When | None) -> Kind:
    """Return the kind of a statement. What names a time is an event, unless it is an appointment or a task to come.

    Only a rule finds a standing request: what is guessed to be one must not be followed.
    """
    kind = judgement.kind
    exact = when is not None and when.end - when.start <= _DAY
    if kind == "instruction" or (
        kind == "schedule" and not (exact and not is_about_somebody(words, guess_language(words)))
    ):
        kind = "fact"
    if when is not None and (when.end <= message.at or kind == "fact"):
        return "event"
    if kind == "fact" and (claim := claim_of(words, ())) is not None and claim.liked is not None:
        return "preference"
    return "task" if kind == "reminder" else kind


def _text(quoted: _Quoted, speaker: Person) -> str:
    before = quoted.answers
    if before is not None and (before.role, before.author) == ("user", speaker.id) and statement_in(before):
        return f'{speaker.name}: "{_beginning(statement_in(before))}" {speaker.name}: "{quoted.words}"'
    if len(split_sentences(quoted.words)) == 1 and guess_language(quoted.words) == "english":
        turned = third_person(quoted.words, speaker.name)
        if turned is not None:
            return turned if not turned[-1].isalnum() else f"{turned}."
    return f'{speaker.name}: "{quoted.words}"'


def _beginning(text: str) -> str:
    shown = " ".join(split_sentences(text))
    return shown if len(shown) <= _LONGEST_BEFORE else f"{shown[:_LONGEST_BEFORE].rsplit(' ', 1)[0]} …"
