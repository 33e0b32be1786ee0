"""Group commit: callers hand in change sets, and those that wait together are stored in one transaction.

What one process writes to a space is stored in the order in which it was handed in: no two of its transactions work in
the same space at a time, and nothing overtakes what waits for the same space. Waiting makes the next group larger, so
the cost of a commit is shared by the more callers the slower the disk is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from aforesaid.domain.checks import now
from aforesaid.domain.receipt import Receipt, Result
from aforesaid.errors import AforesaidError, StoreClosed, StoreError, StoreUnavailable
from aforesaid.store.contract import Progress, reporting
from aforesaid.store.group_commit import GROUP, settle
from aforesaid.store.operations import Change
from aforesaid.store.placing import Latest, Place, Prepared, Returning, Step, prepare_change
from aforesaid.store.postgres.database import Database
from aforesaid.store.postgres.queries import answered
from aforesaid.store.postgres.transaction import Appender, Continuation, WriteTransaction
from aforesaid.store.ranking import hashed


def prepared(changes: Sequence[Change], progress: Progress | None = None) -> list[Step]:
    return [prepare_change(change, hashed) for change in reporting(changes, "prepared", progress)]


def spaces_of(steps: Sequence[Step]) -> set[str]:
    return {space for step in steps for space in step.spaces}


async def carry_out(
    transaction: WriteTransaction,
    change_sets: Sequence[Sequence[Step]],
    known: dict[Place, Latest],
    progress: Progress | None = None,
) -> list[tuple[Result, ...]]:
    """Carry out change sets together, and note in `known` which sessions are the newest."""
    messages = [step.message if isinstance(step, Returning) else step for steps in change_sets for step in steps]
    appender = Appender(transaction, [step for step in messages if isinstance(step, Prepared)])
    await appender.begin()
    results = [
        tuple(
            [
                await answered(transaction.queries, appender.carry_out(step))
                for step in reporting(steps, "stored", progress)
            ]
        )
        for steps in change_sets
    ]
    appender.write()
    if len(known) > _KNOWN:
        known.clear()
    known.update(appender.newest_sessions())
    return results


_KNOWN: Final = 10_000
"""Threads whose newest sessions a process knows, before it begins anew."""
ENOUGH: Final = 128
"""Change sets that do not wait for the group before them to be stored."""


class _Job(NamedTuple):
    steps: Sequence[Step]
    spaces: set[str]
    shares: bool
    """Whether it may be stored together with others."""
    future: asyncio.Future[Receipt]
    progress: Progress | None


class Writer:
    def __init__(self, database: Database, transactions: int) -> None:
        """Write to `database`, in at most `transactions` at a time."""
        self._database = database
        self._transactions = transactions
        self._waiting: list[_Job] = []
        self._held: set[str] = set()
        """The spaces in which a transaction works."""
        self._known: dict[Place, Latest] = {}
        """The newest sessions of threads. Others may have changed them since."""
        self._running: dict[asyncio.Task[None], bool] = {}
        """The transactions, and whether each is one that others could have shared."""
        self._starting = False
        self._closed = False
        self.last_commit: int | None = None
        self.last_error: str | None = None

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def submit(self, steps: Sequence[Step], progress: Progress | None = None) -> asyncio.Future[Receipt]:
        """Store a change set. The result arrives when it is durable, also for a caller who has stopped waiting."""
        if self._closed:
            raise StoreClosed(f"{self._database.pool.shown} has been closed")
        future: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        shares = progress is None and all(isinstance(step, Prepared) and not step.can_be_refused for step in steps)
        self._waiting.append(_Job(steps, spaces_of(steps), shares, future, progress))
        self._start_soon()
        return future

    async def close(self) -> None:
        self._closed = True
        self._start()
        while self._running:
            await asyncio.wait([*self._running])
            self._start()

    def _start_soon(self) -> None:
        """Begin what can be begun, once everybody who has something to hand in at this moment has done so."""
        if not self._starting:
            self._starting = True
            asyncio.get_running_loop().call_soon(self._start)

    def _start(self) -> None:
        self._starting = False
        while len(self._running) < self._transactions and (group := self._next_group()):
            spaces = {space for job in group for space in job.spaces}
            self._held |= spaces
            task = asyncio.create_task(self._run(group, spaces), name="aforesaid-writer")
            self._running[task] = group[0].shares
            task.add_done_callback(self._ended)

    def _next_group(self) -> list[_Job]:
        """Take what can be stored together out of what waits: one job, or several that share."""
        group: list[_Job] = []
        left: list[_Job] = []
        blocked = set(self._held)
        # On Citus a transaction that writes to one space writes to one machine: each space has its own.
        apart = self._database.pool.distributed
        sharing = not apart and any(self._running.values()) and len(self._waiting) < ENOUGH
        for place, job in enumerate(self._waiting):
            if len(group) == GROUP or (group and not group[0].shares):
                left += self._waiting[place:]
                break
            fits = job.shares if group else not (job.shares and sharing)
            if apart and group:
                fits = fits and job.spaces == group[0].spaces
            if fits and blocked.isdisjoint(job.spaces):
                group.append(job)
            else:
                left.append(job)
                blocked |= job.spaces
        self._waiting = left
        return group

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._running[task]
        if self._waiting:
            # Whoever was answered hands in the next message before this happens, and it joins those that waited.
            self._start_soon()

    async def _run(self, group: list[_Job], spaces: set[str]) -> None:
        try:
            for job, outcome in zip(group, await self._commit(group), strict=True):
                settle(job.future, outcome)
        finally:
            self._held -= spaces

    async def _commit(self, group: list[_Job]) -> Sequence[Receipt | Exception]:
        # Whatever happens, the callers hear of it: without an answer they would wait forever.
        try:
            receipts = await self._store(group)
        except StoreUnavailable as error:
            return self._failed(group, error)
        except Exception as error:
            if len(group) == 1:
                return self._failed(group, error)
            # One of them is at fault. Each is tried alone, so that only that one fails.
            return [outcome for job in group for outcome in await self._commit([job])]
        self.last_commit, self.last_error = now(), None
        return receipts

    async def _store(self, group: list[_Job]) -> list[Receipt]:
        spaces = sorted({space for job in group for space in job.spaces})
        if not spaces:
            return [Receipt(True, (None,) * len(job.steps)) for job in group]
        change_sets, at_once = [job.steps for job in group], None
        if group[0].shares and sum(map(len, change_sets)) == 1 and isinstance(step := change_sets[0][0], Prepared):
            continuation = Continuation(step, self._known)
            at_once = continuation if continuation.possible else None
        stored = await self._database.write(
            spaces,
            "writer",
            lambda within: carry_out(within, change_sets, self._known, group[0].progress),
            at_once,
        )
        return [Receipt(True, results) for results in stored]

    def _failed(self, group: list[_Job], error: Exception) -> Sequence[Exception]:
        if not isinstance(error, AforesaidError) or isinstance(error, StoreError):
            self.last_error = str(error)
        return [error] * len(group)
