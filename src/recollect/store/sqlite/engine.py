"""One owner per file and process: a thread that writes, and a few that read.

Many callers hand in change sets; the writer takes whatever is waiting, stores all of it in one transaction and syncs
once for everybody (group commit). A caller hears back only after that sync. Waiting makes the next group larger, so
the cost of a sync is shared by the more callers the slower the disk is.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar, cast

import apsw

from recollect.domain.clock import now
from recollect.domain.receipt import Receipt
from recollect.errors import RecollectError, SourcesChanged, StoreClosed, StoreError
from recollect.store.sqlite.connection import (
    Options,
    connect,
    connect_reader,
    make_folder,
    patience,
    refuse_unsafe_places,
    translated,
)
from recollect.store.sqlite.migrate import migrate
from recollect.store.sqlite.names import Names
from recollect.store.sqlite.transaction import Step, Transaction

_log: Final = logging.getLogger("recollect.store")

T = TypeVar("T")

GROUP: Final = 512
"""At most so many change sets share a transaction."""
CHECKPOINT_PAGES: Final = 2_000
"""From this size on, the write-ahead log is copied back whenever nobody is waiting (8 MB)."""
OVERDUE_PAGES: Final = 6_000
"""From this size on, it is copied back even while callers wait (24 MB)."""
_CHECKPOINT_PATIENCE_MS: Final = 250

_FAILS_THE_GROUP: Final = (apsw.FullError, apsw.IOError, apsw.CorruptError, apsw.NoMemError, apsw.ReadOnlyError)


class _Job(NamedTuple):
    work: Sequence[Step] | Callable[[apsw.Connection], Any]
    """A change set, or something that needs the writing connection for itself."""
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]


@dataclass(frozen=True, slots=True)
class EngineState:
    """What health wants to know."""

    waiting: int
    last_commit: int | None
    last_error: str | None
    wal_pages: int


class Engine:
    """The one writer of a file in this process, and its readers."""

    def __init__(self, path: Path, options: Options) -> None:
        """Open the file, creating or migrating it as needed."""
        self.path = path
        self.options = options
        self.users = 1
        self.is_orphan = False
        """True in a forked child, where the threads of the engine do not exist."""
        self._mailboxes: dict[asyncio.AbstractEventLoop, list[_Job]] = {}
        self._pending: deque[_Job] = deque()
        self._something = threading.Condition()
        self._closing = False
        self._wal_pages = 0
        self._last_commit: int | None = None
        self._last_error: str | None = None
        self._connection: apsw.Connection | None = None
        self._names: Names | None = None
        self._data_version = 0
        with translated(path, "opening"):
            self._open_writer(create=True)
        self._local = threading.local()
        self._reader_connections: list[apsw.Connection] = []
        self._readers = ThreadPoolExecutor(options.readers, thread_name_prefix="recollect-reader")
        self._thread = threading.Thread(target=self._run, name="recollect-writer", daemon=True)
        self._thread.start()

    @property
    def state(self) -> EngineState:
        """Say how it is going."""
        return EngineState(len(self._pending), self._last_commit, self._last_error, self._wal_pages)

    def write(self, steps: Sequence[Step]) -> asyncio.Future[Receipt]:
        """Store a change set. The result arrives when it is on the disk."""
        return self._submit(steps)

    async def alone(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run something on the writing connection while nothing is being written."""
        result: T = await self._submit(work)
        return result

    async def read(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run a short piece of reading in a transaction of its own, on one of the readers."""
        self._check_open()
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, work)

    def stop(self) -> None:
        """Finish what was handed in and close every connection. Blocks."""
        with self._something:
            self._closing = True
            self._something.notify()
        self._thread.join()
        self._readers.shutdown(wait=True)
        for connection in self._reader_connections:
            connection.close()
        if self._connection is not None:
            self._connection.close()

    def _check_open(self) -> None:
        if self.is_orphan:
            raise StoreClosed(f"{self.path} was opened before this process was forked; open it again here")
        if self._closing:
            raise StoreClosed(f"{self.path} has been closed")

    def _submit(self, work: Sequence[Step] | Callable[[apsw.Connection], Any]) -> asyncio.Future[Any]:
        self._check_open()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        mailbox = self._mailboxes.get(loop)
        if mailbox is None:
            # All that the loop's tasks hand in during this turn of the loop goes to the writer together: one thread
            # is woken once, and the two do not fight for the interpreter over every single message.
            mailbox = self._mailboxes[loop] = []
            loop.call_soon(self._post, loop)
        mailbox.append(_Job(work, loop, future))
        return future

    def _post(self, loop: asyncio.AbstractEventLoop) -> None:
        jobs = self._mailboxes.pop(loop)
        with self._something:
            if self._closing:
                _settle([(job.future, StoreClosed(f"{self.path} has been closed")) for job in jobs])
                return
            self._pending.extend(jobs)
            self._something.notify()

    def _read(self, work: Callable[[apsw.Connection], T]) -> T:
        with translated(self.path, "reading"):
            connection = getattr(self._local, "connection", None)
            if connection is None:
                connection = self._local.connection = connect_reader(self.path, self.options)
                self._reader_connections.append(connection)
            connection.execute("BEGIN")
            try:
                return work(connection)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def _run(self) -> None:
        while jobs := self._next_group():
            if callable(jobs[0].work):
                self._run_alone(jobs[0])
            else:
                self._deliver(jobs, self._commit(jobs))
            self._checkpoint_when_due()

    def _next_group(self) -> list[_Job]:
        """Wait for work. Returns nothing only when the engine is closing and all is done."""
        with self._something:
            while not self._pending and not self._closing:
                self._something.wait()
            group: list[_Job] = []
            while self._pending and len(group) < GROUP:
                if callable(self._pending[0].work):
                    return group or [self._pending.popleft()]
                group.append(self._pending.popleft())
            return group

    def _commit(self, jobs: list[_Job]) -> list[Receipt | Exception]:
        try:
            with translated(self.path, "writing to"):
                connection, names = self._writer()
                connection.execute("BEGIN IMMEDIATE")
                self._notice_other_writers(connection, names)
                transaction = Transaction(connection, names)
                outcomes = [self._carry_out(transaction, connection, job) for job in jobs]
                transaction.finish()
                connection.execute("COMMIT")
        except Exception as error:
            # Whether or not a failed commit reached the disk, nobody was told that it did. Starting from a fresh
            # connection makes sure that no page of it lingers in a cache.
            self._failed(error)
            return [error] * len(jobs)
        self._last_commit, self._last_error = now(), None
        return outcomes

    def _carry_out(self, transaction: Transaction, connection: apsw.Connection, job: _Job) -> Receipt | Exception:
        try:
            return Receipt(True, transaction.carry_out(cast("Sequence[Step]", job.work)))
        except _FAILS_THE_GROUP:
            raise
        except apsw.ConstraintError as error:
            return _with_cause(SourcesChanged(f"somebody else stored the same thing first ({error})"), error)
        except Exception as error:
            if not connection.in_transaction:
                raise
            return error

    def _run_alone(self, job: _Job) -> None:
        assert callable(job.work)  # noqa: S101
        try:
            with translated(self.path, "working on"):
                connection, _ = self._writer()
                outcome = job.work(connection)
        except Exception as error:
            self._failed(error)
            outcome = error
        self._deliver([job], [outcome])

    def _deliver(self, jobs: list[_Job], outcomes: Sequence[Any]) -> None:
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
        for job, outcome in zip(jobs, outcomes, strict=True):
            by_loop.setdefault(job.loop, []).append((job.future, outcome))
        for loop, settled in by_loop.items():
            try:
                loop.call_soon_threadsafe(_settle, settled)
            except RuntimeError:
                _log.warning(
                    "%d results came after their event loop had closed; the changes themselves are stored", len(settled)
                )

    def _writer(self) -> tuple[apsw.Connection, Names]:
        if self._connection is None or self._names is None:
            self._open_writer(create=False)
        assert self._connection is not None  # noqa: S101 - set by _open_writer
        assert self._names is not None  # noqa: S101
        return self._connection, self._names

    def _open_writer(self, *, create: bool) -> None:
        connection = connect(self.path, self.options, create=create)
        try:
            migrate(connection, self.path)
            # Checkpoints are made in the gaps between groups, never inside a caller's commit.
            connection.wal_autocheckpoint(0)
            connection.set_wal_hook(self._saw_wal)
        except BaseException:
            connection.close()
            raise
        self._connection, self._names = connection, Names(connection)
        self._data_version = 0

    def _failed(self, error: Exception) -> None:
        known = isinstance(error, RecollectError)
        _log.error("%s", error, exc_info=None if known else error)
        self._last_error = str(error)
        connection, self._connection, self._names = self._connection, None, None
        if connection is None:
            return
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except apsw.Error as second:
            _log.warning("rolling back %s failed too: %s", self.path, second)
        try:
            connection.close()
        except apsw.Error as second:
            _log.warning("closing %s failed too: %s", self.path, second)

    def _notice_other_writers(self, connection: apsw.Connection, names: Names) -> None:
        version = int(connection.pragma("data_version"))
        if version != self._data_version:
            names.forget()
            self._data_version = version

    def _saw_wal(self, _connection: apsw.Connection, _database: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

    def _checkpoint_when_due(self) -> None:
        overdue = self._wal_pages >= OVERDUE_PAGES
        if self._connection is None or not (overdue or (self._wal_pages >= CHECKPOINT_PAGES and not self._pending)):
            return
        connection = self._connection
        try:
            if overdue:
                # Waits for the readers of old pages, so that the next commit starts the log from its beginning.
                connection.set_busy_timeout(_CHECKPOINT_PATIENCE_MS)
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
            else:
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            self._wal_pages = 0
        except apsw.BusyError:
            _log.debug("the write-ahead log of %s is in use; it is copied back later", self.path)
        except apsw.Error as error:
            # Nothing is lost: what is in the write-ahead log is durable there.
            self._failed(StoreError(f"copying the write-ahead log of {self.path} back failed: {error}"))
        finally:
            if overdue and self._connection is not None:
                self._connection.set_busy_handler(patience(self.options.busy_seconds))


_engines: Final[dict[tuple[Path, str | None], Engine]] = {}
_orphans: Final[list[Engine]] = []
_registry = threading.Lock()


def acquire(path: Path, options: Options) -> Engine:
    """Return the engine of a file, shared by everybody in this process who has it open."""
    path = path.expanduser().absolute()
    refuse_unsafe_places(path.parent.resolve() / path.name)
    with translated(path, "opening"):
        try:
            make_folder(path.parent)
        except OSError as error:
            raise apsw.CantOpenError(str(error)) from error
    path = path.resolve()
    with _registry:
        engine = _engines.get((path, options.vfs))
        if engine is None:
            engine = _engines[path, options.vfs] = Engine(path, options)
        else:
            engine.users += 1
        return engine


def release(engine: Engine) -> None:
    """Give an engine back; the last one to do so stops it. Blocks until it has finished."""
    with _registry:
        engine.users -= 1
        last = engine.users == 0
        if last:
            _engines.pop((engine.path, engine.options.vfs), None)
            if not engine.is_orphan:
                # Within the lock: whoever opens the file again meets it closed, never closing.
                engine.stop()


def _settle(settled: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, outcome in settled:
        if future.done():  # the caller was cancelled
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)


def _with_cause(error: RecollectError, cause: Exception) -> RecollectError:
    error.__cause__ = cause
    return error


def _after_fork_in_child() -> None:
    global _registry  # noqa: PLW0603 - whoever held the old lock does not exist here
    _registry = threading.Lock()
    # The parent's threads are not here, and its connections must not be closed from here: they are kept, unused.
    for engine in _engines.values():
        engine.is_orphan = True
        _orphans.append(engine)
    _engines.clear()


def _at_exit() -> None:
    for engine in list(_engines.values()):
        engine.stop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
atexit.register(_at_exit)
