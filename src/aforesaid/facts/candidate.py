"""Candidates for memories, found by rules or by a model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, tzinfo
from types import MappingProxyType
from typing import Final, NamedTuple

from aforesaid.domain.checks import Category, Kind, to_zone
from aforesaid.domain.memory import Event, Matter
from aforesaid.domain.message import Message
from aforesaid.facts.people import Person, by_id, subject_of
from aforesaid.models.offline import ExtractedMemory, Spoken, extract, may_ask, may_ask_for_good, recognise_request
from aforesaid.models.reader import Holds
from aforesaid.text.sentences import own_text
from aforesaid.text.times.find import When, find_times, read_requested_time

RULES: Final = "rules/1"
"""The version of the extractor that needs no model."""
DATED: Final = frozenset({"schedule", "task", "reminder"})
"""Categories of memories with a time, which is in the future when they are stored."""


class Candidate(NamedTuple):
    """A possible memory, before `admission` and `reconcile` decide about it."""

    category: Category
    text: str
    importance: int
    sources: tuple[Message, ...]
    """The messages that say it, oldest first."""
    speaker: Person
    subject: str | None
    event: Event | None
    replaces: int | None
    """The id of the memory that it replaces, according to a model."""
    extractor: str
    quote: str
    """The original words; empty if unknown."""
    request: bool = False
    """Whether it is a standing request of the owner to the assistant."""
    kind: Kind | None = None
    """Its kind; None: what its category and its event say."""
    outdates: int | None = None
    """The sequence number of an older message of the same speaker whose memory it makes outdated."""
    about: str | None = None
    """Whom it is about: a user's id, or the name of somebody who is no user; None: what `whom` finds."""
    confidence: float | None = None
    """How sure the extractor is that it is worth remembering, from 0 to 1; None if it does not say."""
    completes: str = ""
    """The text of the memory that it replaces: what that says need not be said again."""
    matter: Matter | None = None
    """Which matter of a person it tells the value of; None for a note."""
    value: str | None = None
    """The value. None: whatever the value of the matter was, it is over."""
    holds: Holds = "own"
    """Whether the value holds, or is over."""
    corrects: bool = False
    """Whether its message says that something known is wrong."""
    language: str | None = None
    """The language in which it was told; None: what its words look like."""
    until: datetime | None = None
    """When it is over, if its message says so: "for ten days"."""

    @property
    def has_original_words(self) -> bool:
        """Whether its text consists of what was said, because no model wrote it."""
        return self.quote != ""

    @property
    def last(self) -> int:
        """The sequence number of the newest message that says it."""
        return max(message.seq for message in self.sources)

    @property
    def said(self) -> datetime:
        return min(message.at for message in self.sources)


def by_rules(
    messages: Sequence[Message],
    people: Mapping[str, Person],
    owner: Person,
    zone: tzinfo,
    only: Mapping[int, Collection[Category]] = MappingProxyType({}),
    *,
    with_assistant: bool,
) -> list[Candidate]:
    """Return the candidates that rules find in messages. Standing requests are found in talk with an assistant.

    `only` limits the categories that are looked for in a message, by its sequence number. Standing requests are always
    looked for.
    """
    found: list[Candidate] = []
    for message in messages:
        # Requests by others, and requests of the owner to other people, are not meant for the assistant.
        to_assistant = message.author == owner.id and with_assistant
        wanted = only.get(message.seq)
        asks = to_assistant and may_ask_for_good(message.text)
        if message.role != "user" or (wanted is not None and not wanted and not asks):
            continue
        name = by_id(people, message.author).name
        turn = Spoken(name, statement_in(message), to_zone(message.at, zone), message.role)
        # One turn at a time, so that a statement in two messages is found twice, and counted.
        found += [
            _from_rules(each, message, people, owner)
            for each in extract([turn], wanted)
            if to_assistant or not each.request
        ]
    return found


def among_people(messages: Sequence[Message], owner: Person) -> bool:
    """Return whether these messages are a conversation between people, without an assistant."""
    roles = {message.role for message in messages}
    others = any(message.role == "user" and message.author != owner.id for message in messages)
    return others and "assistant" not in roles


ADDRESS: Final = "address"
"""The metadata with the beginning of a message that calls the assistant: "Rex, " of "Rex, I live in Bern"."""


def statement_in(message: Message) -> str:
    """Return the statement in a message: "I have a daughter" of "Bot, remember that …", nothing of "forget …".

    What its author quotes is no statement of theirs, and nothing that the assistant, a tool or a page says is one.
    """
    if message.role != "user":
        return ""
    address = message.metadata.get(ADDRESS) if message.details is not None else None
    text = own_text(message.text.removeprefix(address) if isinstance(address, str) else message.text)
    if not may_ask(text):
        return text
    requested = recognise_request(text)
    if requested.action == "remember" and requested.content:
        return requested.content
    return "" if requested.action in {"forget", "recall"} else text


def _from_rules(found: ExtractedMemory, message: Message, people: Mapping[str, Person], owner: Person) -> Candidate:
    speaker = by_id(people, message.author)
    event = None if found.when is None else _event(found.when)
    return Candidate(
        category=lasting(found.category, event, message.at),
        text=found.text,
        importance=found.importance,
        sources=(message,),
        speaker=speaker,
        subject=_subject(found, speaker, owner),
        event=event,
        replaces=None,
        extractor=RULES,
        quote=found.quote,
        request=found.request,
    )


def lasting(category: Category, event: Event | None, said: datetime) -> Category:
    """Return `fact` for an appointment that was already over when mentioned, since past events do not expire."""
    return "fact" if category == "schedule" and event is not None and event.end <= said else category


def _subject(found: ExtractedMemory, speaker: Person, owner: Person) -> str | None:
    if found.key is None or found.request:
        return found.key
    return subject_of(found.quote, speaker, owner)


def event_in(text: str, said: datetime, category: Category) -> Event | None:
    """Return the first time that a text of a category names, relative to when it was said.

    A reminder is a request: parts of a day and bare hours ("at 7") are read, and always lie ahead where they can.
    """
    if category == "reminder":
        requested = read_requested_time(text, said)
        return None if requested is None else _event(requested.when)
    found = find_times(text, said, "future" if category in DATED else "nearest", by_words=True)
    return _event(found[0]) if found else None


def _event(when: When) -> Event:
    return Event(when.start, when.end, when.timed)
