"""What the store in memory holds, and changes on top of it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from typing import Final, TypeAlias, TypeVar

from aforesaid.domain.checks import Within, microseconds
from aforesaid.domain.context_receipt import ContextReceipt
from aforesaid.domain.memory import Derived, Facts, MemoryRecord, MemoryVersion, NoteKey, Tombstone
from aforesaid.domain.message import Message, message_hash
from aforesaid.domain.report import AuditEntry, Setting
from aforesaid.domain.scope import Entry as Planned
from aforesaid.domain.scope import Scope, Session, SessionBounds, Subject
from aforesaid.domain.summary import Summary
from aforesaid.errors import NotFound, quoted

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Layer(MutableMapping[K, V]):
    """A table with changes. A key that is put for the first time comes last, as in a dictionary."""

    __slots__ = ("below", "gone", "put")

    def __init__(self, below: Rows[K, V]) -> None:
        """Start without changes."""
        self.below = below
        self.put: dict[K, V] = {}
        self.gone: set[K] = set()

    def __getitem__(self, key: K) -> V:
        if key in self.put:
            return self.put[key]
        if key in self.gone:
            raise KeyError(key)
        return self.below[key]

    def __setitem__(self, key: K, value: V) -> None:
        self.put[key] = value
        self.gone.discard(key)

    def __delitem__(self, key: K) -> None:
        if key not in self:
            raise KeyError(key)
        self.put.pop(key, None)
        if key in self.below:
            self.gone.add(key)

    def __contains__(self, key: object) -> bool:
        return key in self.put or (key not in self.gone and key in self.below)

    def __iter__(self) -> Iterator[K]:
        for key in self.below:
            if key not in self.gone:
                yield key
        yield from self.fresh()

    def __reversed__(self) -> Iterator[K]:
        for key in reversed(self.put):
            if key not in self.below:
                yield key
        for key in reversed(self.below):
            if key not in self.gone:
                yield key

    def __len__(self) -> int:
        return len(self.below) - len(self.gone) + sum(1 for _ in self.fresh())

    def fresh(self) -> Iterator[K]:
        """Return the keys that are not below."""
        return (key for key in self.put if key not in self.below)

    @property
    def changed(self) -> bool:
        """Whether there are changes."""
        return bool(self.put or self.gone)


Rows: TypeAlias = dict[K, V] | Layer[K, V]


def take_over(rows: Rows[K, V], layer: Layer[K, V]) -> None:
    """Make the changes of a layer changes of the table below it."""
    for key in layer.gone:
        del rows[key]
    if isinstance(rows, dict):
        rows.update(layer.put)
        return
    rows.put.update(layer.put)
    rows.gone.difference_update(layer.put)


Name: TypeAlias = tuple[str, str]
"""A space and a name in it, of a person or of a thread."""


class Numbers:
    """The sequence numbers of messages, in order. On top of others, it holds only what is new."""

    __slots__ = ("_below", "_gone", "_owned", "_said")

    def __init__(self, below: Numbers | None = None) -> None:
        """Start with what is below."""
        self._below = below
        self._owned: dict[Name, list[int]] = {}
        self._said: dict[Name, list[int]] = {}
        self._gone: set[int] = set()

    def add(self, message: Message) -> None:
        """Add the newest message."""
        self._owned.setdefault((message.space, message.user), []).append(message.seq)
        self._said.setdefault((message.space, message.thread), []).append(message.seq)

    def remove(self, seqs: Collection[int]) -> None:
        """Take messages out for good."""
        self._gone.update(seqs)
        if self._below is None:
            self._sort_out()

    def owned(self, person: Name) -> Sequence[int]:
        """Return a user's messages, oldest first. Not to be changed."""
        below = () if self._below is None else self._below.owned(person)
        return self._joined(below, self._owned.get(person, []))

    def said(self, thread: Name) -> Sequence[int]:
        """Return the messages of a thread, oldest first. Not to be changed."""
        below = () if self._below is None else self._below.said(thread)
        return self._joined(below, self._said.get(thread, []))

    def take_over(self, newer: Numbers) -> None:
        """Add what another, on top of this one, has."""
        for mine, theirs in ((self._owned, newer._owned), (self._said, newer._said)):
            for name, seqs in theirs.items():
                mine.setdefault(name, []).extend(seqs)
        if newer._gone:
            self.remove(newer._gone)

    def _joined(self, below: Sequence[int], own: list[int]) -> Sequence[int]:
        every = [*below, *own] if below and own else own or below
        return [seq for seq in every if seq not in self._gone] if self._gone else every

    def _sort_out(self) -> None:
        for table in (self._owned, self._said):
            for name in list(table):
                table[name] = [seq for seq in table[name] if seq not in self._gone]
                if not table[name]:
                    del table[name]
        self._gone.clear()


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
    """Tell whether a message came into another session, was set aside or has a newer version now."""
    if seq not in log.below:
        return False
    before, now = log.below[seq].message, log.put[seq].message
    return now.replaced or before.session != now.session


def not_searched(messages: Iterable[Message]) -> set[int]:
    """Return the numbers of messages that no search finds: with a newer version among these, or taken back."""
    replaced = [message for message in messages if message.replaced or message.replaces is not None]
    older = {message.replaces for message in replaced}
    return {message.seq for message in replaced if message.seq in older or message.taken_back}


def person(scope: Scope) -> Name:
    """Return the user of a scope."""
    return scope.space, scope.user


def thread(scope: Scope) -> Name:
    """Return the thread of a scope."""
    return scope.space, scope.thread


def as_microseconds(at: datetime) -> int:
    """Return a moment as a number."""
    return microseconds(at, "the time")
