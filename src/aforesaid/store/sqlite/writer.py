"""The one connection that writes: change sets, many in one transaction. A single thread uses it."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Final, NamedTuple, TypeAlias, TypeVar

import apsw

from aforesaid.background import gc_paused
from aforesaid.domain.checks import now
from aforesaid.domain.receipt import Receipt, Result
from aforesaid.domain.transfer import Purged
from aforesaid.errors import AforesaidError, InvalidInput, NotFound, SourcesChanged, StoreBusy, StoreError, StoreFailed
from aforesaid.store.checksums import SQLITE as CHECKSUMS
from aforesaid.store.contract import Progress, reporting
from aforesaid.store.messages import AddMessages
from aforesaid.store.operations import Change
from aforesaid.store.placing import Prepared, Step, prepare_change
from aforesaid.store.sql import Answer
from aforesaid.store.sqlite import append
from aforesaid.store.sqlite.connection import (
    Identity,
    Options,
    answered,
    configured_key,
    connect,
    identity,
    migrate,
    patience,
    translated,
    writing,
)
from aforesaid.store.sqlite.transaction import Names, WriteTransaction, overwriting

_log: Final = logging.getLogger("aforesaid.store")

T = TypeVar("T")
Quiet: TypeAlias = Callable[[], AbstractContextManager[None]]
"""Keeps the readers of this process away for a moment."""

_WIPE: Final = "wipe"
"""The mark that is set with an erasure and removed once the file has been wiped."""
_TURN_SECONDS: Final = 0.2
"""Seconds for which other processes cannot write while a purge waits for their readers."""
_PAUSE_SECONDS: Final = 0.3
"""Seconds between two such turns."""
_TO_WIPE: Final = CHECKSUMS.insert("metadata", ("name", "value"), "ON CONFLICT DO NOTHING")
CHECKPOINT_PAGES: Final = 2_000
"""From this size on, the write-ahead log is copied back whenever nobody is waiting (8 MB)."""
OVERDUE_PAGES: Final = 4_000
"""From this size on, it is copied back even while callers wait (16 MB)."""
_RETRY_PAGES: Final = 500
"""Pages that are written before another attempt, after readers prevented a checkpoint (2 MB)."""
_INDEXING_SECONDS: Final = 0.2
"""Seconds that a step of indexing in the background waits for other processes: nothing depends on it."""
_OPENING_SECONDS: Final = 1.0
"""Seconds that an opening waits for other processes, to finish an interrupted purge."""
_PATIENCE_MS: Final = 250
_LAST_PATIENCE_MS: Final = 2_000
"""How long to wait for readers, and how long once the log has twice the size at which it was overdue."""

_FAILS_THE_GROUP: Final = (apsw.FullError, apsw.IOError, apsw.CorruptError, apsw.NoMemError, apsw.ReadOnlyError)


class ChangeSet(NamedTuple):
    steps: Sequence[Step] | append.Batch
    progress: Progress | None = None

    @property
    def is_batch(self) -> bool:
        return isinstance(self.steps, append.Batch)


def prepare(changes: Sequence[Change], progress: Progress | None = None) -> ChangeSet:
    """Compute what a change set needs that needs no file, before the write lock is held."""
    if isinstance(changes, AddMessages) and append.is_batch(changes):
        with gc_paused():
            return ChangeSet(append.prepare_batch(changes, progress), progress)
    steps = [prepare_change(change, " ".join) for change in reporting(changes, "prepared", progress)]
    return ChangeSet(steps, progress)


class ChangeSetRunner:
    """Carries out change sets in one write transaction. Each can be taken back alone."""

    def __init__(self, connection: apsw.Connection, names: Names) -> None:
        """Start on a connection that holds the write lock."""
        self._transaction = WriteTransaction(connection, names)
        self.appender = append.Appender(self._transaction)
        """What it has collected is to be written before the commit."""
        self.left_unindexed = False
        """Whether there was a batch, whose messages are indexed after the commit."""

    def carry_out(self, change_set: ChangeSet) -> tuple[Result, ...]:
        """Carry out one change set. When it raises, the transaction is as it was before."""
        steps, progress = change_set
        connection, appender = self._transaction.connection, self.appender
        first = steps[0] if len(steps) == 1 and progress is None else None
        if isinstance(first, Prepared) and not first.can_be_refused:
            # There will be nothing to take back.
            return (answered(connection, appender.append(first)),)
        appender.write()
        connection.execute("SAVEPOINT change_set")
        results: tuple[Result, ...]
        try:
            if isinstance(steps, append.Batch):
                self.left_unindexed = True
                with gc_paused():
                    results = tuple(append.BatchAppender(self._transaction, appender, steps).append(progress))
            else:
                some = reporting(steps, "stored", progress)
                results = tuple([answered(connection, appender.carry_out(step)) for step in some])
            appender.write()
        except BaseException:
            self._transaction.names.forget()
            # Some failures (a full disk) make SQLite give up the whole transaction by itself.
            if connection.in_transaction:
                connection.execute("ROLLBACK TO change_set; RELEASE change_set")
                appender.take_back()
            raise
        connection.execute("RELEASE change_set")
        return results


class Writer:
    """Stores change sets, many in one transaction, and keeps the write-ahead log small."""

    def __init__(self, path: Path, options: Options) -> None:
        self.wal_pages = 0
        self.last_commit: int | None = None
        self.last_error: str | None = None
        self.rebuilt_at: int | None = None
        """When the keyword index was last made again because it was damaged."""
        self.index_is_incomplete = False
        """Whether batches were stored that have not been indexed yet."""
        self.indexing_error: str | None = None
        """Why batches could not be indexed for a search, which was then answered without their words."""
        self.waiting_searches: set[object] = set()
        """Searches that wait until batches are indexed. While there are any, new batches are indexed as they are
        stored: otherwise a search would never be made while batches keep coming."""
        self._path = path
        self._wal_path = path.with_name(path.name + "-wal")
        self._options = options
        self._data_version = 0
        self._files: tuple[Identity, Identity] | None = None
        self._lost: StoreError | None = None
        self._not_before = OVERDUE_PAGES
        with translated(path, "opening"):
            self._connection, self._names = self._open(create=True)
            self._finish_purge()
            self.index_is_incomplete = append.is_incomplete(self._connection)

    def commit(self, change_sets: Sequence[ChangeSet]) -> list[Receipt | Exception]:
        """Store change sets in one transaction and sync. Each has its own outcome; a failing disk fails them all.

        Batches are not stored together with other change sets. What their messages refer to was looked up in the same
        transaction, so SQLite need not look it up again for each of them, which takes 6 % of the time.
        """
        if self._lost is not None:
            return [self._lost] * len(change_sets)
        committing = False
        try:
            with translated(self._path, "writing to"):
                connection = self._connection
                if change_sets[0].is_batch:
                    connection.pragma("foreign_keys", 0)
                connection.execute("BEGIN IMMEDIATE")
                version = int(connection.pragma("data_version"))
                if version != self._data_version:  # another connection has written
                    self._names.forget()
                    self._data_version = version
                runner = ChangeSetRunner(connection, self._names)
                outcomes = [self._carry_out(runner, change_set) for change_set in change_sets]
                runner.appender.write()
                if runner.left_unindexed and self.waiting_searches:
                    append.index_all(connection)
                committing = True
                connection.execute("COMMIT")
                self._check_files()
        except Exception as error:
            self.note(error)
            self._take_back(bury=committing and self._lost is None)
            return [error] * len(change_sets)
        finally:
            if change_sets[0].is_batch:
                self._connection.pragma("foreign_keys", 1)
        self.last_commit, self.last_error = now(), None
        self.index_is_incomplete |= runner.left_unindexed
        return outcomes

    def index_step(self, place: append.Place | None = None) -> bool:
        """Index the next messages of batches, of one place or of all. Return whether there were any."""
        if self._lost is not None:
            raise self._lost
        with translated(self._path, "indexing"):
            if indexed := append.index_step(self._connection, place):
                self._check_files()
                self.last_error = None
        self.indexing_error = None
        return indexed

    def index_next(self) -> None:
        """Index the next messages of batches. After a failure, the next batch or search tries again."""
        self._connection.set_busy_handler(patience(_INDEXING_SECONDS))
        try:
            self.index_is_incomplete = self.index_step()
        except StoreBusy:
            _log.debug("another process writes to %s; batches are indexed later", self._path)
        except Exception as error:
            self.index_is_incomplete = False
            self.note(error)
        finally:
            self._connection.set_busy_handler(patience(self._options.busy_seconds))

    def alone(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run something that needs the connection for itself."""
        with translated(self._path, "working on"):
            return work(self._connection)

    def erase(self, rule: Callable[[WriteTransaction], Answer[Purged]], quiet: Quiet) -> Purged:
        """Erase by a rule: from the tables in one transaction, and then from every page."""
        connection = self._connection
        with translated(self._path, "erasing from"):
            self._names.forget()
            with overwriting(connection), writing(connection):
                done = answered(connection, rule(WriteTransaction(connection, Names(connection))))
                connection.execute(_TO_WIPE, (_WIPE, "due"))
            self.last_commit = now()
            self._wipe(self._options.busy_seconds, quiet)
            return done

    def _wipe(self, seconds: float, quiet: Quiet) -> None:
        """Write the file anew without what lies between its rows, and empty the write-ahead log.

        Raises StoreBusy when another process reads the file as it was before; it is wiped at the next opening then.
        """
        connection = self._connection
        for table in ("log_index", "note_index"):
            # Words of texts that were changed at some time are still in the lists, marked as gone.
            connection.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")
        # The copy that is made on the way is as large as the file; only where it would lie open, it is kept in memory.
        in_memory = self._options.in_memory or configured_key() is not None
        connection.pragma("temp_store", "MEMORY" if in_memory else "FILE")
        try:
            connection.execute("VACUUM")
        finally:
            connection.pragma("temp_store", "MEMORY")
        until = monotonic() + seconds
        # While SQLite waits for readers here, no process can write. So it waits for a moment only, and is asked again.
        connection.set_busy_handler(patience(_TURN_SECONDS))
        try:
            while not self._empty_log(quiet):
                if monotonic() >= until:
                    raise StoreBusy(
                        f"the rows are erased, but another process still reads {self._path} as it was before; "
                        "stop that process and erase again, or open the file again, to clear the rest"
                    )
                sleep(_PAUSE_SECONDS)
        finally:
            connection.set_busy_handler(patience(self._options.busy_seconds))
        self.wal_pages = 0

    def _empty_log(self, quiet: Quiet) -> bool:
        """Try to empty the write-ahead log; return whether nobody read what is in it."""
        connection = self._connection
        try:
            with quiet():
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
                # SQLite syncs the file itself, and not the log: a power cut could bring it back. No locks are on the
                # log, so opening and closing it here drops none.
                with suppress(FileNotFoundError):
                    handle = os.open(self._wal_path, os.O_RDWR)
                    try:
                        os.fsync(handle)
                    finally:
                        os.close(handle)
                connection.execute("DELETE FROM metadata WHERE name = ?", (_WIPE,))
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError:
            return False
        return True

    def _finish_purge(self) -> None:
        if self._connection.execute("SELECT 1 FROM metadata WHERE name = ?", (_WIPE,)).get is None:
            return
        _log.warning("a purge of %s was interrupted; the rest of what it erased is wiped now", self._path)
        try:
            self._wipe(_OPENING_SECONDS, nullcontext)
        except (StoreBusy, apsw.BusyError):
            why = "still holds traces of an erased user, because other processes use it; stop them and open it again"
            self.note(StoreBusy(f"{self._path} {why}"))

    def rebuild_index(self, error: StoreError) -> None:
        _log.error("the keyword index of %s is damaged and is made again: %s", self._path, error)
        with translated(self._path, "indexing"):
            for table in ("log_index", "note_index"):
                self._connection.execute(f"INSERT INTO {table} ({table}) VALUES ('rebuild')")
        self.rebuilt_at = now()

    def checkpoint_when_due(self, *, waiting: bool, quiet: Quiet) -> None:
        """Copy the write-ahead log back in a gap, or when it has grown too large.

        `quiet` keeps the readers of this process away for a moment. Without it, readers that overlap without end would
        hand the old pages on to one another, and the log could never start from its beginning.
        """
        if self._lost is not None:
            return
        if self.wal_pages < OVERDUE_PAGES:
            self._not_before = OVERDUE_PAGES
        overdue = self.wal_pages >= self._not_before
        if not overdue and (waiting or self.wal_pages < CHECKPOINT_PAGES):
            return
        connection = self._connection
        try:
            if overdue:
                # Waits for the readers of old pages, so that the next commit starts the log from its beginning.
                connection.set_busy_timeout(_PATIENCE_MS if self.wal_pages < 2 * OVERDUE_PAGES else _LAST_PATIENCE_MS)
                with quiet():
                    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
            else:
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            self.wal_pages = 0
        except apsw.BusyError:
            self._not_before = self.wal_pages + _RETRY_PAGES
            _log.debug("the write-ahead log of %s is in use; it is copied back later", self._path)
        except apsw.Error as error:
            # Nothing is lost: what is in the write-ahead log is durable there.
            self.note(StoreFailed(f"copying the write-ahead log of {self._path} back failed: {error}"))
        finally:
            if overdue:
                connection.set_busy_handler(patience(self._options.busy_seconds))

    def close(self) -> None:
        close_quietly(self._connection, self._path)

    def _check_files(self) -> None:
        """Make sure that what was committed lies in the files that others will open.

        They can be lost while they are in use: when somebody removes or replaces them, or when another SQLite library
        in this process closes the file, which drops our locks, and another process then tidies up.
        """
        files = identity(self._path), identity(self._wal_path)
        if self._files is None:
            self._files = files
        elif files != self._files:
            # What was just written must not be copied into a file that others are using.
            self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            self._lost = StoreFailed(
                f"{self._path} was removed or replaced while it was in use; nothing was stored. "
                "Close it and open it again"
            )
            raise self._lost

    def _carry_out(self, runner: ChangeSetRunner, change_set: ChangeSet) -> Receipt | Exception:
        try:
            return Receipt(not self._options.in_memory, runner.carry_out(change_set))
        except _FAILS_THE_GROUP:
            raise
        except apsw.ConstraintError as error:
            changed = SourcesChanged(f"somebody else stored the same thing first ({error})")
            changed.__cause__ = error
            return changed
        except Exception as error:
            if not self._connection.in_transaction:
                raise
            return error

    def _open(self, *, create: bool) -> tuple[apsw.Connection, Names]:
        connection = connect(self._path, self._options, create=create)
        try:
            migrate(connection, self._path)
            # In the place of SQLite's own hook, which would copy the log back inside a caller's commit.
            connection.set_wal_hook(self._saw_wal)
        except BaseException:
            connection.close()
            raise
        return connection, Names(connection)

    def note(self, error: Exception) -> None:
        """Keep an error for health and for the administrator."""
        if isinstance(error, (InvalidInput, NotFound)):
            return  # the caller's mistake, and no trouble of the file
        _log.error("%s", error, exc_info=None if isinstance(error, AforesaidError) else error)
        self.last_error = str(error)

    def _take_back(self, *, bury: bool) -> None:
        """Make sure that nothing of a failed transaction remains."""
        self._names.forget()
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            if bury:
                # A commit whose sync failed lies complete in the write-ahead log, out of sight of every connection,
                # and would come back if the process died now. The next commit is written over it: this one.
                self._connection.execute("BEGIN IMMEDIATE")
                self._connection.pragma("user_version", self._connection.pragma("user_version"))
                self._connection.execute("COMMIT")
        except apsw.Error as second:
            _log.warning("cleaning up after a failed commit to %s failed too: %s", self._path, second)
        if self._connection.in_transaction:
            self._start_over()

    def _start_over(self) -> None:
        try:
            fresh = self._open(create=False)
        except (apsw.Error, AforesaidError) as error:
            _log.warning("opening %s again failed: %s", self._path, error)
            return
        # In this order: a file that nobody has open would be recovered, and what was refused with it.
        close_quietly(self._connection, self._path)
        self._connection, self._names = fresh
        self._data_version = 0
        self._files = None

    def _saw_wal(self, _connection: apsw.Connection, _database: str, pages: int) -> int:
        self.wal_pages = pages
        return apsw.SQLITE_OK


def close_quietly(connection: apsw.Connection, path: Path) -> None:
    """Close a connection. A failure is worth a line in the log and no more: what was acknowledged is on the disk."""
    try:
        connection.close()
    except apsw.Error as error:
        _log.warning("closing %s failed: %s", path, error)
