"""A queue that runs the jobs of one thread in order and different threads concurrently."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, TypeAlias

_log: Final = logging.getLogger("aforesaid.bots")

Job: TypeAlias = Callable[[], Awaitable[object]]


class PerThreadQueue:
    """Runs jobs with the same key one after the other, and at most `at_once` keys at a time.

    A key without jobs takes no memory.
    """

    def __init__(self, at_once: int) -> None:
        self._places = asyncio.Semaphore(at_once)
        self._waiting: dict[Hashable, deque[Job]] = {}
        self._workers: set[asyncio.Task[None]] = set()

    def add(self, key: Hashable, job: Job) -> None:
        """Queue a job behind the other jobs of its key."""
        if key in self._waiting:
            self._waiting[key].append(job)
            return
        self._waiting[key] = deque([job])
        worker = asyncio.create_task(self._work(key), name=f"aforesaid-key-{key}")
        self._workers.add(worker)
        worker.add_done_callback(self._workers.discard)

    def waiting(self, key: Hashable | None = None) -> int:
        """Return the number of waiting and running jobs of one key, or of all keys."""
        if key is not None:
            return len(self._waiting.get(key, ()))
        return sum(map(len, self._waiting.values()))

    async def idle(self) -> None:
        """Wait until all jobs are done."""
        while self._workers:
            await asyncio.wait(self._workers)

    async def finish(self, patience: float) -> int:
        """Wait at most `patience` seconds for the jobs, then cancel the rest. Return how many were cancelled."""
        if self._workers:
            await asyncio.wait(self._workers, timeout=patience)
        left = self.waiting()
        for worker in list(self._workers):
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        self._waiting.clear()
        return left

    async def _work(self, key: Hashable) -> None:
        jobs = self._waiting[key]
        try:
            while jobs:
                async with self._places:
                    try:
                        await jobs[0]()
                    except Exception:
                        # A failed job must not stop the next ones; the operator sees it in the log.
                        _log.exception("a message could not be handled")
                jobs.popleft()
        finally:
            if self._waiting.get(key) is jobs:
                del self._waiting[key]
