"""One owner per file and process: a thread that writes, and a few that read.

The writer takes whatever change sets are waiting and stores all of them in one transaction
(`aforesaid.store.group_commit`).
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, cast

import apsw

from aforesaid.domain.receipt import Receipt
from aforesaid.domain.transfer import Purged
from aforesaid.errors import StoreClosed, StoreDamaged, StoreError, StoreRefused
from aforesaid.store.group_commit import GroupCommitQueue, Job, deliver
from aforesaid.store.sql import Answer
from aforesaid.store.sqlite.append import IndexIncomplete, answer_without_waiting
from aforesaid.store.sqlite.connection import (
    Identity,
    Options,
    connect_reader,
    identity,
    index_is_damaged,
    make_folder,
    refuse_unsafe_places,
    translated,
)
from aforesaid.store.sqlite.search import Caches
from aforesaid.store.sqlite.transaction import WriteTransaction
from aforesaid.store.sqlite.verify import refuse_damaged_log, state_of
from aforesaid.store.sqlite.writer import ChangeSet, Writer, close_quietly

_DRAIN_SECONDS: Final = 0.25
"""Seconds that a checkpoint waits for readers before it starts without them."""
_TOGETHER: Final = 16
"""Maximum short reads that a thread does in one turn."""
_PATIENCE_SECONDS: Final = 0.001
"""Seconds after which the results that are ready are returned, although reads of the same turn are not done."""


class Gate:
    """What readers pass through, so that all of them can be kept out for a moment."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._shut = False

    @contextmanager
    def passed(self) -> Iterator[None]:
        """Be inside, once the gate is open."""
        with self._changed:
            self._changed.wait_for(lambda: not self._shut)
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Keep everybody out, after a moment for those who are inside."""
        with self._changed:
            self._shut = True
            self._changed.wait_for(lambda: self._inside == 0, timeout=_DRAIN_SECONDS)
        try:
            yield
        finally:
            with self._changed:
                self._shut = False
                self._changed.notify_all()


class _Reading(NamedTuple):
    work: Callable[[apsw.Connection], Any]
    short: bool


class _Waiting(GroupCommitQueue[_Reading]):
    def _begin_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        # One turn more: whoever reads several things side by side has tasks for them, which begin in the next turn.
        loop.call_soon(super()._begin_turn, loop)

    def _next(self) -> list[Job[_Reading]]:
        group: list[Job[_Reading]] = []
        long: list[Job[_Reading]] = []
        while self._pending and len(group) < _TOGETHER:
            job = self._pending.popleft()
            (group if job.work.short else long).append(job)
        self._pending.extendleft(reversed(long[1:]))
        return group + long[:1]


class Readers:
    def __init__(self, path: Path, options: Options) -> None:
        self.gate = Gate()
        self._path = path
        self._options = options
        self._groups = _Waiting(path)
        self._threads: list[threading.Thread] = []

    def read(self, work: Callable[[apsw.Connection], Any], *, short: bool) -> asyncio.Future[Any]:
        """Run a piece of reading in a transaction; a short one may share it with others."""
        future = self._groups.submit(_Reading(work, short))
        if len(self._threads) < self._options.readers:
            thread = threading.Thread(target=self._run, name=f"aforesaid-reader_{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        return future

    def hand_over(self) -> None:
        self._groups.hand_over(asyncio.get_running_loop())

    def stop(self) -> None:
        """Finish what was asked for, and close the connections. Blocks."""
        self._groups.close()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        connection: apsw.Connection | None = None
        try:
            while jobs := self._groups.take():
                try:
                    with translated(self._path, "reading"):
                        if connection is None:
                            connection = connect_reader(self._path, self._options)
                        with self.gate.passed():
                            self._carry_out(connection, jobs)
                except Exception as error:
                    # Whatever it is, whoever waits hears of it, and the thread goes on.
                    deliver(jobs, [error] * len(jobs))
        finally:
            if connection is not None:
                close_quietly(connection, self._path)

    def _carry_out(self, connection: apsw.Connection, jobs: list[Job[_Reading]]) -> None:
        try:
            ready: list[Any] = []
            since = time.monotonic()
            for place, job in enumerate(jobs):
                try:
                    with translated(self._path, "reading"):
                        if not connection.in_transaction:
                            connection.execute("BEGIN")  # for the first of them, or after a failure of the disk
                        ready.append(None if job.future.cancelled() else job.work.work(connection))
                except Exception as error:
                    ready.append(error)
                if time.monotonic() - since > _PATIENCE_SECONDS and len(jobs) > 1:
                    deliver(jobs[place + 1 - len(ready) : place + 1], ready)
                    ready, since = [], time.monotonic()
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        deliver(jobs[len(jobs) - len(ready) :], ready)


T = TypeVar("T")

_PAUSE_SECONDS: Final = 0.05
"""Seconds without other work before each step of indexing a batch, in which other processes can write too."""
_MOST_SECONDS_WITHOUT_INDEXING: Final = 1.0
"""Seconds after which a step is made although there is other work."""
_Work: TypeAlias = ChangeSet | Callable[[apsw.Connection], Any]
"""A change set, or something that needs the writing connection for itself."""


class Engine:
    """The one writer of a file in this process, and its readers."""

    def __init__(self, path: Path, options: Options) -> None:
        self.path = path
        self.options = options
        self.users = 1
        self.is_orphan = False
        """True in a forked child, where the threads of the engine do not exist."""
        self.writer = Writer(path, options)
        self.identity = identity(path)
        self.caches = Caches()
        self._groups: GroupCommitQueue[_Work] = GroupCommitQueue(path)
        self._readers = Readers(path, options)
        self._indexed_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="aforesaid-writer", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        return self._groups.waiting

    def write(self, change_set: ChangeSet) -> asyncio.Future[Receipt]:
        return self._submit(change_set)

    async def alone(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run something on the writing connection while nothing is being written."""
        result: T = await self._submit(work)
        return result

    async def erase(self, rule: Callable[[WriteTransaction], Answer[Purged]]) -> Purged:
        """Erase by a rule, also from what is kept in memory."""

        def work(_: apsw.Connection) -> Purged:
            try:
                return self.writer.erase(rule, self._readers.gate.closed)
            finally:
                self.caches.clear()

        return await self.alone(work)

    async def read(self, work: Callable[[apsw.Connection], T], *, short: bool = False) -> T:
        """Run a piece of reading on one of the readers.

        A short one runs together with others that are asked for in the same turn of the event loop; a long one in a
        transaction of its own.
        """
        self._check_open()
        try:
            return await self._read(work, short=short)
        except StoreDamaged as error:
            if not index_is_damaged(error):
                raise
            damage = error
        await self.alone(lambda _: self.writer.rebuild_index(damage))
        return await self._read(work, short=short)

    async def _read(self, work: Callable[[apsw.Connection], T], *, short: bool) -> T:
        """Read, after messages that are looked through have been indexed; without them where that is not possible."""
        search = object()
        try:
            while True:
                try:
                    found: T = await (
                        self.alone(partial(_in_transaction, work))
                        if self.options.in_memory
                        else self._readers.read(work, short=short)
                    )
                except IndexIncomplete as error:
                    self.writer.waiting_searches.add(search)
                    try:
                        # Between two steps, others can write.
                        while await self.alone(lambda _, place=error.place: self.writer.index_step(place)):  # type: ignore[misc]
                            pass
                    except (StoreDamaged, StoreClosed):
                        raise
                    except StoreError as cause:
                        # Nothing is written for the caller: a full disk can still be read.
                        self.writer.indexing_error = str(cause)
                        work = partial(answer_without_waiting, work)
                else:
                    return found
        finally:
            self.writer.waiting_searches.discard(search)

    def hand_over(self) -> None:
        """Give the threads what this loop's tasks have handed in so far, without waiting for the loop's next turn."""
        self._groups.hand_over(asyncio.get_running_loop())
        self._readers.hand_over()

    def stop(self) -> None:
        """Finish what was handed in and close every connection. Blocks."""
        self._groups.close()
        self._thread.join()
        self._readers.stop()
        self.writer.close()

    def _check_open(self) -> None:
        if self.is_orphan:
            raise StoreClosed(f"{self.path} was opened before this process was forked; open it again here")
        if self._groups.closing:
            raise StoreClosed(f"{self.path} has been closed")

    def _submit(self, work: _Work) -> asyncio.Future[Any]:
        self._check_open()
        return self._groups.submit(work)

    def _run(self) -> None:
        while jobs := self._next_jobs():
            # Whatever happens, the callers hear of it, and the thread goes on: without it they would wait forever.
            try:
                outcomes = self._carry_out(jobs)
            except Exception as error:
                self.writer.note(error)
                outcomes = [error] * len(jobs)
            deliver(jobs, outcomes)
            self._checkpoint()

    def _next_jobs(self) -> list[Job[_Work]]:
        """Wait for work, and index batches until it comes. Returns nothing only when the engine is closed."""
        groups = self._groups
        while self.writer.index_is_incomplete:
            # On a server that always has something to write, there may be no pause.
            overdue = time.monotonic() - self._indexed_at > _MOST_SECONDS_WITHOUT_INDEXING
            if not (overdue and not groups.closing) and groups.wait(_PAUSE_SECONDS):
                break
            self.writer.index_next()
            self._indexed_at = time.monotonic()
            self._checkpoint()
        return groups.take()

    def _checkpoint(self) -> None:
        try:
            self.writer.checkpoint_when_due(waiting=bool(self.waiting), quiet=self._readers.gate.closed)
        except Exception as error:
            self.writer.note(error)

    def _carry_out(self, jobs: list[Job[_Work]]) -> Sequence[Any]:
        if callable(jobs[0].work):
            return [self.writer.alone(jobs[0].work)]
        change_sets = [cast("ChangeSet", job.work) for job in jobs]
        outcomes: list[Receipt | Exception] = []
        for _, together in groupby(change_sets, attrgetter("is_batch")):
            outcomes += self._commit([*together])
        return outcomes

    def _commit(self, change_sets: Sequence[ChangeSet]) -> list[Receipt | Exception]:
        outcomes = self.writer.commit(change_sets)
        damage = next((each for each in outcomes if isinstance(each, StoreDamaged) and index_is_damaged(each)), None)
        if damage is not None:
            self.writer.rebuild_index(damage)
            outcomes = self.writer.commit(change_sets)
        return outcomes


def _in_transaction(work: Callable[[apsw.Connection], T], connection: apsw.Connection) -> T:
    connection.execute("BEGIN")
    try:
        return work(connection)
    finally:
        connection.execute("ROLLBACK")


_TICK_NANOSECONDS: Final = 50_000_000
"""The clock of file systems may stand still for a few milliseconds: a commit that follows soon may leave no trace."""


def change_token(path: Path) -> str:
    """Return a text that is another one once anybody has committed to a database: the state of its write-ahead log."""
    seen = [state_of(Path(f"{path}{suffix}")) for suffix in ("-wal", "")]
    now = time.time_ns()
    fresh = any(now - modified < _TICK_NANOSECONDS for _, modified in seen)
    return f"{seen}{now if fresh else ''}"


Key: TypeAlias = tuple[Path, str | None]


@dataclass(slots=True)
class _Slot:
    """The engine of one file, and the lock of those who open and close it. Other files do not wait for them."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    engine: Engine | None = None


_slots: Final[dict[Key, _Slot]] = {}
_orphans: Final[list[Engine]] = []
_inherited: Final[set[Identity]] = set()
"""Files that were open when this process was forked."""


def acquire(path: Path, options: Options) -> Engine:
    """Return the engine of a file, shared by everybody in this process who has it open."""
    if not options.in_memory:
        with translated(path, "opening"):
            path = path.expanduser().absolute().resolve()
            refuse_unsafe_places(path)
            make_folder(path.parent)
    if (known := identity(path)) is not None and known in _inherited:
        raise StoreRefused(
            f"{path} was open when this process was forked, and SQLite cannot tell the two apart; open it only after "
            "forking, or start processes with multiprocessing's 'spawn' method"
        )
    slot = _slots.setdefault((path, options.vfs), _Slot())
    with slot.lock:
        engine = slot.engine
        # An engine whose file was removed or replaced is left to those who still hold it.
        if engine is None or identity(path) != engine.identity:
            if not options.in_memory:
                with translated(path, "opening"):
                    refuse_damaged_log(path)
            engine = slot.engine = Engine(path, options)
        else:
            engine.users += 1
        return engine


def release(engine: Engine) -> None:
    """Give an engine back; the last one to do so stops it. Blocks until it has finished."""
    if engine.is_orphan:
        return
    slot = _slots[engine.path, engine.options.vfs]
    with slot.lock:
        engine.users -= 1
        if engine.users == 0:
            if slot.engine is engine:
                slot.engine = None
                if engine.options.in_memory:  # its name is never used again
                    del _slots[engine.path, engine.options.vfs]
            # Within the lock: whoever opens the file again meets it closed, never closing.
            engine.stop()


def _after_fork_in_child() -> None:
    # The parent's threads are not here, and its connections must not be closed from here: they are kept, unused.
    for slot in _slots.values():
        if slot.engine is not None:
            slot.engine.is_orphan = True
            _orphans.append(slot.engine)
            if slot.engine.identity is not None:
                _inherited.add(slot.engine.identity)
    _slots.clear()


def _at_exit() -> None:
    for slot in list(_slots.values()):
        if slot.engine is not None:
            slot.engine.stop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
atexit.register(_at_exit)
