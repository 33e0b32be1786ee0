"""What the store in memory holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from typing import TypeAlias

from recollect.domain.agenda import Entry as Planned
from recollect.domain.agenda import Subject
from recollect.domain.checks import microseconds
from recollect.domain.memory import Derived, Facts, Memory, MemoryVersion, Tombstone
from recollect.domain.message import Message
from recollect.domain.note import NoteKey
from recollect.domain.report import AuditEntry, Setting
from recollect.domain.scope import Scope
from recollect.domain.session import Session, Stretch
from recollect.domain.summary import Summary
from recollect.domain.words import Within
from recollect.errors import InvalidInput, NotFound

Name: TypeAlias = tuple[str, str]
"""A space and a name in it, of a person or of a thread."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A message with what the store keeps beside it."""

    message: Message
    given_id: str | None
    terms: Mapping[str, int]

    @property
    def length(self) -> int:
        """How many terms the message has."""
        return sum(self.terms.values())

    @property
    def owner(self) -> Name:
        """Whose message it is."""
        return self.message.space, self.message.user


@dataclass(frozen=True, slots=True)
class KeptSession:
    """A session, and whether the log found it by itself."""

    key: int
    session: Session
    automatic: bool

    @property
    def stretch(self) -> Stretch:
        """What placing a message needs to know of it."""
        return Stretch(self.key, as_microseconds(self.session.started_at), as_microseconds(self.session.last_activity))


@dataclass(slots=True)
class State:
    """Everything there is. Its values are frozen, so a copy of the tables is a copy of it all."""

    log: dict[int, Entry] = field(default_factory=dict)
    by_given_id: dict[tuple[Name, str], int] = field(default_factory=dict)
    by_time: dict[tuple[Name, int], tuple[int, ...]] = field(default_factory=dict)
    """What was said in a thread at one moment."""
    sessions: dict[int, KeptSession] = field(default_factory=dict)
    threads: dict[Name, tuple[int, ...]] = field(default_factory=dict)
    """The sessions of each thread."""
    summaries: dict[int, Summary] = field(default_factory=dict)
    memories: dict[int, Memory] = field(default_factory=dict)
    versions: dict[int, tuple[MemoryVersion, ...]] = field(default_factory=dict)
    """What each memory was before its changes."""
    tombstones: dict[Name, tuple[Tombstone, ...]] = field(default_factory=dict)
    derived: dict[tuple[Name, str], Derived] = field(default_factory=dict)
    extracted: dict[Name, int] = field(default_factory=dict)
    """Up to where each user's messages were looked through."""
    facts: dict[tuple[Name, int], Facts] = field(default_factory=dict)
    settings: dict[tuple[Name, str], Setting] = field(default_factory=dict)
    vectors: dict[tuple[str, int], bytes] = field(default_factory=dict)
    note_vectors: dict[tuple[str, NoteKey], bytes] = field(default_factory=dict)
    spending: dict[tuple[date, Name | None], int] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)
    """Up to where each embedder has seen the log."""
    owners: dict[Name, datetime] = field(default_factory=dict)
    chunks: dict[Name, int] = field(default_factory=dict)
    walks: dict[str, int] = field(default_factory=dict)
    """Up to where each policy has walked along the log."""
    agenda: dict[Subject, Planned] = field(default_factory=dict)
    audit: dict[int, AuditEntry] = field(default_factory=dict)

    def copy(self) -> State:
        """Return a state that can go another way."""
        return State(**{table.name: dict(getattr(self, table.name)) for table in fields(self)})

    def inside(self, scope: Scope, within: Within) -> list[Entry]:
        """Return what the scope holds, in the order of the log."""
        if within == "session" and scope.session is None:
            raise InvalidInput("within='session' needs a session: memory.user(…, session='…')")
        limits: dict[Within, Callable[[Message], bool]] = {
            "user": lambda message: message.user == scope.user,
            "thread": lambda message: message.thread == scope.thread,
            "session": lambda message: (message.thread, message.session) == (scope.thread, scope.session),
        }
        limit = limits[within]
        return [entry for entry in self.log.values() if entry.message.space == scope.space and limit(entry.message)]

    def summary(self, scope: Scope, number: int) -> Summary:
        """Return one of the user's summaries."""
        summary = self.summaries.get(number)
        if summary is None or (summary.space, summary.user) != person(scope):
            raise NotFound(f"{scope.user!r} has no summary {number}")
        return summary

    def memory(self, scope: Scope, number: int) -> Memory:
        """Return one of the user's memories."""
        memory = self.memories.get(number)
        if memory is None or (memory.space, memory.user) != person(scope):
            raise NotFound(f"{scope.user!r} has no memory {number}")
        return memory


def person(scope: Scope) -> Name:
    """Return the user of a scope."""
    return scope.space, scope.user


def thread(scope: Scope) -> Name:
    """Return the thread of a scope."""
    return scope.space, scope.thread


def as_microseconds(at: datetime) -> int:
    """Return a moment as a number."""
    return microseconds(at, "the time")
