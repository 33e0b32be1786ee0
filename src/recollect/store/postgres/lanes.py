"""Group commit: callers hand in change sets, and those that wait together are stored in one transaction.

A space always uses the same lane, so what one process writes to it is stored in the order in which it was handed in.
Waiting makes the next group larger, so the cost of a commit is shared by the more callers the slower the disk is.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple
from zlib import crc32

from recollect.domain.clock import now
from recollect.domain.receipt import Receipt
from recollect.errors import RecollectError, StoreClosed, StoreUnavailable
from recollect.store.postgres.database import Database
from recollect.store.postgres.transaction import Step, append_all, can_share, carry_out, spaces_of

GROUP: Final = 512
"""At most so many change sets share a transaction."""


class _Job(NamedTuple):
    steps: Sequence[Step]
    spaces: set[str]
    future: asyncio.Future[Receipt]


class Lanes:
    """All writing of one store."""

    def __init__(self, database: Database, count: int) -> None:
        self._database = database
        self.count = count
        self._pending: list[deque[_Job]] = [deque() for _ in range(count)]
        self._tasks: list[asyncio.Task[None] | None] = [None] * count
        self._closed = False
        self.last_commit: int | None = None
        self.last_error: str | None = None

    @property
    def waiting(self) -> int:
        """How many change sets wait."""
        return sum(len(pending) for pending in self._pending)

    def submit(self, steps: Sequence[Step]) -> asyncio.Future[Receipt]:
        """Store a change set. The result arrives when it is durable, also for a caller who has stopped waiting."""
        if self._closed:
            raise StoreClosed(f"{self._database.pool.shown} has been closed")
        spaces = spaces_of(steps)
        lane = crc32(min(spaces, default="").encode()) % len(self._pending)
        future: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        self._pending[lane].append(_Job(steps, spaces, future))
        if self._tasks[lane] is None:
            self._tasks[lane] = asyncio.create_task(self._run(lane), name=f"recollect-writer-{lane}")
        return future

    async def close(self) -> None:
        """Finish what was handed in."""
        self._closed = True
        await asyncio.gather(*[task for task in self._tasks if task is not None])

    async def _run(self, lane: int) -> None:
        pending = self._pending[lane]
        try:
            while pending:
                group = _next_group(pending)
                for job, outcome in zip(group, await self._commit(group, lane), strict=True):
                    _settle(job.future, outcome)
        finally:
            self._tasks[lane] = None

    async def _commit(self, group: list[_Job], lane: int) -> Sequence[Receipt | Exception]:
        # Whatever happens, the callers hear of it: without an answer they would wait forever.
        try:
            receipts = await self._store(group, lane)
        except StoreUnavailable as error:
            return self._failed(group, error)
        except Exception as error:
            if len(group) == 1:
                return self._failed(group, error)
            # One of them is at fault. Each is tried alone, so that only that one fails.
            return [outcome for job in group for outcome in await self._commit([job], lane)]
        self.last_commit, self.last_error = now(), None
        return receipts

    async def _store(self, group: list[_Job], lane: int) -> list[Receipt]:
        spaces = sorted({space for job in group for space in job.spaces})
        if len(group) == 1:
            steps = group[0].steps
            if not spaces:
                return [Receipt(True, (None,) * len(steps))]
            return [Receipt(True, await self._database.write(spaces, lane, lambda unit: carry_out(unit, steps)))]
        change_sets = [job.steps for job in group]
        stored = await self._database.write(spaces, lane, lambda unit: append_all(unit, change_sets))
        return [Receipt(True, results) for results in stored]

    def _failed(self, group: list[_Job], error: Exception) -> Sequence[Exception]:
        if not isinstance(error, RecollectError) or isinstance(error, StoreUnavailable):
            self.last_error = str(error)
        return [error] * len(group)


def _next_group(pending: deque[_Job]) -> list[_Job]:
    group = [pending.popleft()]
    while pending and len(group) < GROUP and can_share(group[0].steps) and can_share(pending[0].steps):
        group.append(pending.popleft())
    return group


def _settle(future: asyncio.Future[Receipt], outcome: Receipt | Exception) -> None:
    if future.done():  # the caller was cancelled
        return
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
