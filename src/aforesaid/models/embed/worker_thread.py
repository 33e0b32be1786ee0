"""A worker thread for calls that would block the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class Worker:
    """Runs one call after the other in a daemon thread: a program can end while a model is still loading."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: SimpleQueue[tuple[Callable[[], Any], asyncio.AbstractEventLoop, asyncio.Future[Any]] | None]
        self._calls = SimpleQueue()
        self._thread: threading.Thread | None = None

    async def run(self, call: Callable[[], T]) -> T:
        """Run a call in the thread and return what it returns."""
        return await self.submit(call)

    def submit(self, call: Callable[[], T]) -> asyncio.Future[T]:
        """Queue a call for the thread, and return its future."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._calls.put((call, loop, future))
        return future

    def stop(self) -> None:
        """Stop the thread after its current call, without waiting for it."""
        if self._thread is not None:
            self._calls.put(None)
            self._thread = None

    def _serve(self) -> None:
        while (job := self._calls.get()) is not None:
            call, loop, future = job
            try:
                outcome, error = call(), None
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
