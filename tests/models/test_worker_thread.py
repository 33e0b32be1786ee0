"""The thread of the embedder answers questions first."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

from aforesaid.models.embed.local import Worker


async def keep_busy(worker: Worker) -> tuple[asyncio.Future[None], threading.Event]:
    """Occupy the thread until the event is set."""
    busy, goes_on = threading.Event(), threading.Event()

    def first() -> None:
        busy.set()
        goes_on.wait(60)

    begun = worker.submit(first)
    await asyncio.to_thread(busy.wait, 60)
    return begun, goes_on


async def test_urgent_calls_come_before_others_that_wait() -> None:
    worker, done = Worker("test"), list[str]()
    begun, goes_on = await keep_busy(worker)
    waiting = [worker.submit(partial(done.append, name)) for name in ("batch 1", "batch 2")]
    waiting += [worker.submit(partial(done.append, name), urgent=True) for name in ("question 1", "question 2")]
    goes_on.set()
    await asyncio.gather(begun, *waiting)
    worker.stop()
    assert done == ["question 1", "question 2", "batch 1", "batch 2"]


async def test_a_call_that_nobody_waits_for_any_more_is_not_made() -> None:
    worker, done = Worker("test"), list[str]()
    begun, goes_on = await keep_busy(worker)
    given_up = worker.submit(lambda: done.append("given up"))
    given_up.cancel()
    last = worker.submit(lambda: done.append("last"))
    goes_on.set()
    await asyncio.gather(begun, last)
    worker.stop()
    assert done == ["last"]
