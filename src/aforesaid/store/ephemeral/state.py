"""What the store in memory holds."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from typing import Final

from aforesaid.domain.agenda import Entry as Planned
from aforesaid.domain.agenda import Subject
from aforesaid.domain.checks import microseconds
from aforesaid.domain.context_receipt import ContextReceipt
from aforesaid.domain.literals import Within
from aforesaid.domain.memory import Derived, Facts, MemoryRecord, MemoryVersion, Tombstone
from aforesaid.domain.message import Message, message_hash
from aforesaid.domain.note import NoteKey
from aforesaid.domain.report import AuditEntry, Setting
from aforesaid.domain.scope import Scope
from aforesaid.domain.session import Session, SessionBounds
from aforesaid.domain.summary import Summary
from aforesaid.errors import NotFound, quoted
from aforesaid.store.ephemeral.layer import Layer, Rows, take_over
from aforesaid.store.ephemeral.numbers import Name, Numbers


@dataclass(frozen=True, slots=True)
class Entry:
    """A message with what the store keeps beside it."""

    message: Message
    given_id: str | None

    @property
    def owner(self) -> Name:
        """Whose message it is."""
        return self.message.space, self.message.user

    @property
    def intact(self) -> bool:
        """Whether the message is what was stored."""
        it = self.message
        names = it.space, it.user, it.thread, self.given_id, it.role, it.author, it.name
        return it.hash == message_hash(
            *names, it.text, as_microseconds(it.at), as_microseconds(it.stored_at), it.details
        )


@dataclass(frozen=True, slots=True)
class KeptSession:
    """A session, and whether the log found it by itself."""

    key: int
    session: Session
    automatic: bool

    @property
    def stretch(self) -> SessionBounds:
        """What placing a message needs to know of it."""
        return SessionBounds(
            self.key, as_microseconds(self.session.started_at), as_microseconds(self.session.last_activity)
        )


@dataclass(slots=True)
class State:
    """Everything there is. Its values are frozen, so that a layer of changes leaves what is below it as it was."""

    log: Rows[int, Entry] = field(default_factory=dict)
    by_given_id: Rows[tuple[Name, str], int] = field(default_factory=dict)
    by_time: Rows[tuple[Name, int], tuple[int, ...]] = field(default_factory=dict)
    """What was said in a thread at one moment."""
    sessions: Rows[int, KeptSession] = field(default_factory=dict)
    threads: Rows[Name, tuple[int, ...]] = field(default_factory=dict)
    """The sessions of each thread, by their start."""
    session_names: Rows[tuple[Name, str], int] = field(default_factory=dict)
    summaries: Rows[int, Summary] = field(default_factory=dict)
    memories: Rows[int, MemoryRecord] = field(default_factory=dict)
    versions: Rows[int, tuple[MemoryVersion, ...]] = field(default_factory=dict)
    """What each memory was before its changes."""
    tombstones: Rows[Name, tuple[Tombstone, ...]] = field(default_factory=dict)
    derived: Rows[tuple[Name, str], Derived] = field(default_factory=dict)
    extracted: Rows[Name, int] = field(default_factory=dict)
    """Up to where each user's messages were looked through."""
    facts: Rows[tuple[Name, int], Facts] = field(default_factory=dict)
    settings: Rows[tuple[Name, str], Setting] = field(default_factory=dict)
    vectors: Rows[tuple[str, int], bytes] = field(default_factory=dict)
    embedded: Rows[tuple[str, str], int] = field(default_factory=dict)
    """A message with a vector, for each embedder and text."""
    note_vectors: Rows[tuple[str, NoteKey], bytes] = field(default_factory=dict)
    spending: Rows[tuple[date, Name | None], int] = field(default_factory=dict)
    seen: Rows[str, int] = field(default_factory=dict)
    """Up to where each embedder has seen the log."""
    owners: Rows[Name, datetime] = field(default_factory=dict)
    chunks: Rows[Name, int] = field(default_factory=dict)
    walks: Rows[str, int] = field(default_factory=dict)
    """Up to where each policy has walked along the log."""
    agenda: Rows[Subject, Planned] = field(default_factory=dict)
    receipts: Rows[tuple[Name, str], ContextReceipt] = field(default_factory=dict)
    """Receipts of contexts, by user and id."""
    audit: Rows[int, AuditEntry] = field(default_factory=dict)
    marks: Rows[str, str] = field(default_factory=dict)
    """What is kept in mind about the store itself."""
    given: Rows[str, int] = field(default_factory=dict)
    """The last number that a table gave out, where what had it has been erased."""
    numbers: Numbers = field(default_factory=Numbers)
    """The messages of each user and of each thread."""
    regrouped: int = 0
    """Grows when messages came into other sessions, or were erased: what was worked out from them has to be again."""

    def number(self, table: str, wanted: int = 0) -> int:
        """Return the next number of a table, or `wanted` if that lies beyond all that were given out."""
        return max(self.last_number(table) + 1, wanted)

    def last_number(self, table: str) -> int:
        """Return the last number that a table gave out."""
        return max(self.given.get(table, 0), next(reversed(getattr(self, table)), 0))

    def copy(self) -> State:
        """Return the tables as they are now. Who has which messages is left out."""
        return State(**{name: dict(getattr(self, name)) for name in TABLES}, numbers=Numbers(), regrouped=0)

    def layered(self) -> State:
        """Return a state that can go another way."""
        tables = {name: Layer(getattr(self, name)) for name in TABLES}
        return State(**tables, numbers=Numbers(self.numbers), regrouped=0)

    def take_over(self, changed: State) -> None:
        """Go the way that a state layered on this one went."""
        log = changed.log
        if isinstance(log, Layer) and (log.gone or any(_moved(log, seq) for seq in log.put)):
            self.regrouped += 1
        for name in TABLES:
            layer = getattr(changed, name)
            if layer.changed:
                take_over(getattr(self, name), layer)
        self.numbers.take_over(changed.numbers)

    def inside(self, scope: Scope, within: Within) -> list[Entry]:
        """Return what the scope holds, in the order of the log."""
        return list(self.newest_inside(scope, within))[::-1]

    def newest_inside(self, scope: Scope, within: Within) -> Iterator[Entry]:
        """Return what the scope holds, newest first, looked up one by one."""
        holds = self.holding(scope, within)
        numbers = self.numbers.owned(person(scope)) if within == "user" else self.numbers.said(thread(scope))
        found = map(self.log.__getitem__, reversed(numbers))
        return found if within != "session" else (entry for entry in found if holds(entry.message))

    def holding(self, scope: Scope, within: Within) -> Callable[[Message], bool]:
        """Return what tells whether the scope holds a message."""
        session = scope.named_session() if within == "session" else None
        limits: dict[Within, Callable[[Message], bool]] = {
            "user": lambda message: (message.space, message.user) == person(scope),
            "thread": lambda message: (message.space, message.thread) == thread(scope),
            "session": lambda message: (message.space, message.thread, message.session) == (*thread(scope), session),
        }
        return limits[within]

    def after(self, seq: int) -> Iterator[Entry]:
        """Return all messages after one, of all spaces, in the order of the log."""
        first = max(seq + 1, next(iter(self.log), 0))
        for number in range(first, next(reversed(self.log), 0) + 1):
            entry = self.log.get(number)
            if entry is not None:
                yield entry

    def stretch(self, scope: Scope, first: int, last: int) -> list[Entry]:
        """Return the user's messages between two, with both of them, in the order of the log."""
        mine = self.numbers.owned(person(scope))
        return [self.log[seq] for seq in mine[bisect_left(mine, first) : bisect_right(mine, last)]]

    def last_of(self, scope: Scope) -> int:
        """Return the user's newest message, or zero."""
        mine = self.numbers.owned(person(scope))
        return mine[-1] if mine else 0

    def summary(self, scope: Scope, number: int) -> Summary:
        """Return one of the user's summaries."""
        summary = self.summaries.get(number)
        if summary is None or (summary.space, summary.user) != person(scope):
            raise NotFound(f"{quoted(scope.user)} has no summary {number}")
        return summary

    def memory(self, scope: Scope, number: int) -> MemoryRecord:
        """Return one of the user's memories."""
        memory = self.memories.get(number)
        if memory is None or (memory.space, memory.user) != person(scope):
            raise NotFound(f"{quoted(scope.user)} has no memory {number}")
        return memory


TABLES: Final = tuple(each.name for each in fields(State) if each.name not in ("numbers", "regrouped"))
"""The names of the tables."""


def facts_table(owner: Name) -> str:
    """Name the numbers of somebody's facts, of which the first may be gone."""
    return f"facts of {owner[0]}/{owner[1]}"


def _moved(log: Layer[int, Entry], seq: int) -> bool:
    """Tell whether a message came into another session, or has a newer version now."""
    if seq not in log.below:
        return False
    before, now = log.below[seq].message, log.put[seq].message
    return (before.session, before.replaced) != (now.session, now.replaced)


def person(scope: Scope) -> Name:
    """Return the user of a scope."""
    return scope.space, scope.user


def thread(scope: Scope) -> Name:
    """Return the thread of a scope."""
    return scope.space, scope.thread


def as_microseconds(at: datetime) -> int:
    """Return a moment as a number."""
    return microseconds(at, "the time")
