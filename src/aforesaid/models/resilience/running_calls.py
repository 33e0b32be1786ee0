"""Ending calls that are under way when whoever asks is closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aforesaid.errors import ModelUnavailable


class RunningCalls:
    """The calls that are under way. Once closed, they end at once, and no other begins."""

    def __init__(self) -> None:
        self._running: set[asyncio.Timeout] = set()
        self._closed = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Let a call run until it ends by itself or all of them are closed. Then it raises ModelUnavailable."""
        if self._closed:
            raise ModelUnavailable(_WHY)
        # A deadline that is never, until closing makes it now: it ends the call without cancelling its caller.
        limit = asyncio.timeout(None)
        try:
            async with limit:
                self._running.add(limit)
                try:
                    yield
                finally:
                    self._running.discard(limit)
        except TimeoutError:
            if limit.expired():
                raise ModelUnavailable(_WHY) from None
            raise

    def close(self) -> None:
        """End all of them."""
        self._closed = True
        for limit in self._running:
            limit.reschedule(asyncio.get_running_loop().time())


_WHY = "the memory was closed before the model answered"
