"""Carrying out change sets inside one write transaction."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from aforesaid.domain.change import (
    AddMessage,
    AddNoteVectors,
    AddVectors,
    Archive,
    Change,
    PutFacts,
    PutSetting,
    RollBack,
    Spend,
)
from aforesaid.domain.memory_change import (
    AddMemory,
    AuditAccess,
    ChangeMemory,
    CountMemory,
    Forget,
    MarkExtracted,
    MemoryChange,
    PutDerived,
)
from aforesaid.domain.message import Message
from aforesaid.domain.receipt import Result
from aforesaid.domain.retention import Discard, PutMark
from aforesaid.domain.summary_change import AddView, Revise, Settle, SummaryChange, Walk
from aforesaid.domain.transfer import Restore, as_expected
from aforesaid.store.sqlite import append, archive, digests, known, note_search, notes, restoring, retention, vectors
from aforesaid.store.sqlite.names import Names
from aforesaid.store.sqlite.unit import Unit

Step = (
    AddVectors
    | AddNoteVectors
    | Spend
    | append.Prepared
    | Archive
    | RollBack
    | SummaryChange
    | PutFacts
    | PutSetting
    | MemoryChange
    | append.Returning
    | Restore
    | Discard
    | PutMark
)


def prepare(changes: Sequence[Change]) -> list[Step]:
    """Do the thinking about a change set that needs no file, before the write lock is held."""
    return [_prepared(change) for change in changes]


def _prepared(change: Change) -> Step:
    if isinstance(change, AddMessage):
        return append.prepare(change)
    if isinstance(change, Restore):
        return append.prepare_return(change, change.row) if isinstance(change.row, Message) else change
    return change


class Transaction:
    """One write transaction: many change sets, each of which can be taken back alone."""

    def __init__(self, connection: apsw.Connection, names: Names) -> None:
        """Start on a connection that holds the write lock."""
        self._unit = Unit(connection, names)
        self._appender = append.Appender(self._unit)

    def carry_out(self, steps: Sequence[Step]) -> tuple[Result, ...]:
        """Carry out one change set. When it raises, the transaction is as it was before."""
        if len(steps) == 1 and isinstance(steps[0], append.Prepared) and not steps[0].can_be_refused:
            # There will be nothing to take back.
            return (self._appender.append(steps[0]),)
        connection = self._unit.connection
        self._appender.write()
        connection.execute("SAVEPOINT change_set")
        try:
            results = tuple([self._step(step) for step in steps])
            self._appender.write()
        except BaseException:
            self._unit.names.forget()
            # Some failures (a full disk) make SQLite give up the whole transaction by itself.
            if connection.in_transaction:
                connection.execute("ROLLBACK TO change_set; RELEASE change_set")
                self._appender.take_back()
            raise
        connection.execute("RELEASE change_set")
        return results

    def finish(self) -> None:
        """Write what was only counted so far. Comes before the commit."""
        self._appender.write()

    def _step(self, step: Step) -> Result:  # noqa: C901, PLR0912 - a case for each kind of change
        match step:
            case append.Prepared():
                return self._appender.append(step)
            case Archive():
                self._appender.write()
                return archive.store_summary(self._unit, step)
            case RollBack():
                self._appender.write()
                return archive.roll_back(self._unit, step)
            case (
                AddMemory() | ChangeMemory() | CountMemory() | Forget() | PutDerived() | MarkExtracted() | AuditAccess()
            ):
                self._appender.write()
                return known.carry_out(self._unit, step)
            case PutFacts():
                return notes.put_facts(self._unit, step)
            case AddVectors():
                self._appender.write()
                vectors.add(self._unit, step)
                return None
            case AddNoteVectors():
                note_search.add_vectors(self._unit, step)
                return None
            case Spend():
                notes.spend(self._unit, step)
                return None
            case AddView() | Revise() | Walk() | Settle():
                self._appender.write()
                return digests.carry_out(self._unit, step)
            case PutSetting():
                notes.put_setting(self._unit, step)
                return None
            case append.Returning():
                return as_expected(step.change, self._appender.restore(step))
            case Restore():
                self._appender.write()
                return as_expected(step, restoring.carry_out(self._unit, step.row))
            case Discard():
                self._appender.write()
                return retention.discard(self._unit, step)
            case PutMark():
                retention.put_mark(self._unit, step)
                return None
