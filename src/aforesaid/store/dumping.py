"""Dumps: everything that a database holds, in the order of `Store.dump`, and what takes the rows of one back."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeAlias

from aforesaid.domain.checks import counted, moment
from aforesaid.domain.context_receipt import ContextReceipt, read_receipt, renumbered
from aforesaid.domain.details import with_reply_to
from aforesaid.domain.memory import Facts, MemoryRecord
from aforesaid.domain.message import Message, message_id, sequence_number
from aforesaid.domain.report import AuditEntry, Setting
from aforesaid.domain.scope import Scope, automatic_name, opening_message
from aforesaid.domain.transfer import (
    DayRow,
    ForgottenRow,
    MemoryRow,
    Restored,
    Row,
    SessionRow,
    SettingRow,
    SpendingRow,
    SuccessorRow,
    SummaryRow,
    UserRow,
    VectorOf,
)
from aforesaid.errors import AforesaidError, NotFound, SourcesChanged, StoreError
from aforesaid.store import agenda, memories, messages, people, sql, summaries
from aforesaid.store.contract import Store
from aforesaid.store.erasing import Withdraw
from aforesaid.store.memories import MEMORY_OF_ANY_SPACE, TEXT_OF_FACTS, MemoryVersions, read_memory
from aforesaid.store.messages import MESSAGE, SESSION, MessagesByNumber
from aforesaid.store.operations import Change, Transaction
from aforesaid.store.sql import OWNED, Answer, loaded, rows
from aforesaid.store.summaries import SUMMARY_OF_ANY_SPACE, read_summary

PAGE: Final = 1_000
"""Rows of a page."""
Key: TypeAlias = tuple[str | int, ...]


class Section(NamedTuple):
    """A kind of rows, read page by page: its text binds the key of the row before the page, and the number of rows."""

    name: str
    text: str
    read: Callable[[sql.Row], Row]
    key: tuple[int, ...]
    """The places of the key in a row."""
    start: Key = ("", 0)
    """The key before the first page. Without one, the text binds nothing, and all rows are one page."""
    complete: Callable[[Any], Answer[Row]] | None = None
    """Adds what other tables have of a row."""


def page(section: Section, after: Key, limit: int = PAGE) -> Answer[tuple[list[Row], Key | None]]:
    """Return the rows after a key, and the key of the last one: None when there are no more."""
    found = yield from rows(section.text, *((*after, limit) if after else ()))
    made = [section.read(row) for row in found]
    if section.complete is not None:
        for place, row in enumerate(made):
            made[place] = yield from section.complete(row)
    more = bool(after) and len(found) == limit
    return made, tuple(found[-1][place] for place in section.key) if more else None


def _by_number(text: str, table: str, number: str = "id") -> str:
    """Return a text that pages by space and number; SQLite has one numbering for all spaces."""
    key = f"{table}.{number}"
    return f"""
    {text} WHERE [[({table}.space, {key}) > ($1, $2) ~ {key} > $2]] ORDER BY [[{table}.space, ]]{key} LIMIT $3
    """


def _by_owner(text: str, name: str) -> str:
    """Return a text that pages by owner and a column that is unique for the owner."""
    key = f"[[x.space, ]]x.owner, x.{name}"
    return f"{text} WHERE ({key}) > ([[$1, $2 ~ CAST($2 AS INTEGER)]], $3) ORDER BY {key} LIMIT $4"


_OWNER: Final = "[[x.space, x.owner ~ p.space, p.name]]"
_JOIN: Final = "[[ ~  JOIN person p ON p.id = x.owner]]"
_TEXT: Final = TEXT_OF_FACTS.format("x.space")
_FACTS: Final = f"SELECT {_OWNER}, {_TEXT}, x.version, x.created_at, x.cause, x.owner FROM facts x{_JOIN}"
_FORGOTTEN: Final = f"SELECT {_OWNER}, x.words, x.up_to, x.id FROM tombstone x{_JOIN}"
_SETTINGS: Final = f"SELECT {_OWNER}, x.key, [[x.value::text ~ x.value]], x.updated_at, x.owner FROM setting x{_JOIN}"
_USERS: Final = """
SELECT p.space, p.name, p.created_at, p.last_chunk, p.extracted, (
    SELECT count(*) FROM log l
     WHERE [[l.space = p.space AND l.owner = p.name ~ l.owner = p.id]] AND l.seq <= p.extracted), [[p.name ~ p.id]]
  FROM person p WHERE [[p.owner AND (p.space, p.name) > ($1, $2) ~ p.owner = 1 AND p.id > CAST($2 AS INTEGER)]]
 ORDER BY [[p.space, p.name ~ p.id]] LIMIT $3
"""
_DAYS: Final = """
SELECT policy, space, day, done_at, done_seq FROM agenda WHERE day != '' AND done_at IS NOT NULL
 ORDER BY space, policy, day
"""
# What all spent together is counted per space.
_SPENDING: Final = """
SELECT day, '', '', sum(tokens)[[::bigint]] FROM spending WHERE [[owner ~ user]] = '' GROUP BY day
UNION ALL SELECT day, space, [[owner ~ user]], tokens FROM spending WHERE [[owner ~ user]] != '' ORDER BY 1, 2, 3
"""
_RECEIPTS: Final = f"SELECT {_OWNER}, x.id, x.at, x.reply, x.details, x.owner FROM receipt x{_JOIN}"
_AUDIT: Final = "SELECT x.id, x.at, x.space, x.[[owner ~ user]], x.actor, x.action, x.subject FROM audit x"
_VECTORS: Final = """
[[SELECT embedder, space, seq, coalesce(tokens, halfvec_send(value)), embedder FROM embedding
   WHERE (space, seq, embedder) > ($1, $2, $3) ORDER BY space, seq, embedder LIMIT $4
~ SELECT e.name, p.space, v.seq, v.value, v.n FROM vector v JOIN embedder e ON e.id = v.embedder
    JOIN person p ON p.id = v.owner WHERE v.n > CAST($3 AS INTEGER) ORDER BY v.n LIMIT $4]]
"""
_ARCHIVED: Final = f"SELECT seq FROM log WHERE {OWNED} AND chunk = $3 ORDER BY seq"


def _with_archive(row: SummaryRow) -> Answer[Row]:
    summary = row.summary
    if summary.reach != "chunks" or summary.level != 1 or summary.rolled_back:
        return row
    found = yield from rows(_ARCHIVED, summary.space, summary.user, summary.chunks[0])
    return row._replace(messages=tuple(seq for (seq,) in found))


def _with_versions(row: MemoryRow) -> Answer[Row]:
    wanted = MemoryVersions(Scope.of(row.memory.user, row.memory.space), row.memory.id)
    return row._replace(versions=tuple((yield from wanted.answer())))


_OF_OWNER: Final[Key] = ("", "", "")
MESSAGES: Final = Section("messages", _by_number(MESSAGE, "log", "seq"), messages.read_message, (2, 0))
OTHERS: Final = (
    Section(
        "sessions", _by_number(SESSION, "s"), lambda row: SessionRow(messages.read_session(row), bool(row[8])), (1, 9)
    ),
    Section(
        "summaries",
        _by_number(SUMMARY_OF_ANY_SPACE, "y"),
        lambda row: SummaryRow(read_summary(row)),
        (1, 0),
        complete=_with_archive,
    ),
    Section(
        "memories",
        _by_number(MEMORY_OF_ANY_SPACE, "m"),
        lambda row: MemoryRow(read_memory(row)),
        (1, 0),
        complete=_with_versions,
    ),
    Section(
        "facts",
        _by_owner(_FACTS, "version"),
        lambda row: Facts(row[0], row[1], row[2], row[3], moment(row[4]), row[5]),
        (0, 6, 3),
        ("", "", 0),
    ),
    Section("requests to forget", _by_number(_FORGOTTEN, "x"), lambda row: ForgottenRow(*row[:4]), (0, 4)),
    Section(
        "settings",
        _by_owner(_SETTINGS, "key"),
        lambda row: SettingRow(row[0], row[1], Setting(row[2], json.loads(row[3]), moment(row[4]))),
        (0, 5, 2),
        _OF_OWNER,
    ),
    Section("users", _USERS, lambda row: UserRow(row[0], row[1], moment(row[2]), *row[3:6]), (0, 6), ("", "")),
    Section("days", _DAYS, lambda row: DayRow(*row), (), ()),
    Section("counts of tokens", _SPENDING, lambda row: SpendingRow(date.fromisoformat(row[0]), *row[1:]), (), ()),
    Section(
        "receipts",
        _by_owner(_RECEIPTS, "id"),
        lambda row: read_receipt(row[2], row[0], row[1], moment(row[3]), row[4], loaded(row[5])),
        (0, 6, 2),
        _OF_OWNER,
    ),
    Section("audit rows", _by_number(_AUDIT, "x"), lambda row: AuditEntry(row[0], moment(row[1]), *row[2:]), (2, 0)),
)


def sections(vector: Callable[[bytes], bytes] | None) -> Iterator[Section]:
    """Return all sections in their order; that of vectors only with a function that reads one."""
    yield from (MESSAGES, *OTHERS)
    if vector is not None:
        yield Section(
            "vectors", _VECTORS, lambda row: VectorOf(row[0], row[1], row[2], vector(row[3])), (1, 2, 4), ("", 0, "")
        )


# --- Restoring --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Restore(Change):
    """Store a row of a dump as it is. What is there already stays, so that twice is as good as once.

    A message, a summary, a memory keeps its number if that is beyond all that were given out here, and gets the next
    one otherwise; the result says which. All that the row refers to must be named by its number in this store.

    - A message is stored as active, in the session that it names; a session named after the message itself is named
      after the number that it gets. Its archive comes with the summary of it. A new version replaces the version that
      it names; where that one is not here, it is a message like any other.
    - A summary of messages or of summaries that are not free any more (archived here by another) is kept as rolled
      back. Of two that would be the newest of their kind, the one that was here stays it.
    - A memory that is here in an earlier revision is brought to the later one.
    - Facts are merged by their times; of two values of a setting the later one counts, of two counts of tokens the
      larger one.

    With `number`, the row must have or get that number; otherwise SourcesChanged is raised.
    """

    of_many: ClassVar[bool] = True
    row: Row
    number: int | None = None

    @property
    def spaces(self) -> Collection[str]:
        match self.row:
            case SessionRow():
                return (self.row.session.space,)
            case SummaryRow():
                return (self.row.summary.space,)
            case MemoryRow():
                return (self.row.memory.space,)
            case _:
                return (self.row.space,)

    def carry_out(self, within: Transaction) -> Answer[Restored]:
        """Store a row of any kind but messages, which are appended (`store.placing`)."""
        return self.as_expected((yield from _KINDS[type(self.row)][1](within, self.row)))

    def as_expected(self, result: Restored) -> Restored:
        """Return the result. Raises SourcesChanged if it has a different number than this change expects."""
        if self.number is not None and self.number != result.number:
            raise SourcesChanged(f"a row was expected to get the number {self.number}, and has {result.number} here")
        return result


def _restore_vector(within: Transaction, row: VectorOf) -> Answer[Restored]:
    return Restored(0, (yield from within.put_vector(row)))


_KINDS: Final[Mapping[type, tuple[str, Callable[[Transaction, Any], Answer[Restored]]]]] = {
    SessionRow: ("session", messages.restore_session),
    SummaryRow: ("summary", summaries.restore_summary),
    MemoryRow: ("memory", memories.restore_memory),
    SuccessorRow: ("successor", memories.restore_successor),
    Facts: ("facts", memories.restore_facts),
    ForgottenRow: ("forgotten", memories.restore_forgotten),
    SettingRow: ("setting", people.restore_setting),
    UserRow: ("user", people.restore_user),
    DayRow: ("day", agenda.restore_day),
    SpendingRow: ("spending", people.restore_spending),
    ContextReceipt: ("receipt", people.restore_receipt),
    AuditEntry: ("audit", people.restore_audit),
    VectorOf: ("vector", _restore_vector),
}
NAMES: Final[Mapping[type, str]] = {Message: "message", **{kind: name for kind, (name, _) in _KINDS.items()}}
"""The names of the kinds of rows."""


# --- Importing under new numbers --------------------------------------------------------------------------------------

Kind: TypeAlias = Literal["message", "summary", "memory"]


class NumberRuns:
    """A map from old to new numbers, stored as ranges with a constant offset: a few ranges for a million rows."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._offsets: list[int] = []

    def add(self, old: int, new: int) -> None:
        """Add a pair. Old numbers must increase."""
        if self._starts and old <= self._ends[-1]:
            return
        if self._starts and new - old == self._offsets[-1]:
            self._ends[-1] = old
        else:
            self._starts.append(old)
            self._ends.append(old)
            self._offsets.append(new - old)

    def get(self, old: int) -> int | None:
        place = bisect_right(self._starts, old) - 1
        if place < 0 or old > self._ends[place]:
            return None
        return old + self._offsets[place]

    def before(self, old: int) -> int:
        """Return the new number of the last known old number up to this one, or 0."""
        place = bisect_right(self._starts, old) - 1
        return 0 if place < 0 else min(old, self._ends[place]) + self._offsets[place]

    def span(self, first: int, last: int) -> tuple[int, int] | None:
        """Return the lowest and the highest new number of a range of old numbers, or None if none of them is known."""
        runs = zip(self._starts, self._ends, self._offsets, strict=True)
        found = [
            (max(first, start) + by, min(last, end) + by) for start, end, by in runs if start <= last and end >= first
        ]
        return (min(low for low, _ in found), max(high for _, high in found)) if found else None

    def expected(self, old: int) -> int | None:
        """Return the number that the next row will probably get; None if it cannot be predicted."""
        if not self._starts:
            return None
        return max(self._ends[-1] + self._offsets[-1] + 1, old)

    def mark(self) -> tuple[int, int]:
        return len(self._starts), self._ends[-1] if self._ends else 0

    def back_to(self, mark: tuple[int, int]) -> None:
        length, end = mark
        for each in (self._starts, self._ends, self._offsets):
            del each[length:]
        if length:
            self._ends[-1] = end


class Renumbering:
    def __init__(self) -> None:
        self._runs: defaultdict[tuple[Kind, str], NumberRuns] = defaultdict(NumberRuns)
        self.successors: list[SuccessorRow] = []
        """Memories whose successor is not stored yet, with the successor's old number."""

    def runs(self, kind: Kind, space: str) -> NumberRuns:
        """Return the number map of a kind; stores may number each space separately."""
        return self._runs[kind, space]

    def translated(self, row: Row) -> Row:
        """Return a row with its references renumbered. Raises NotFound for a reference to an unknown row."""
        match row:
            case Message():
                return self._message(row)
            case SessionRow():
                name = self._session(row.session.space, row.session.id)
                return row._replace(session=replace(row.session, id=name))
            case SummaryRow():
                return self._summary(row)
            case MemoryRow():
                return self._memory(row)
            case ForgottenRow():
                return row._replace(up_to=self.runs("message", row.space).before(row.up_to))
            case UserRow():
                return row._replace(extracted=self.runs("message", row.space).before(row.extracted))
            case DayRow():
                return row._replace(done_seq=self.runs("message", row.space).before(row.done_seq))
            case ContextReceipt():
                # What was erased before has no new number: its old one may be another's here.
                kinds: tuple[Kind, ...] = ("message", "memory", "summary")
                sections = renumbered(row.sections, {kind: self.runs(kind, row.space).get for kind in kinds})
                reply = None if row.reply is None else self.runs("message", row.space).get(row.reply)
                return replace(row, sections=sections, reply=reply)
            case VectorOf():
                return row._replace(seq=self._need("message", row.space, row.seq))
            case _:
                return row

    def _message(self, row: Message) -> Message:
        if row.replaces is not None:
            # A new version whose predecessor was skipped becomes a regular message.
            row = replace(row, replaces=self.runs("message", row.space).get(row.replaces))
        details = row.details or ""
        if '"reply_to":"#' in details and (answered := sequence_number(row.reply_to or "")) is not None:
            number = self.runs("message", row.space).get(answered)
            reply_to = None if number is None else message_id(number, None)
            row = replace(row, details=with_reply_to(details, reply_to))
        if opening_message(row.session) == row.seq:
            return row
        expected = self.runs("message", row.space).expected(row.seq) or row.seq
        return replace(row, session=self._session(row.space, row.session, expected - row.seq))

    def _session(self, space: str, name: str, offset: int = 0) -> str:
        """Return the session's name; an automatic name gets the new number of its first message."""
        opened_by = opening_message(name)
        if opened_by is None:
            return name
        # A session can be named after a later message, whose number can be predicted.
        return automatic_name(self.runs("message", space).get(opened_by) or opened_by + offset)

    def _summary(self, row: SummaryRow) -> SummaryRow:
        old, space = row.summary, row.summary.space
        # Views refer to ranges of the log, whose first or last message may have been deleted.
        messages = self.runs("message", space)
        first, last = messages.get(old.first) or messages.before(old.first) + 1, messages.before(old.last)
        if span := messages.span(old.first, old.last):
            # Messages that had been erased here come back with higher numbers than those after them.
            first, last = min(first, span[0]), max(last, span[1])
        new = replace(
            old,
            first=first,
            last=last,
            fresh=messages.get(old.fresh) or messages.before(old.fresh) + 1,
            sources=tuple(sorted(self._need("summary", space, source) for source in old.sources)),
            replaces=None if old.replaces is None else self._need("summary", space, old.replaces),
        )
        return SummaryRow(new, tuple(self._need("message", space, seq) for seq in row.messages))

    def _memory(self, row: MemoryRow) -> MemoryRow:
        space, messages = row.memory.space, self.runs("message", row.memory.space)
        known = (messages.get(seq) for seq in row.memory.sources)
        sources = tuple(seq for seq in known if seq is not None)
        memory = replace(self._with_successor(row.memory), sources=sources)
        versions = tuple(
            replace(version, before=replace(self._with_successor(version.before), sources=sources))
            for version in row.versions
        )
        for revision, before in enumerate([*(version.before for version in row.versions), row.memory], 1):
            by = before.superseded_by
            if by is not None and self.runs("memory", space).get(by) is None:
                current = revision > len(row.versions)
                self.successors.append(SuccessorRow(space, row.memory.id, None if current else revision, by))
        return MemoryRow(memory, versions)

    def _with_successor(self, memory: MemoryRecord) -> MemoryRecord:
        if memory.superseded_by is None:
            return memory
        return replace(memory, superseded_by=self.runs("memory", memory.space).get(memory.superseded_by))

    def _need(self, kind: Kind, space: str, number: int) -> int:
        here = self.runs(kind, space).get(number)
        if here is None:
            raise NotFound(f"it refers to {kind} {number}, which was not imported")
        return here


BATCH: Final = 1_000
"""Rows stored per change set."""

_NOUNS: Final[Mapping[str, tuple[str, str]]] = {
    "facts": ("version of the facts", "versions of the facts"),
    "forgotten": ("forgotten statement", "forgotten statements"),
    "day": ("summarised day", "summarised days"),
    "spending": ("day of spending", "days of spending"),
    "audit": ("audit row", "audit rows"),
}
"""The kinds whose names are not regular nouns, in the singular and the plural."""


def list_counts(rows: Mapping[str, int]) -> str:
    """Return numbers of rows by kind as people read them: `2 messages, 1 memory`."""
    return ", ".join(counted(count, *_NOUNS.get(kind, (kind,))) for kind, count in rows.items()) or "nothing"


class RowImporter:
    """Stores rows in the order of a dump. Duplicates are recognised; rows that cannot be stored are reported."""

    def __init__(self, store: Store, damaged: Callable[[Row, str, AforesaidError], None]) -> None:
        """Store rows in `store`. `damaged` is called with each refused row, its position, and the error."""
        self._store = store
        self._damaged = damaged
        self._numbers = Renumbering()
        self._batch: list[Row] = []
        self._wheres: dict[int, str] = {}
        """The positions of the batch's rows in the file."""
        self._replaced_there: set[tuple[str, int | None]] = set()
        """Messages that were here before and have a newer version in the dump, by space and old number."""
        self.seen: Counter[str] = Counter()
        self.fresh: Counter[str] = Counter()
        """How many rows of each kind were read, and how many of them were new here."""

    async def take(self, rows: Iterable[Row], where: str = "") -> None:
        for row in rows:
            if self._batch and (len(self._batch) >= BATCH or type(row) is not type(self._batch[0])):
                await self.finish()
            self._batch.append(row)
            self._wheres[id(row)] = where

    async def finish(self) -> None:
        """Store the remaining rows, and which memories supersede which."""
        batch, self._batch = self._batch, []
        is_memories = bool(batch) and isinstance(batch[0], MemoryRow)
        while batch:
            together = self._foreseeable(batch)
            await self._store_or_tell(batch[:together])
            batch = batch[together:]
        self._wheres.clear()
        if is_memories:
            await self._tell_successors()

    def _foreseeable(self, batch: Sequence[Row]) -> int:
        """Return the number of rows for one change set: rows may refer to earlier ones only by known numbers.

        A tombstone is not stored together with its message: it must be known whether that was here before.
        """
        messages: set[int] = set()
        for count, row in enumerate(batch):
            if isinstance(row, Message):
                if row.taken_back and row.replaces in messages:
                    return count
                messages.add(row.seq)
            place = self._place(row)
            if place is not None and place[0].expected(place[1]) is None:
                return count or 1
        return len(batch)

    async def _store_or_tell(self, batch: Sequence[Row]) -> None:
        try:
            await self._store_together(batch)
        except StoreError:
            raise
        except AforesaidError as error:
            if len(batch) == 1:
                self._damaged(batch[0], self._wheres.get(id(batch[0]), ""), error)
                return
            # One row failed, or got an unexpected number. Nothing of the batch was stored.
            half = len(batch) // 2
            await self._store_or_tell(batch[:half])
            await self._store_or_tell(batch[half:])

    async def _store_together(self, batch: Sequence[Row]) -> None:
        withdrawn = [each for row in batch if (each := await self._withdrawn(row))]
        changes: list[Restore] = []
        marks: dict[NumberRuns, tuple[int, int]] = {}
        successors = len(self._numbers.successors)
        try:
            for row in batch:
                change = Restore(self._numbers.translated(row))
                place = self._place(row)
                if place is not None and len(batch) > 1:
                    runs, old = place
                    marks.setdefault(runs, runs.mark())
                    change = replace(change, number=runs.expected(old))
                    runs.add(old, change.number or 0)
                changes.append(change)
            results = (await self._store.apply([*changes, *withdrawn])).results[: len(changes)]
        except AforesaidError:
            del self._numbers.successors[successors:]
            for runs, mark in marks.items():
                runs.back_to(mark)
            raise
        for row, result in zip(batch, results, strict=True):
            self._learn(row, result)

    async def _withdrawn(self, row: Row) -> Withdraw | None:
        """Return what to undo here because of a row: a message that was here before and is taken back by it."""
        if not isinstance(row, Message) or not row.taken_back or (row.space, row.replaces) not in self._replaced_there:
            return None
        number = None if row.replaces is None else self._numbers.runs("message", row.space).get(row.replaces)
        scope = Scope(row.space, row.user, row.thread)
        known = await self._store.read(MessagesByNumber(scope, [] if number is None else [number]))
        return Withdraw(scope, (known[0].seq,)) if known and not known[0].replaced else None

    def _learn(self, row: Row, result: object) -> None:
        if not isinstance(result, Restored):
            raise TypeError(f"a store answered {result!r} to a row of a dump")
        place = self._place(row)
        if place is not None:
            place[0].add(place[1], result.number)
        if isinstance(row, Message) and row.replaced and not result.fresh:
            self._replaced_there.add((row.space, row.seq))
        self.seen[NAMES[type(row)]] += 1
        self.fresh[NAMES[type(row)]] += result.fresh

    def _place(self, row: Row) -> tuple[NumberRuns, int] | None:
        kind: Kind
        match row:
            case Message():
                kind, space, number = "message", row.space, row.seq
            case SummaryRow():
                kind, space, number = "summary", row.summary.space, row.summary.id
            case MemoryRow():
                kind, space, number = "memory", row.memory.space, row.memory.id
            case _:
                return None
        return self._numbers.runs(kind, space), number

    async def _tell_successors(self) -> None:
        """Store which memory supersedes which, for pairs that are both stored."""
        waiting, self._numbers.successors = self._numbers.successors, []
        changes = []
        for row in waiting:
            runs = self._numbers.runs("memory", row.space)
            memory, by = runs.get(row.memory), runs.get(row.by)
            if memory is None or by is None:
                self._numbers.successors.append(row)
            else:
                changes.append(Restore(SuccessorRow(row.space, memory, row.revision, by)))
        if changes:
            await self._store.apply(changes)
