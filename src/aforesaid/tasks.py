"""Starting, sharing and ending tasks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Hashable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, Generic, ParamSpec, TypeVar

_log: Final = logging.getLogger("aforesaid")

T = TypeVar("T")
P = ParamSpec("P")


def begin(work: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
    """Start a task whose result may not be needed: its exception is ignored unless somebody awaits it."""
    begun = asyncio.ensure_future(work)
    begun.add_done_callback(_heard)
    return begun


def _heard(begun: asyncio.Future[Any]) -> None:
    if not begun.cancelled():
        begun.exception()


async def end(task: asyncio.Task[Any] | None) -> None:
    """Cancel a task and wait until it has ended. Raises what it failed with.

    The caller can be cancelled too: its own cancellation is not mistaken for that of the task.
    """
    if task is None:
        return
    task.cancel()
    await asyncio.wait((task,))
    if not task.cancelled():
        task.result()


async def to_the_end(function: Callable[P, T], *values: P.args, **named: P.kwargs) -> T:
    """Run a function in another thread. If the caller is cancelled meanwhile, wait until the function has returned.

    For changes that the caller protects with a lock: otherwise the lock would be free before they are complete.
    """
    working = asyncio.ensure_future(asyncio.to_thread(function, *values, **named))
    try:
        return await asyncio.shield(working)
    finally:
        while not working.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait((working,))


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, None], name: str) -> AsyncIterator[None]:
    """Run a task while the block runs, and cancel it at the end of the block."""
    task = asyncio.create_task(work, name=name)
    try:
        yield
    finally:
        await end(task)


async def close_all(*closers: Callable[[], Awaitable[object]]) -> None:
    """Call every closer, in this order, also when some of them fail. Then raise the first failure.

    Further failures are logged, and added to the first one as notes.
    """
    failures: list[BaseException] = []
    for close in closers:
        try:
            await close()
        except (Exception, asyncio.CancelledError) as error:
            failures.append(error)
    if not failures:
        return
    # A caller that was cancelled must see that, whatever else failed.
    first = next((each for each in failures if isinstance(each, asyncio.CancelledError)), failures[0])
    for other in failures:
        if other is not first:
            _log.error("closing failed", exc_info=other)
            first.add_note(f"closing also failed with {type(other).__name__}: {other}")
    raise first


@dataclass(slots=True)
class _Flight(Generic[T]):
    task: asyncio.Task[T]
    waiting: int = 0


class SingleFlight(Generic[T]):
    """Runs one call per key at a time: whoever asks for a key while its call runs gets the result of that call."""

    def __init__(self) -> None:
        self._flights: dict[Hashable, _Flight[T]] = {}

    async def run(self, key: Hashable, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of the call for `key`, made now unless one is under way. All callers get its exception.

        The call is cancelled when everybody who waits for it was.
        """
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight(asyncio.create_task(call()))
            flight.task.add_done_callback(_heard)
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting:
                flight.task.cancel()
            if (not flight.waiting or flight.task.done()) and self._flights.get(key) is flight:
                del self._flights[key]
