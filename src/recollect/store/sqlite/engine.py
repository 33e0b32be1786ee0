"""One owner per file and process: a thread that writes, and a few that read.

Many callers hand in change sets; the writer takes whatever is waiting, stores all of it in one transaction and syncs
once for everybody (group commit). A caller hears back only after that sync. Waiting makes the next group larger, so
the cost of a sync is shared by the more callers the slower the disk is.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar, cast

import apsw

from recollect.domain.receipt import Receipt
from recollect.errors import StoreClosed
from recollect.store.sqlite.caches import Caches
from recollect.store.sqlite.connection import Options, connect_reader, identity, translated
from recollect.store.sqlite.transaction import Step
from recollect.store.sqlite.writer import Writer, close_quietly

_log: Final = logging.getLogger("recollect.store")

T = TypeVar("T")

GROUP: Final = 512
"""At most so many change sets share a transaction."""
_DRAIN_SECONDS: Final = 0.25
"""So long readers may take to finish before the log is copied back without waiting for them."""


class _Job(NamedTuple):
    work: Sequence[Step] | Callable[[apsw.Connection], Any]
    """A change set, or something that needs the writing connection for itself."""
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]


class _Gate:
    """What readers pass through, so that all of them can be kept out for a moment."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._shut = False

    @contextmanager
    def passed(self) -> Iterator[None]:
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
        with self._changed:
            self._shut = True
            self._changed.wait_for(lambda: self._inside == 0, timeout=_DRAIN_SECONDS)
        try:
            yield
        finally:
            with self._changed:
                self._shut = False
                self._changed.notify_all()


class Engine:
    """The one writer of a file in this process, and its readers."""

    def __init__(self, path: Path, options: Options) -> None:
        """Open the file, creating or migrating it as needed."""
        self.path = path
        self.options = options
        self.users = 1
        self.is_orphan = False
        """True in a forked child, where the threads of the engine do not exist."""
        self.writer = Writer(path, options)
        self.identity = identity(path)
        self.caches = Caches()
        self._mailboxes: dict[asyncio.AbstractEventLoop, list[_Job]] = {}
        self._pending: deque[_Job] = deque()
        self._something = threading.Condition()
        self._closing = False
        self._gate = _Gate()
        self._local = threading.local()
        self._reader_connections: list[apsw.Connection] = []
        self._readers = ThreadPoolExecutor(options.readers, thread_name_prefix="recollect-reader")
        self._thread = threading.Thread(target=self._run, name="recollect-writer", daemon=True)
        self._thread.start()

    @property
    def holds_its_file(self) -> bool:
        """Whether the path still leads to the file that was opened."""
        return identity(self.path) == self.identity

    @property
    def waiting(self) -> int:
        """How many change sets wait for the writer."""
        return len(self._pending)

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

    def hand_over(self) -> None:
        """Give the writer what this loop's tasks have handed in so far, without waiting for the loop's next turn."""
        self._post(asyncio.get_running_loop())

    def stop(self) -> None:
        """Finish what was handed in and close every connection. Blocks."""
        with self._something:
            self._closing = True
            self._something.notify()
        self._thread.join()
        self._readers.shutdown(wait=True)
        for connection in self._reader_connections:
            close_quietly(connection, self.path)
        self.writer.close()

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
        jobs = self._mailboxes.pop(loop, [])
        with self._something:
            if self._closing:
                _settle([(job.future, StoreClosed(f"{self.path} has been closed")) for job in jobs])
                return
            self._pending.extend(jobs)
            self._something.notify()

    def _read(self, work: Callable[[apsw.Connection], T]) -> T:
        with translated(self.path, "reading"), self._gate.passed():
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
            # Whatever happens, the callers hear of it, and the thread goes on: without it they would wait forever.
            try:
                outcomes = self._carry_out(jobs)
            except Exception as error:
                self.writer.note(error)
                outcomes = [error] * len(jobs)
            self._deliver(jobs, outcomes)
            try:
                self.writer.checkpoint_when_due(waiting=bool(self._pending), quiet=self._gate.closed)
            except Exception as error:
                self.writer.note(error)

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

    def _carry_out(self, jobs: list[_Job]) -> Sequence[Any]:
        if callable(jobs[0].work):
            return [self.writer.alone(jobs[0].work)]
        return self.writer.commit([cast("Sequence[Step]", job.work) for job in jobs])

    def _deliver(self, jobs: list[_Job], outcomes: Sequence[Any]) -> None:
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
        for job, outcome in zip(jobs, outcomes, strict=True):
            by_loop.setdefault(job.loop, []).append((job.future, outcome))
        for loop, settled in by_loop.items():
            try:
                loop.call_soon_threadsafe(_settle, settled)
            except RuntimeError:
                _log.warning("%d results came after their event loop had closed; nobody heard them", len(settled))


def _settle(settled: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, outcome in settled:
        if future.done():  # the caller was cancelled
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
