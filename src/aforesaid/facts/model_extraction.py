"""Extracts memories with a language model: one call per batch, whose answer is checked against the messages.

Models of a few billion parameters can do it: the prompt is short, and they only say which messages hold something, of
which kind it is, and write a sentence about it. Importance, dates and sources are computed here. Where a sentence
cannot be understood alone, has a number that nobody said, states the opposite or is too certain, the words of the
person take its place.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import tzinfo
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from aforesaid.domain.checks import Kind, to_zone
from aforesaid.domain.memory import CATEGORY_OF, Event, MemoryRecord
from aforesaid.domain.message import Message, in_time_order
from aforesaid.domain.scope import Scope
from aforesaid.facts.candidate import Candidate, among_people, event_in, lasting, statement_in
from aforesaid.facts.grounding import CLEARLY_SHARED, is_the_opposite, is_too_certain, shared_words, supporting
from aforesaid.facts.people import Person, by_id, subject_of
from aforesaid.facts.salient import in_own_words
from aforesaid.facts.surroundings import just_before
from aforesaid.facts.suspicion import suspicion
from aforesaid.facts.wording import (
    is_in_their_language,
    is_mentioned,
    mentions,
    numbers_nobody_said,
    stands_alone,
    times_in,
)
from aforesaid.models.offline import may_hold_requests, reads_like_an_attack
from aforesaid.models.offline.memories.extract import written_time
from aforesaid.models.prompts import Fenced, lines_of, load_prompt, numbered, transcript
from aforesaid.models.salience import Judgement
from aforesaid.text.times.find import When
from aforesaid.text.words import words_of

if TYPE_CHECKING:
    from aforesaid.models.chat import Chat
    from aforesaid.models.prompts.prompt import Note

_log: Final = logging.getLogger("aforesaid.extraction")

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
    from aforesaid.models.prompts.prompt import Extraction, ExtractionWithKnown  # noqa: PLC0415 - brings pydantic

    prompt = load_prompt("extract")
    read = in_time_order([*just_before(given.around, batch), *batch])
    spoken = [message for message in batch if message.role == "user"]
    places = {message.seq: number for number, message in enumerate(spoken, 1)}
    names = {person.id: person.name for person in given.people.values()}
    lines = [
        line._replace(at=line.at and to_zone(line.at, given.zone), text=_shortened(line.text, message))
        for line, message in zip(lines_of(read, names), read, strict=True)
    ]
    question = prompt.render(
        name=given.owner.name,
        known=numbered("known", [memory.text for memory in shown]) if shown else Fenced(),
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
        replaced = self._replaced(note)
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
        """Return a candidate in the words of its last message."""
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

    def _replaced(self, note: Note) -> MemoryRecord | None:
        place = getattr(note, "replaces", 0)
        return self.shown[place - 1] if 1 <= place <= len(self.shown) else None

    def _message_before(self, message: Message) -> str:
        """Return the text before a message, which may be the question that it answers."""
        place = next(number for number, each in enumerate(self.read) if each.seq == message.seq)
        return self.read[place - 1].text if place else ""
