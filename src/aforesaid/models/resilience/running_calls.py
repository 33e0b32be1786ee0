"""Cancel running calls when their owner is closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aforesaid.errors import ModelUnavailable


class RunningCalls:
    """The running calls. Closing cancels them and prevents new ones."""

    def __init__(self) -> None:
        self._running: set[asyncio.Timeout] = set()
        self._closed = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run a call. Raises ModelUnavailable if `close` is called before it ends."""
        if self._closed:
            raise ModelUnavailable(_WHY)
        # A timeout whose deadline `close` sets to now: it ends the call without cancelling its caller.
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
        """Cancel all running calls."""
        self._closed = True
        for limit in self._running:
            limit.reschedule(asyncio.get_running_loop().time())


_WHY = "the memory was closed before the model answered"
