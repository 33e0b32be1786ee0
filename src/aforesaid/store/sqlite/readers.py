"""The threads that read a file, each with a connection of its own.

Handing work to a thread and hearing back costs more than most reads do, and threads lose time in waiting for one
another. So what is asked for in the same turn of an event loop goes to one thread together, in one transaction; but of
what may take long only one, and last.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import apsw

from aforesaid.store.groups import GroupCommitQueue, Job, deliver
from aforesaid.store.sqlite.connection import Options, connect_reader, translated
from aforesaid.store.sqlite.writer import close_quietly

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
    """A piece of reading."""

    work: Callable[[apsw.Connection], Any]
    short: bool


class _Waiting(GroupCommitQueue[_Reading]):
    """Reads that wait for a thread."""

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
    """A few threads that read one file."""

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
        """Give the threads what this loop's tasks have asked for so far."""
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
                ready.append(self._outcome(connection, job))
                if time.monotonic() - since > _PATIENCE_SECONDS and len(jobs) > 1:
                    deliver(jobs[place + 1 - len(ready) : place + 1], ready)
                    ready, since = [], time.monotonic()
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        deliver(jobs[len(jobs) - len(ready) :], ready)

    def _outcome(self, connection: apsw.Connection, job: Job[_Reading]) -> Any:  # noqa: ANN401 - whatever is read
        if job.future.cancelled():
            return None
        try:
            with translated(self._path, "reading"):
                if not connection.in_transaction:
                    connection.execute("BEGIN")  # for the first of them, or after a failure of the disk
                return job.work.work(connection)
        except Exception as error:
            return error
