"""The same memory for code that does not await: one generic facade over the async one.

Every call runs on an event loop in a thread of its own, through an anyio portal. Nothing is written twice: methods are
passed on by name, and `_sync_types.pyi` (made from the async classes) tells editors and type checkers about them.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import anyio
from anyio.from_thread import BlockingPortal

from aforesaid.domain.message import MOST_IN_BATCH
from aforesaid.errors import StoreClosed
from aforesaid.memory import Memory, UserMemory, connect
from aforesaid.models.embed import Embedder
from aforesaid.settings import Settings
from aforesaid.store import Store

if TYPE_CHECKING:
    from aforesaid import _sync_types as types

T = TypeVar("T")


def open(  # noqa: A001 - reads as aforesaid.open
    location: str | os.PathLike[str] | Store | None = None,
    *,
    profile: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    embedder: str | Embedder | None = None,
    settings: Settings | Mapping[str, object] | str | os.PathLike[str] | None = None,
) -> types.SyncMemory:
    """Open a memory: `with aforesaid.open(…) as memory`, or call `memory.close()` at the end. See `connect`."""
    connecting = connect(location, profile=profile, embedder=embedder, settings=settings)
    loop = _Loop()
    try:
        memory = loop.run(connecting.__aenter__)
    except BaseException:
        loop.stop()
        raise
    return cast("types.SyncMemory", SyncMemory(memory, loop))


class _Loop:
    """An event loop in its own thread."""

    def __init__(self) -> None:
        self._stopping = threading.Lock()
        self._closed = False
        self._process = os.getpid()
        started: Future[BlockingPortal] = Future()

        async def serve() -> None:
            async with BlockingPortal() as portal:
                started.set_result(portal)
                await portal.sleep_until_stopped()

        # A daemon thread: a program that forgets to close its memory can still end, and has lost nothing.
        self._thread = threading.Thread(target=anyio.run, args=(serve,), name="aforesaid-loop", daemon=True)
        self._thread.start()
        self._portal = started.result()

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def run(self, call: Callable[[], Awaitable[T]]) -> T:
        """Run a call on the loop and wait for its result. Raises StoreClosed after `stop`, and in a forked child."""
        with self._refused():
            return self._portal.call(call)

    async def wait(self, call: Callable[[], Awaitable[T]]) -> T:
        """Run a call on the loop and await its result on the caller's. Raises StoreClosed as `run` does."""
        with self._refused():
            return await asyncio.wrap_future(self._portal.start_task_soon(call))

    @contextmanager
    def _refused(self) -> Iterator[None]:
        if os.getpid() != self._process:
            # The thread of the loop is not in the child, so nothing would ever answer.
            raise StoreClosed("this memory was opened before this process was forked; open it in the child process")
        try:
            yield
        except RuntimeError as error:
            if self._closed or not self.running:
                raise StoreClosed("this memory has been closed") from error
            raise

    def stop(self, before: Callable[[], Awaitable[None]] | None = None) -> None:
        """Stop once, whoever asks first; the others wait until it has stopped. Does nothing in a forked child."""
        if os.getpid() != self._process:
            return
        with self._stopping:
            if self._closed or not self.running:
                return
            try:
                if before is not None:
                    self._portal.call(before)
            finally:
                self._closed = True
                self._portal.start_task_soon(self._portal.stop)
                self._thread.join()


class SyncUserMemory:
    """One user's memory for sync code: forwards every call to the event loop and waits for its result."""

    def __init__(self, target: Memory | UserMemory, loop: _Loop) -> None:
        self._target = target
        self._loop = loop

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as many types as there are attributes
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(self._target, name)
        if not callable(value):
            return value
        waits = inspect.iscoroutinefunction(value)

        @functools.wraps(value)
        def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            if waits:
                args = tuple(map(_drawn, args))
                kwargs = {key: _drawn(each) for key, each in kwargs.items()}
                return self._loop.run(functools.partial(value, *args, **kwargs))
            result = value(*args, **kwargs)
            return SyncUserMemory(result, self._loop) if isinstance(result, UserMemory) else result

        return call

    def __dir__(self) -> list[str]:
        return [name for name in dir(self._target) if not name.startswith("_")]

    def __repr__(self) -> str:
        return f"<blocking {self._target!r}>"


def _drawn(argument: Any) -> Any:  # noqa: ANN401 - any argument
    """Return the items of a generator, read in the caller's thread: it may use the memory, or a database of its own."""
    return tuple(islice(argument, MOST_IN_BATCH + 1)) if isinstance(argument, Iterator) else argument


class SyncMemory(SyncUserMemory):
    """A memory for sync code. It owns the event loop that everything runs on."""

    def close(self) -> None:
        """Close the memory and stop its event loop. A second call does nothing."""
        self._loop.stop(before=cast("Memory", self._target).close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def unwrapped(memory: object) -> tuple[Any, _Loop | None]:
    """Return the async memory inside a sync one, and the loop that it must be called on; None for an async one."""
    if isinstance(memory, SyncUserMemory):
        return memory._target, memory._loop  # noqa: SLF001 - the sync classes hide everything of their own
    return memory, None
