"""Limits how many searches and contexts run at a time.

All searches of a process share one interpreter and one embedder. If every caller of an overloaded server starts at
once, all of them take turns and finish late together. With a few at a time, each is quick once it has started, and the
others start in the order in which they came. Bulk work, such as an import, gives way to them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from time import monotonic, perf_counter
from typing import Final
from weakref import WeakKeyDictionary

from aforesaid.telemetry import OWN, RECALL_WAIT, Metrics

AT_ONCE: Final = 8
"""Searches and contexts that run at a time. More do not get more done on one interpreter, and each takes longer."""
QUIET_SECONDS: Final = 0.05
"""Somebody who searched within this time is likely to search again: bulk work waits."""
GIVE_WAY_SECONDS: Final = 0.5
"""Maximum time that a batch of bulk work waits for searches. It comes second, but it comes."""


class QueueTimeout(TimeoutError):
    """A search waited too long for its turn."""


class Turn:
    """A turn that a task holds."""

    __slots__ = ("_queue", "_tasks")

    def __init__(self, queue: RecallQueue) -> None:
        self._queue = queue
        # Tasks are compared, because a task that is started within a turn inherits its context and may outlive it.
        self._tasks = {asyncio.current_task()}

    def covers(self, queue: RecallQueue) -> bool:
        """Return whether the current task may search in this turn of a queue."""
        return self._queue is queue and asyncio.current_task() in self._tasks

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Let a task that was started within the turn search in it during the block, until the turn ends."""
        task = asyncio.current_task()
        joins = bool(self._tasks) and task not in self._tasks
        if joins:
            self._tasks.add(task)
        try:
            yield
        finally:
            if joins:
                self._tasks.discard(task)

    def end(self) -> None:
        """Let nobody search in it any more."""
        self._tasks.clear()


_current_turn: Final[ContextVar[Turn | None]] = ContextVar("current_turn", default=None)


class RecallQueue:
    """The queue of one open memory, first come, first served."""

    def __init__(self, metrics: Metrics, at_once: int = AT_ONCE) -> None:
        self._metrics = metrics
        self._at_once = at_once
        self.waiting = 0
        """How many searches and contexts wait for their turn."""
        self._running = 0
        self._last_ended = float("-inf")
        """When the last search ended, in seconds of the monotonic clock."""
        self._free: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    @asynccontextmanager
    async def turn(self, most_seconds: float | None = None) -> AsyncIterator[Turn]:
        """Wait for a turn, and hold it during the block. Raises QueueTimeout if none came within `most_seconds`.

        A search within the turn of a context does not wait again. One in a task that was started within the turn waits
        for a turn of its own, unless the task shares this one.
        """
        held = _current_turn.get()
        if held is not None and held.covers(self):
            yield held
            return
        loop = asyncio.get_running_loop()
        free = self._free.get(loop)
        if free is None:
            free = self._free[loop] = asyncio.Semaphore(self._at_once)
        await self._acquire(free, most_seconds)
        turn = Turn(self)
        token = _current_turn.set(turn)
        self._running += 1
        try:
            yield turn
        finally:
            self._running -= 1
            self._last_ended = monotonic()
            turn.end()
            _current_turn.reset(token)
            free.release()

    async def give_way(self) -> None:
        """Wait until nobody has searched for a moment. Bulk work calls this before each of its batches."""
        until = monotonic() + GIVE_WAY_SECONDS
        while self._busy and (left := until - monotonic()) > 0:  # noqa: ASYNC110 - the end of a quiet time is no event
            await asyncio.sleep(min(QUIET_SECONDS, left))

    @property
    def _busy(self) -> bool:
        return self._running > 0 or monotonic() - self._last_ended < QUIET_SECONDS

    async def _acquire(self, free: asyncio.Semaphore, most_seconds: float | None) -> None:
        """Wait for a turn. The metrics count only callers that had to wait."""
        if not free.locked():
            await free.acquire()
            return
        began = perf_counter()
        self.waiting += 1
        try:
            async with asyncio.timeout(most_seconds):
                await free.acquire()
        except TimeoutError:
            self._metrics.called(RECALL_WAIT, OWN, perf_counter() - began, failure="timeout")
            raise QueueTimeout(f"no search began within {most_seconds:g} s") from None
        finally:
            self.waiting -= 1
        self._metrics.called(RECALL_WAIT, OWN, perf_counter() - began)
