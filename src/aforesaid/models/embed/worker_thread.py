"""A worker thread for calls that would block the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class _Call(NamedTuple):
    function: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]


class Worker:
    """Runs one call after the other in a daemon thread: a program can end while a model is still loading.

    Urgent calls, for which somebody waits, come before all others.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._urgent: deque[_Call] = deque()
        self._others: deque[_Call] = deque()
        self._tickets: SimpleQueue[bool] = SimpleQueue()
        """True for each call that waits, False to stop."""
        self._thread: threading.Thread | None = None

    @property
    def started(self) -> bool:
        """Whether there was a call, so that the thread runs."""
        return self._thread is not None

    async def run(self, call: Callable[[], T]) -> T:
        """Run a call in the thread and return what it returns."""
        return await self.submit(call)

    def submit(self, call: Callable[[], T], *, urgent: bool = False) -> asyncio.Future[T]:
        """Queue a call for the thread, and return its future."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        (self._urgent if urgent else self._others).append(_Call(call, loop, future))
        self._tickets.put(True)
        return future

    def stop(self) -> None:
        """Stop the thread after its current call, without waiting for it."""
        if self._thread is not None:
            self._tickets.put(False)
            self._thread = None

    def _serve(self) -> None:
        while self._tickets.get():
            function, loop, future = (self._urgent or self._others).popleft()
            if future.cancelled():
                continue  # nobody waits for it any more
            try:
                outcome, error = function(), None
            except Exception as raised:
                outcome, error = None, raised
            try:
                loop.call_soon_threadsafe(_settle, future, outcome, error)
            except RuntimeError:
                continue  # the caller's event loop is closed


def _settle(future: asyncio.Future[Any], outcome: object, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(outcome)
    else:
        future.set_exception(error)
