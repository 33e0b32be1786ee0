"""Carrying out change sets inside one write transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import apsw

from aforesaid.background import gc_paused
from aforesaid.domain.receipt import Result
from aforesaid.store.contract import Progress, reporting
from aforesaid.store.messages import AddMessages
from aforesaid.store.operations import Change
from aforesaid.store.placing import Prepared, Step, prepare_change
from aforesaid.store.sql import Answer
from aforesaid.store.sqlite.append import Appender, Batch, BatchAppender, is_batch, prepare_batch
from aforesaid.store.sqlite.rows import Names, answered
from aforesaid.store.sqlite.transaction import WriteTransaction

T = TypeVar("T")


class ChangeSet(NamedTuple):
    """A prepared change set."""

    steps: Sequence[Step] | Batch
    progress: Progress | None = None

    @property
    def is_batch(self) -> bool:
        """Whether it is many messages of one owner and thread."""
        return isinstance(self.steps, Batch)


def prepare(changes: Sequence[Change], progress: Progress | None = None) -> ChangeSet:
    """Compute what a change set needs that needs no file, before the write lock is held."""
    if isinstance(changes, AddMessages) and is_batch(changes):
        with gc_paused():
            return ChangeSet(prepare_batch(changes, progress), progress)
    steps = [prepare_change(change, " ".join) for change in reporting(changes, "prepared", progress)]
    return ChangeSet(steps, progress)


class ChangeSetRunner:
    """Carries out change sets in one write transaction. Each can be taken back alone."""

    def __init__(self, connection: apsw.Connection, names: Names) -> None:
        """Start on a connection that holds the write lock."""
        self.transaction = WriteTransaction(connection, names)
        self._appender = Appender(self.transaction)
        self.left_unindexed = False
        """Whether there was a batch, whose messages are indexed after the commit."""

    def carry_out(self, change_set: ChangeSet) -> tuple[Result, ...]:
        """Carry out one change set. When it raises, the transaction is as it was before."""
        steps, progress = change_set
        first = steps[0] if len(steps) == 1 and progress is None else None
        if isinstance(first, Prepared) and not first.can_be_refused:
            # There will be nothing to take back.
            return (self.run(self._appender.append(first)),)
        connection = self.transaction.connection
        self._appender.write()
        connection.execute("SAVEPOINT change_set")
        try:
            results = self._carry_out(steps, progress)
            self._appender.write()
        except BaseException:
            self.transaction.names.forget()
            # Some failures (a full disk) make SQLite give up the whole transaction by itself.
            if connection.in_transaction:
                connection.execute("ROLLBACK TO change_set; RELEASE change_set")
                self._appender.take_back()
            raise
        connection.execute("RELEASE change_set")
        return results

    def _carry_out(self, steps: Sequence[Step] | Batch, progress: Progress | None) -> tuple[Result, ...]:
        if isinstance(steps, Batch):
            self.left_unindexed = True
            with gc_paused():
                return tuple(BatchAppender(self.transaction, self._appender, steps).append(progress))
        return tuple([self.run(self._appender.carry_out(step)) for step in reporting(steps, "stored", progress)])

    def finish(self) -> None:
        """Write what was only counted so far. Comes before the commit."""
        self._appender.write()

    def run(self, rule: Answer[T]) -> T:
        """Carry out a rule."""
        return answered(self.transaction.connection, rule)
