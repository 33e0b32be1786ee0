"""Work in order within a lane, and side by side across queue."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, TypeAlias

_log: Final = logging.getLogger("aforesaid.bots")

Job: TypeAlias = Callable[[], Awaitable[object]]


class PerThreadQueue:
    """Runs jobs: those of one lane one after the other, in the order in which they came; at most so many at once.

    A lane that has nothing to do costs nothing.
    """

    def __init__(self, at_once: int) -> None:
        self._places = asyncio.Semaphore(at_once)
        self._waiting: dict[Hashable, deque[Job]] = {}
        self._workers: set[asyncio.Task[None]] = set()

    def add(self, lane: Hashable, job: Job) -> None:
        """Have a job done when it is its turn."""
        if lane in self._waiting:
            self._waiting[lane].append(job)
            return
        self._waiting[lane] = deque([job])
        worker = asyncio.create_task(self._work(lane), name=f"aforesaid-lane-{lane}")
        self._workers.add(worker)
        worker.add_done_callback(self._workers.discard)

    def waiting(self, lane: Hashable | None = None) -> int:
        """Return how many jobs wait or are at work, in one lane or in all."""
        if lane is not None:
            return len(self._waiting.get(lane, ()))
        return sum(map(len, self._waiting.values()))

    async def idle(self) -> None:
        """Wait until there is nothing to do."""
        while self._workers:
            await asyncio.wait(self._workers)

    async def finish(self, patience: float) -> int:
        """Let what was begun come to an end, for so many seconds. Return how many jobs were given up."""
        if self._workers:
            await asyncio.wait(self._workers, timeout=patience)
        left = self.waiting()
        for worker in list(self._workers):
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        self._waiting.clear()
        return left

    async def _work(self, lane: Hashable) -> None:
        jobs = self._waiting[lane]
        try:
            while jobs:
                async with self._places:
                    try:
                        await jobs[0]()
                    except Exception:
                        # One that fails must not keep the next ones from being done; the operator sees it in the log.
                        _log.exception("a message could not be handled")
                jobs.popleft()
        finally:
            if self._waiting.get(lane) is jobs:
                del self._waiting[lane]
