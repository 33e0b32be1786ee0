"""Carrying out change sets inside one write transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeVar, cast

import apsw

from aforesaid.background import gc_paused
from aforesaid.domain.change import AddMessages, AddNoteVectors, AddVectors, Change
from aforesaid.domain.checks import microseconds
from aforesaid.domain.memory import NoteKey
from aforesaid.domain.receipt import Result, Stored
from aforesaid.domain.transfer import as_expected
from aforesaid.store import records
from aforesaid.store.checksums import SQLITE as CHECKSUMS
from aforesaid.store.contract import Progress, reporting
from aforesaid.store.operations import performers
from aforesaid.store.questions import Question
from aforesaid.store.ranking import content_hash
from aforesaid.store.rules import RULES, writes
from aforesaid.store.rules.purging import replace_version
from aforesaid.store.rules.writes import Operation, Rule, run
from aforesaid.store.sql import writes as in_sql
from aforesaid.store.sql.appending import Prepared, Returning, prepare_change
from aforesaid.store.sqlite import append, backup, search
from aforesaid.store.sqlite.answers import ANSWERS, LOOKUPS
from aforesaid.store.sqlite.append import Batch, BatchAppender, is_batch, prepare_batch
from aforesaid.store.sqlite.rows import Names, WriteTransaction, find_thread

_SESSION: Final = CHECKSUMS.update("session", "thread = $1 AND name = $2", automatic="$3", timeout="$4", opened_by="$5")
_TOKENS: Final = CHECKSUMS.insert(
    "spending",
    ("day", "space", "user", "tokens"),
    f"ON CONFLICT DO UPDATE SET {CHECKSUMS.setting('spending', tokens='spending.tokens + excluded.tokens')}",
)
_ENTRY: Final = CHECKSUMS.insert(
    "agenda", records.ENTRY, CHECKSUMS.replacing("agenda", *records.ENTRY[:5], derived=True)
)


def _describe_session(transaction: WriteTransaction, write: writes.DescribeSession) -> None:
    session = write.row.session
    thread = find_thread(transaction.connection, session.space, session.thread)
    if thread is not None:
        opened_by = transaction.names.author(session.space, session.user, microseconds(session.started_at, "the time"))
        timeout = round(session.timeout.total_seconds() * 1_000_000)
        transaction.connection.execute(_SESSION, (thread, session.id, write.row.automatic, timeout, opened_by))
        transaction.names.sessions.pop(thread, None)


def _put_vector(transaction: WriteTransaction, write: writes.PutVector) -> bool:
    row = write.row
    text = transaction.connection.execute("SELECT text FROM log WHERE seq = ?", (row.seq,)).get
    transaction.connection.execute(search.NEW_EMBEDDER, (row.embedder, len(row.value) // 2))
    transaction.connection.execute(search.ADD, (row.embedder, row.seq, content_hash(text or ""), row.value))
    return bool(transaction.connection.changes())


def _add_summary(transaction: WriteTransaction, write: writes.AddSummary) -> int:
    number, summary = in_sql.add_summary(transaction, write), write.summary
    search.index(transaction, transaction.owner(summary.space, summary.user), NoteKey("summary", number), summary.text)
    return number


def _add_memory(transaction: WriteTransaction, write: writes.AddMemoryRow) -> int:
    number, memory = in_sql.add_memory(transaction, write), write.memory
    search.index(transaction, transaction.owner(memory.space, memory.user), NoteKey("memory", number), memory.text)
    return number


def _put_memory(transaction: WriteTransaction, write: writes.PutMemoryRow) -> None:
    memory = write.memory
    in_sql.put_memory(transaction, memory)
    if memory.text != write.before:
        owner = transaction.owner(memory.space, memory.user)
        search.index_again(transaction, owner, NoteKey("memory", memory.id), write.before, memory.text)


def _put_entries(transaction: WriteTransaction, write: writes.PutEntries) -> None:
    transaction.connection.executemany(_ENTRY, [records.entry_values(entry) for entry in write.entries])


def _add_tokens(transaction: WriteTransaction, write: writes.AddTokens) -> None:
    payer = ("", "") if write.user is None else (write.space, write.user)
    transaction.connection.execute(_TOKENS, (write.day.isoformat(), *payer, write.tokens))


WRITES: Final = {**in_sql.WRITES, **performers(writes.Write, globals(), vars(backup))}


T = TypeVar("T")

Step = Change | Prepared | Returning

_READS: Final = {**ANSWERS, **LOOKUPS}


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
        self._transaction = WriteTransaction(connection, names)
        self._appender = append.Appender(self._transaction)
        self.left_unindexed = False
        """Whether there was a batch, whose messages are indexed after the commit."""

    def carry_out(self, change_set: ChangeSet) -> tuple[Result, ...]:
        """Carry out one change set. When it raises, the transaction is as it was before."""
        steps, progress = change_set
        first = steps[0] if len(steps) == 1 and progress is None else None
        if isinstance(first, Prepared) and not first.can_be_refused:
            # There will be nothing to take back.
            return (self._appender.append(first),)
        connection = self._transaction.connection
        self._appender.write()
        connection.execute("SAVEPOINT change_set")
        try:
            results = self._carry_out(steps, progress)
            self._appender.write()
        except BaseException:
            self._transaction.names.forget()
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
                return tuple(BatchAppender(self._transaction, self._appender, steps).append(progress))
        return tuple([self._step(step) for step in reporting(steps, "stored", progress)])

    def finish(self) -> None:
        """Write what was only counted so far. Comes before the commit."""
        self._appender.write()

    def _step(self, step: Step) -> Result:
        match step:
            case Prepared():
                stored = self._appender.append(step)
                if isinstance(stored, Stored) and stored.draft.replaces is not None:
                    self._appender.write()
                    self.run(replace_version(stored.draft))
                return stored
            case Returning():
                return as_expected(step.change, self._appender.restore(step))
        # What comes next may be about messages of the same change set.
        self._appender.write()
        match step:
            case AddVectors():
                search.add(self._transaction, step)
            case AddNoteVectors():
                search.add_vectors(self._transaction, step)
            case _:
                return cast("Result", self.run(RULES[type(step)](step)))
        return None

    def run(self, rule: Rule[T]) -> T:
        """Carry out a rule."""
        return run(rule, self._perform)

    def _perform(self, operation: Operation) -> Any:  # noqa: ANN401 - the operation says it
        if isinstance(operation, Question):
            return _READS[type(operation)](self._transaction.connection, operation)
        return WRITES[type(operation)](self._transaction, operation)
