"""Store the rows of a dump in a store, and renumber their references."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Final

from aforesaid.domain.change import Withdraw
from aforesaid.domain.checks import counted
from aforesaid.domain.context_receipt import ContextReceipt
from aforesaid.domain.memory import Facts
from aforesaid.domain.message import Message
from aforesaid.domain.report import AuditEntry
from aforesaid.domain.scope import Scope
from aforesaid.domain.transfer import (
    DayRow,
    ForgottenRow,
    MemoryRow,
    Restore,
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
from aforesaid.errors import AforesaidError, StoreError
from aforesaid.portability.renumbering import Kind, NumberRuns, Renumbering
from aforesaid.store import Store
from aforesaid.store.questions import MessagesByNumber

BATCH: Final = 1_000
"""Rows stored per change set."""

NAMES: Final[dict[type, str]] = {
    Message: "message",
    SessionRow: "session",
    SummaryRow: "summary",
    MemoryRow: "memory",
    Facts: "facts",
    ForgottenRow: "forgotten",
    SettingRow: "setting",
    UserRow: "user",
    DayRow: "day",
    SpendingRow: "spending",
    ContextReceipt: "receipt",
    AuditEntry: "audit",
    VectorOf: "vector",
}
"""The names of the kinds of rows."""
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
        """Store rows, in batches."""
        for row in rows:
            if self._batch and (len(self._batch) >= BATCH or type(row) is not type(self._batch[0])):
                await self._flush()
            self._batch.append(row)
            self._wheres[id(row)] = where

    async def finish(self) -> None:
        """Store the remaining rows, and which memories supersede which."""
        await self._flush()

    async def _flush(self) -> None:
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
                    change = change._replace(number=runs.expected(old))
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
        """Return the number map of a row's kind, and the row's old number."""
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


async def copy(source: AsyncIterator[Sequence[Row]], target: Store) -> RowImporter:
    """Store all rows of a dump in a store. Raises if a row cannot be stored."""

    def refuse(_: Row, __: str, error: AforesaidError) -> None:
        raise error

    intake = RowImporter(target, refuse)
    async for page in source:
        await intake.take(page)
    await intake.finish()
    return intake
