"""Extracts candidates for memories with a language model: one call per batch, checked against the messages."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from aforesaid.domain.checks import Kind, microseconds, to_zone
from aforesaid.domain.memory import CATEGORY_OF, Event, MemoryRecord
from aforesaid.domain.message import Message, Position, in_time_order
from aforesaid.domain.scope import Scope, is_direct
from aforesaid.domain.setting import wants_memory
from aforesaid.extras import re
from aforesaid.facts.admission import (
    CLEARLY_SHARED,
    is_the_opposite,
    is_too_certain,
    shared_words,
    supporting,
    suspicion,
)
from aforesaid.facts.candidate import Candidate, among_people, event_in, lasting, statement_in
from aforesaid.facts.people import Person, by_id, subject_of
from aforesaid.facts.salience_extraction import in_own_words
from aforesaid.models.offline import may_hold_requests, reads_like_an_attack
from aforesaid.models.offline.memories.extract import written_time
from aforesaid.models.prompts import ask_for_notes, lines_of, load_prompt, numbered, transcript
from aforesaid.models.salience import Judgement
from aforesaid.profiles.effective import settings_of
from aforesaid.store.messages import Messages
from aforesaid.text.languages import guess_language, vocabulary, word_finder
from aforesaid.text.sentences import begins_with_anaphor, length_in_words
from aforesaid.text.times.find import When, find_times
from aforesaid.text.words import UNSPACED_LANGUAGES, fold, words_of

if TYPE_CHECKING:
    from aforesaid.models.chat import Chat
    from aforesaid.models.prompts.shapes import Note
    from aforesaid.store import Store


_NUMBER: Final = re.compile(r"\d+")
_DATE: Final = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_INFLECTED: Final = 2
"""Letters by which the end of a name may differ, as in "Анна" and "Анны"."""
_SHORTEST_STEM: Final = 3
_FIRST_WORDS: Final = 4
"""Words in which a sentence that begins with "she" or "there" must name somebody."""
_SHOWS_LANGUAGE: Final = 4
"""Words of a text from which its language can be guessed."""
_COUNTRY: Final = re.compile(r"\bUS\b|\bU\.S\.")
"""Not the pronoun "us"."""


def stands_alone(text: str, names: Collection[str]) -> bool:
    """Return whether a text can be understood without the conversation: it names somebody and has no "I" or "we"."""
    language = guess_language(text, names=names)
    if word_finder(_COUNTRY.sub(" ", text), language)(vocabulary(language).first_person):
        return False
    if not any(mentions(text, name) for name in names):
        return False
    beginning = " ".join(text.split()[:_FIRST_WORDS])
    return not begins_with_anaphor(text, language) or any(mentions(beginning, name) for name in names)


def mentions(text: str, name: str) -> bool:
    """Return whether a text has a word of a name in it, perhaps with another ending."""
    if guess_language(name) in UNSPACED_LANGUAGES:
        return fold(name) in fold(text)
    words = set(words_of(text))
    return any(_among(word, words) for word in words_of(name) if len(word) > 1)


def is_mentioned(name: str, texts: Iterable[str]) -> bool:
    """Return whether every word of a name occurs in one of the texts, perhaps with another ending."""
    joined = " ".join(texts)
    if guess_language(name) in UNSPACED_LANGUAGES:
        return fold(name) in fold(joined)
    said = set(words_of(joined))
    return all(_among(word, said) for word in words_of(name) if len(word) > 1)


def is_in_their_language(text: str, said: Sequence[str]) -> bool:
    """Return whether a text is in a language that was said. Texts of a few words do not show their language."""
    spoken = {guess_language(each) for each in (*said, " ".join(said)) if length_in_words(each) >= _SHOWS_LANGUAGE}
    return not spoken or any(guess_language(text, usual=language) == language for language in spoken)


def numbers_nobody_said(text: str, sources: Sequence[Message], others: Sequence[str], zone: tzinfo) -> set[str]:
    """Return the dates and other numbers of a text that neither its sources nor `others` have.

    A date may be that of a message, or lie in a time that its words mean ("on Monday").
    """
    days: set[str] = set()
    allowed = {"0"}
    named: list[When] = []
    for message in sources:
        said = to_zone(message.at, zone)
        days.add(said.date().isoformat())
        allowed |= {str(said.year), str(said.month), str(said.day)}
        named += times_in(message.text, said)
    for each in (*(message.text for message in sources), *others):
        allowed |= _numbers(each)
        days.update(_DATE.findall(each))
    for when in named:
        allowed |= _of_time(when)
    wrong = {day for day in _DATE.findall(text) if day not in days and not any(_covers(when, day) for when in named)}
    return wrong | (_numbers(_DATE.sub(" ", text)) - allowed)


def times_in(text: str, said: datetime) -> list[When]:
    """Return the times that a text can mean, in whatever direction from when it was said."""
    found = [*find_times(text, said, "future"), *find_times(text, said, "nearest"), *find_times(text, said, "past")]
    return list(dict.fromkeys(found))


def _of_time(when: When) -> set[str]:
    """Return the numbers by which a time is written, on a clock of 12 hours too."""
    last = when.end - timedelta(microseconds=1)
    days = {str(number) for at in (when.start, last) for number in (at.year, at.month, at.day)}
    hour, minute = when.start.hour, when.start.minute
    return days | ({str(hour), str(hour % 12), str(minute)} if when.timed else set())


def _covers(when: When, day: str) -> bool:
    return when.start.date().isoformat() <= day <= (when.end - timedelta(microseconds=1)).date().isoformat()


def _numbers(text: str) -> set[str]:
    return {number.lstrip("0") or "0" for number in _NUMBER.findall(text)}


def _among(word: str, words: Collection[str]) -> bool:
    if word in words:
        return True
    stem = word[:-_INFLECTED]
    return len(stem) >= _SHORTEST_STEM and any(other.startswith(stem) for other in words)


MOST_BEFORE: Final = 6
"""Messages read before a batch, per thread, so that the question to which a first "yes" replies is included."""
_MOST_BETWEEN: Final = 40
"""Maximum messages of other people between those of a batch, per thread."""
_CHARACTERS: Final = 500
"""Maximum characters of each message. It only has to show the topic."""


async def messages_around(store: Store, scope: Scope, batch: Sequence[Message]) -> list[Message]:
    """Return messages from just before a batch and, in channels, of other people from between its messages.

    Messages of users who switched memory off are left out.
    """
    known = {message.seq for message in batch}
    found: dict[int, Message] = {}
    for thread in dict.fromkeys(message.thread for message in batch):
        here = Scope(scope.space, scope.user, thread)
        mine = in_time_order(message for message in batch if message.thread == thread)
        near = await store.read(Messages(here, within="thread", limit=MOST_BEFORE, before=mine[0].seq))
        if not is_direct(thread):
            later = await store.read(Messages(here, within="thread", limit=_MOST_BETWEEN, before=mine[-1].seq))
            near += [message for message in later if _place(message) > _place(mine[0])]
        found |= {message.seq: message for message in near if message.seq not in known}
    owners = {message.user for message in found.values()}
    wanted = {user for user in owners if wants_memory(await settings_of(store, Scope.of(user, scope.space)))}
    return [replace(message, text=message.text[:_CHARACTERS]) for message in found.values() if message.user in wanted]


async def between_others(store: Store, scope: Scope, batch: Sequence[Message]) -> list[Message]:
    """Return the messages of other users in the channels of a batch: just before it, and between its messages.

    They show what a message of the batch follows. Nothing of them may be stored with the user.
    """
    found: list[Message] = []
    for thread in dict.fromkeys(message.thread for message in batch if not is_direct(message.thread)):
        here = Scope(scope.space, scope.user, thread)
        mine = in_time_order(message for message in batch if message.thread == thread)
        before: int | Position = mine[-1].seq
        # As many others as own messages on average; more is read where there are more of them.
        limit = MOST_BEFORE + 2 * len(mine)
        while True:
            page = await store.read(Messages(here, within="thread", limit=limit, before=before))
            found += [message for message in page if message.user != scope.user]
            if len(page) < limit or _place(page[0]) < _place(mine[0]):
                break
            before = Position(microseconds(page[0].at, "the time"), page[0].seq)
    return found


def just_before(around: Sequence[Message], batch: Sequence[Message]) -> list[Message]:
    """Return the messages that a model reads with a batch or a part of it: just before and between, by time."""
    inside = {message.seq for message in batch}
    first, last = min(map(_place, batch)), max(map(_place, batch))
    others = in_time_order(message for message in around if message.seq not in inside and _place(message) < last)
    before = [message for message in others if _place(message) < first]
    return [*before[-MOST_BEFORE:], *(message for message in others if _place(message) > first)]


def _place(message: Message) -> tuple[datetime, int]:
    return message.at, message.seq


_log: Final = logging.getLogger("aforesaid.extraction")

MOST_NOTES_OF_SMALL: Final = 5
"""Maximum memories that a small model is asked for at a time: it writes about 100 tokens."""
_TELLING_LANGUAGE: Final = 50
"""Number of messages from which the language of a batch is detected."""
SHOWN: Final = 10
"""Maximum number of known memories shown to a model."""
LONGEST_REPLY: Final = 300
"""Maximum characters of an assistant's message shown to a model: it only has to show what the person answers."""
_REPLY_END: Final = 120
"""Characters at the end of such a message that are shown. A question stands there."""
_IMPORTANCE: Final[Mapping[Kind, int]] = {
    "fact": 5,
    "preference": 5,
    "event": 5,
    "schedule": 6,
    "task": 5,
    "reminder": 7,
    "relationship": 6,
    "instruction": 9,
}
"""The importance of each kind where the salience model does not judge it."""
_OTHER_LANGUAGE: Final = "it is in another language"
_OPPOSITE: Final = "it states the opposite of what was said"
_TOO_CERTAIN: Final = "it states as a fact what may be so"
_DATED: Final[frozenset[Kind]] = frozenset({"event", "schedule", "task", "reminder"})


class BatchInput(NamedTuple):
    """The input of an extraction for one user, beside the batch of messages."""

    scope: Scope
    known: Sequence[MemoryRecord]
    people: Mapping[str, Person]
    owner: Person
    zone: tzinfo
    around: Sequence[Message]
    """The batch and messages around it. A model reads those too, but no memory is extracted from them."""
    before: Sequence[Message]
    """The user's last messages before the batch."""


class FoundWithoutModel(NamedTuple):
    """What rules and the salience model find in a batch."""

    candidates: Sequence[Candidate]
    judgements: Mapping[int, Judgement]
    """By sequence number; empty without an encoder."""


class FoundCandidates(NamedTuple):
    """The candidates of a batch, and how many a model's answer lost, by reason."""

    candidates: Sequence[Candidate]
    dropped: Mapping[str, int]
    near: Mapping[str, frozenset[int]] = MappingProxyType({})
    """Ids of memories that mean nearly the same, by the text of a candidate, where the vectors of messages tell."""


async def ask_model(
    chat: Chat, given: BatchInput, batch: Sequence[Message], shown: Sequence[MemoryRecord], own: FoundWithoutModel
) -> FoundCandidates:
    """Return the candidates that a model finds in a batch, and the standing requests that rules find.

    `shown` are known memories that it may change. `own` is what was found without it: the words of a person are taken
    from there where the model's cannot be used. Raises ModelError if the model does not answer, and ModelGarbled if its
    second answer is no use either.
    """
    from aforesaid.models.prompts.shapes import MOST_NOTES, Extraction, ExtractionWithKnown  # noqa: PLC0415 - brings pydantic

    prompt = load_prompt("extract")
    read = in_time_order([*just_before(given.around, batch), *batch])
    spoken = [message for message in batch if message.role == "user"]
    places = {message.seq: number for number, message in enumerate(spoken, 1)}
    names = {person.id: person.name for person in given.people.values()}
    lines = [
        line._replace(at=line.at and to_zone(line.at, given.zone), text=_shortened(line.text, message))
        for line, message in zip(lines_of(read, names), read, strict=True)
    ]
    language = guess_language("\n".join(message.text for message in spoken[:_TELLING_LANGUAGE]))
    question = ask_for_notes(
        language,
        MOST_NOTES_OF_SMALL if chat.is_small(prompt.operation) else MOST_NOTES,
        name=given.owner.name,
        known=numbered("known", [memory.text for memory in shown]) if shown else None,
        messages=transcript(lines, [places.get(message.seq) for message in read]),
    )
    answer = await (
        chat.structure(prompt.operation, question, ExtractionWithKnown, scope=given.scope)
        if shown
        else chat.structure(prompt.operation, question, Extraction, scope=given.scope)
    )
    reminders = {each.last for each in own.candidates if each.category == "reminder"}
    reader = _NoteReader(given, spoken, read, shown, own.judgements, reminders, f"{prompt.version} {answer.model}")
    return _with_own_words(reader, answer.value.notes, own.candidates)


def _shortened(text: str, message: Message) -> str:
    """Return what a model reads of a message: all that a person said; beginning and end of a long reply."""
    if message.role == "user" or len(text) <= LONGEST_REPLY:
        return text
    return f"{text[: LONGEST_REPLY - _REPLY_END]} … {text[-_REPLY_END:]}"


def _with_own_words(reader: _NoteReader, notes: Sequence[Note], own: Sequence[Candidate]) -> FoundCandidates:
    """Return the candidates of notes. Where the wording of one cannot be used, what its message said is taken."""
    # Standing requests are found by rules, with a model too: none may be missed.
    found = [candidate for candidate in own if candidate.request]
    dropped: Counter[str] = Counter()
    for note in notes:
        candidate = reader.candidate(note)
        if candidate is None:
            dropped["unsupported"] += 1
            continue
        if candidate.request and any(each.last == candidate.last for each in found if each.request):
            continue
        problem = reader.problem(note, candidate)
        if problem is None:
            found.append(candidate)
            continue
        _log.debug("a model's sentence is not used: %s", problem)
        said = [each for each in own if each.last == candidate.last]
        if problem in {_OTHER_LANGUAGE, _OPPOSITE, _TOO_CERTAIN} and not said:
            said = reader.original(candidate)
        found += [each for each in said if each not in found]
        dropped["unclear"] += not said
    return FoundCandidates(found, dropped)


class _NoteReader(NamedTuple):
    """Turns a model's notes about a batch into candidates."""

    given: BatchInput
    spoken: Sequence[Message]
    """The messages of people in the batch, by the numbers that the model was shown."""
    read: Sequence[Message]
    """The messages that the model was shown, by time."""
    shown: Sequence[MemoryRecord]
    judgements: Mapping[int, Judgement]
    reminders: Collection[int]
    """Sequence numbers of the messages that ask for a reminder, according to rules."""
    extractor: str

    def candidate(self, note: Note) -> Candidate | None:
        """Return a note as a candidate; None if it names no message."""
        people, owner = self.given.people, self.given.owner
        names = [name for person in people.values() for name in person.names]
        text = " ".join(note.text.split())
        numbers = sorted({number for number in note.sources if 1 <= number <= len(self.spoken)})
        said = supporting(text, [self.spoken[number - 1] for number in numbers], self.spoken, names)
        if not said:
            return None
        speaker = by_id(people, said[0].author)
        when = self._when(text, note.kind, said[-1])
        if when is not None and str(when.start.year) not in text:
            text = f"{text.rstrip('.')} ({written_time(when)})."
        event = None if when is None else Event(when.start, when.end, when.timed)
        kind = self._kind(note.kind, text, said[-1], event)
        category = lasting(CATEGORY_OF[kind], event, said[-1].at)
        place = getattr(note, "replaces", 0)
        replaced = self.shown[place - 1] if 1 <= place <= len(self.shown) else None
        judgement = self.judgements.get(said[-1].seq)
        return Candidate(
            category=category,
            text=text,
            importance=_IMPORTANCE[kind] if judgement is None or kind == "instruction" else judgement.importance,
            sources=said,
            speaker=speaker,
            subject=subject_of(text, speaker, owner) if category in {"fact", "preference"} else None,
            event=event,
            replaces=None if replaced is None else replaced.id,
            extractor=self.extractor,
            quote="",
            request=kind == "instruction",
            kind="event" if kind == "schedule" and category == "fact" else kind,
            about=self._about(note.about, text),
            completes="" if replaced is None else replaced.text,
        )

    def problem(self, note: Note, candidate: Candidate) -> str | None:
        """Return why the wording of a candidate cannot be used; None if it can."""
        said = candidate.sources
        names = [*candidate.speaker.names, *(person.name for person in self.given.people.values()), note.about]
        others = [candidate.completes, *(self._message_before(message) for message in said)]
        theirs = [message.text for message in self.spoken if message.author == candidate.speaker.id]
        known = [memory.text for memory in self.shown]
        heard = [*names[:-1], *(message.text for message in self.read), *known]
        if note.about and not is_mentioned(note.about, heard):
            return "it is about somebody whom nobody mentioned"
        if not stands_alone(candidate.text, [name for name in names if name]):
            return "it cannot be understood alone"
        if not is_in_their_language(candidate.text, [*(message.text for message in said), " ".join(theirs), *known]):
            return _OTHER_LANGUAGE
        if numbers_nobody_said(candidate.text, said, others, self.given.zone):
            return "it has a number that nobody said"
        called = [name for name in names if name]
        if is_the_opposite(candidate, called):
            return _OPPOSITE
        if is_too_certain(candidate, called):
            return _TOO_CERTAIN
        return None

    def original(self, candidate: Candidate) -> list[Candidate]:
        people, owner, zone = self.given.people, self.given.owner, self.given.zone
        place = next(number for number, each in enumerate(self.read) if each.seq == candidate.last)
        kind = candidate.kind or "fact"
        return in_own_words(self.read[place], self.read[:place], kind, candidate.importance, people, owner, zone)

    def _when(self, text: str, kind: Kind, message: Message) -> When | None:
        """Return the time that a sentence names, or else the only one that its message names."""
        said = to_zone(message.at, self.given.zone)
        event = event_in(text, said, CATEGORY_OF[kind])
        if event is not None:
            return When(event.start, event.end, event.timed)
        if kind not in _DATED:
            return None
        event = event_in(message.text, said, CATEGORY_OF[kind])
        only = len({when.start.date() for when in times_in(message.text, said)}) <= 1
        return When(event.start, event.end, event.timed) if event is not None and only else None

    def _kind(self, kind: Kind, text: str, message: Message, event: Event | None) -> Kind:
        """Return the kind of a note. Without a date there is no appointment, and nothing to remind of.

        A reminder rings, so its message must have asked for one. A standing request is followed, so it must consist of
        words of the owner. Small models call much a task: without a date, it is
        one unless the salience model sees something that stays true.
        """
        judgement = self.judgements.get(message.seq)
        if kind == "instruction":
            owner, said = self.given.owner, statement_in(message)
            own = message.author == owner.id and not among_people(self.read, owner) and may_hold_requests(said)
            meant = own and shared_words(text, [said], owner.names) >= CLEARLY_SHARED and suspicion(text) is None
            return "instruction" if meant and not reads_like_an_attack(text) else "preference"
        if event is None:
            if kind == "task" and judgement is not None and judgement.kind in {"fact", "preference", "relationship"}:
                return judgement.kind
            return {"schedule": "fact", "reminder": "task"}.get(kind, kind)  # type: ignore[return-value]
        return "schedule" if kind == "reminder" and message.seq not in self.reminders else kind

    def _about(self, name: str, text: str) -> str | None:
        """Return whom a model names if the text does too: the id of another user, or a name; None for the owner."""
        words = set(words_of(name))
        if not words or not mentions(text, name):
            return None
        for person in self.given.people.values():
            if words <= {word for each in person.names for word in words_of(each)}:
                return None if person == self.given.owner else person.id
        return " ".join(name.split())

    def _message_before(self, message: Message) -> str:
        """Return the text before a message, which may be the question that it answers."""
        place = next(number for number, each in enumerate(self.read) if each.seq == message.seq)
        return self.read[place - 1].text if place else ""
