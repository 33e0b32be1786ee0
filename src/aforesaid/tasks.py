"""Beginning and ending what runs beside the rest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")


def begin(work: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
    """Begin with something that may turn out not to be needed: if nobody awaits it, nobody is told how it failed."""
    begun = asyncio.ensure_future(work)
    begun.add_done_callback(_heard)
    return begun


def _heard(begun: asyncio.Future[Any]) -> None:
    if not begun.cancelled():
        begun.exception()


async def end(task: asyncio.Task[Any] | None) -> None:
    """Cancel a task, and return when it is over. What it failed with is raised here.

    Whoever waits here can be cancelled, too: the task that is ended and the one that ends it are not mixed up.
    """
    if task is None:
        return
    task.cancel()
    await asyncio.wait((task,))
    if not task.cancelled():
        task.result()


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, None], name: str) -> AsyncIterator[None]:
    """Do some work beside the block, and no longer than it takes."""
    task = asyncio.create_task(work, name=name)
    try:
        yield
    finally:
        await end(task)
