"""Background work: loops that repeat until the memory closes, tasks, and pauses of the garbage collector."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import Context
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Generic, ParamSpec, TypeAlias, TypeVar

from aforesaid.errors import AforesaidError

_log: Final = logging.getLogger("aforesaid.background")

Work: TypeAlias = Callable[[], Awaitable[float | None]]
"""One run. It returns after how many seconds to run again without being woken; None: only when woken."""

RETRY_SECONDS: Final = 1.0
LONGEST_RETRY_SECONDS: Final = 60.0
_RETRY_FACTOR: Final = 4.0


@dataclass(slots=True)
class LoopStatus:
    """What a loop did since it was started."""

    name: str
    runs: int = 0
    failures: int = 0
    """All failed runs."""
    failures_in_a_row: int = 0
    last_success: datetime | None = None
    last_error: str | None = None
    last_error_at: datetime | None = None
    unexpected: bool = False
    """Whether the last run ended with an exception that is not one of ours, such as a library's ValueError."""

    @property
    def error(self) -> str | None:
        """Why the last run failed; None if it did not."""
        return self.last_error if self.failures_in_a_row else None


class BackgroundLoop:
    """Runs one piece of work again and again. Made by `BackgroundLoops.add`."""

    def __init__(
        self,
        name: str,
        work: Work,
        *,
        debounce_seconds: float = 0.0,
        debounce_rounds: int = 1,
        retry_seconds: float = RETRY_SECONDS,
        longest_retry_seconds: float = LONGEST_RETRY_SECONDS,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        log: logging.Logger = _log,
    ) -> None:
        """Repeat `work`.

        A run that `wake` asked for begins `debounce_seconds` later; each further `wake` in that time delays it again,
        at most `debounce_rounds` times in all. After a failure it runs again after `retry_seconds`, four times as long
        after each further failure, and at most `longest_retry_seconds`. `sleep` waits for the debounce time.
        """
        self.name = name
        self.status = LoopStatus(name)
        self.stopped = False
        self._work = work
        self._debounce_seconds = debounce_seconds
        self._debounce_rounds = debounce_rounds
        self._retry_seconds = retry_seconds
        self._longest_retry_seconds = longest_retry_seconds
        self._sleep = sleep
        self._log = log
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self, delay_seconds: float = 0.0) -> None:
        """Start the loop, with its first run after `delay_seconds`. A loop that runs or was stopped is left alone."""
        self._begin(delay_seconds)

    def wake(self, within_seconds: float = 0.0) -> None:
        """Ask for a run soon, or for one within some seconds. Starts the loop if needed; does nothing after `stop`."""
        if within_seconds:
            self._begin(within_seconds)
            return
        self._woken.set()
        self._begin(None)

    async def stop(self) -> None:
        """Cancel the run in progress and end the loop for good. Never raises: failures were logged when they came."""
        self.stopped = True
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait((task,))

    def _begin(self, delay_seconds: float | None) -> None:
        if self._task is None and not self.stopped:
            # In a context of its own: a loop outlives the request that happened to start it.
            self._task = Context().run(asyncio.create_task, self._run(delay_seconds), name=f"aforesaid-{self.name}")

    async def _run(self, wait_seconds: float | None) -> None:
        while True:
            await self._wait(wait_seconds)
            wait_seconds = await self._attempt()
            if self.status.failures_in_a_row:
                # Being woken does not shorten this: asking a service that is down more often helps nobody.
                await asyncio.sleep(self._pause())
                wait_seconds = 0.0

    async def _wait(self, seconds: float | None) -> None:
        """Wait until woken, at most for `seconds`; then until no further call to `wake` came for the debounce time."""
        if seconds == 0:
            return
        try:
            # Not `wait_for`: on Python 3.11 it swallows a cancellation that comes together with the event.
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            return
        for _ in range(self._debounce_rounds):
            self._woken.clear()
            await self._sleep(self._debounce_seconds)
            if not self._woken.is_set():
                return
        self._woken.clear()

    async def _attempt(self) -> float | None:
        """Run the work once; return after how many seconds to run it again, if it succeeded."""
        status = self.status
        status.runs += 1
        try:
            again_seconds = await self._work()
        except (Exception, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            status.failures += 1
            status.failures_in_a_row += 1
            status.last_error_at = datetime.now(UTC)
            status.unexpected = not isinstance(error, AforesaidError)
            if status.unexpected:
                status.last_error = f"{type(error).__name__}: {error}"
                self._log.error("%s failed; next try in %g s", self.name, self._pause(), exc_info=error)
            else:
                status.last_error = str(error)
                self._log.warning("%s failed; next try in %g s: %s", self.name, self._pause(), error)
            return None
        status.failures_in_a_row = 0
        status.unexpected = False
        status.last_success = datetime.now(UTC)
        return again_seconds

    def _pause(self) -> float:
        failures = min(self.status.failures_in_a_row, 10)
        return min(self._retry_seconds * _RETRY_FACTOR ** (failures - 1), self._longest_retry_seconds)


class BackgroundLoops:
    def __init__(self) -> None:
        self._loops: list[BackgroundLoop] = []

    def add(self, loop: BackgroundLoop) -> BackgroundLoop:
        """Register a loop: health shows it, and it ends with the memory. Returns it."""
        self._loops = [each for each in self._loops if not each.stopped]
        self._loops.append(loop)
        return loop

    def statuses(self) -> list[LoopStatus]:
        """Return the status of every loop that has run and was not stopped, in the order of their names."""
        running = [loop.status for loop in self._loops if not loop.stopped and loop.status.runs]
        return sorted(running, key=lambda status: status.name)

    async def close(self) -> None:
        """End all loops, last added first."""
        for loop in reversed(self._loops):
            await loop.stop()


_task_log: Final = logging.getLogger("aforesaid")

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

    A caller that holds a lock meanwhile releases it only after the function has returned.
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
            _task_log.error("closing failed", exc_info=other)
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


_paused = False


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause the collector of cyclic garbage, for the whole process, while many objects are made that stay.

    It would look at all of them again and again, which takes a quarter of the time of storing a batch, and find nothing
    to free. What runs inside must be bounded and wait for nothing. Pauses are not added up: where the collector is
    paused already, the one who paused it resumes it.
    """
    global _paused  # noqa: PLW0603 - there is one collector
    if not gc.isenabled():
        yield
        return
    gc.disable()
    _paused = True
    try:
        yield
    finally:
        _paused = False
        gc.enable()


def _resume_in_child() -> None:
    if _paused:
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_resume_in_child)
