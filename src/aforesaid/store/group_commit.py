"""What many callers hand in, for threads that take it in groups."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from aforesaid.errors import StoreClosed

_log: Final = logging.getLogger("aforesaid.store")

GROUP: Final = 512
"""Maximum pieces of work that are done together, in one transaction."""

Work = TypeVar("Work")


class Job(NamedTuple, Generic[Work]):
    """A piece of work, and who waits for it."""

    work: Work
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]


class GroupCommitQueue(Generic[Work]):
    """A queue from many event loops to a thread, or a few. Work that can be called is a group of its own."""

    def __init__(self, place: object) -> None:
        """`place` is what the work is done on."""
        self._place = place
        self._mailboxes: dict[asyncio.AbstractEventLoop, list[Job[Work]]] = {}
        self._pending: deque[Job[Work]] = deque()
        self._something = threading.Condition()
        self._woken = False
        """Whether a thread is on its way: what comes until it is here, it takes too."""
        self.closing = False

    @property
    def waiting(self) -> int:
        return len(self._pending)

    def submit(self, work: Work) -> asyncio.Future[Any]:
        """Hand in a piece of work. The future has its outcome."""
        if self.closing:
            raise StoreClosed(f"{self._place} has been closed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        mailbox = self._mailboxes.get(loop)
        if mailbox is None:
            # All that the loop's tasks hand in during this turn of the loop goes to the thread together: it is woken
            # once, and the two do not fight for the interpreter over every single message.
            mailbox = self._mailboxes[loop] = []
            self._begin_turn(loop)
        mailbox.append(Job(work, loop, future))
        return future

    def _begin_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_soon(self.hand_over, loop)

    def hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        """Give the thread what a loop's tasks have handed in so far."""
        jobs = self._mailboxes.pop(loop, [])
        if not jobs:
            return  # they went before their turn
        with self._something:
            if self.closing:
                _settle([(job.future, StoreClosed(f"{self._place} has been closed")) for job in jobs])
                return
            self._pending.extend(jobs)
            if not self._woken:
                self._woken = True
                self._something.notify()

    def close(self) -> None:
        with self._something:
            self.closing = True
            self._something.notify_all()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until there is work, or until it is closed; False after so long."""
        with self._something:
            return self._something.wait_for(lambda: bool(self._pending) or self.closing, seconds)

    def take(self) -> list[Job[Work]]:
        """Wait for work. Returns nothing only when it is closed and all is done."""
        with self._something:
            self._something.wait_for(lambda: bool(self._pending) or self.closing)
            self._woken = False
            group = self._next()
            if self._pending:
                self._woken = True
                self._something.notify()  # there is some for another thread
            return group

    def _next(self) -> list[Job[Work]]:
        """Take what comes next off those that wait."""
        if self._pending and callable(self._pending[0].work):
            return [self._pending.popleft()]
        group: list[Job[Work]] = []
        while self._pending and len(group) < GROUP and not callable(self._pending[0].work):
            group.append(self._pending.popleft())
        return group


def deliver(jobs: Sequence[Job[Any]], outcomes: Sequence[Any]) -> None:
    """Tell everybody who waits what came of it. An outcome that is an exception is raised there."""
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
        settle(future, outcome)


def settle(future: asyncio.Future[Any], outcome: Any) -> None:  # noqa: ANN401 - whatever the work returns
    """Give a future its outcome, unless its caller was cancelled. One that is an exception is raised there."""
    if future.done():
        return
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
