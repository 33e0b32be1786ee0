"""A limit on concurrent calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Generic

from aforesaid.errors import ModelUnavailable
from aforesaid.models.resilience.contract import Ask, Got, Service, What


class ConcurrencyLimit:
    """The places at one provider. All its models share them."""

    def __init__(self, name: str, count: int) -> None:
        self.name = name
        self.count = count
        self._free = asyncio.Semaphore(count)

    async def take(self, until: float) -> None:
        """Wait for a free place, first come first served."""
        try:
            async with asyncio.timeout_at(until):
                await self._free.acquire()
        except TimeoutError:
            raise ModelUnavailable(
                f"{self.name} is busy: its {self.count} places at a time were taken until the deadline. Raise its "
                f"concurrency or the timeout"
            ) from None

    def give_back(self) -> None:
        """Let the next one in."""
        self._free.release()


class Limited(Generic[What, Got]):
    """Keeps a place from the question to the last piece."""

    def __init__(self, inner: Service[What, Got], limit: ConcurrencyLimit) -> None:
        self._inner = inner
        self._limit = limit

    async def call(self, ask: Ask[What]) -> AsyncGenerator[Got, None]:
        """Yield the answer, when it is one's turn."""
        await self._limit.take(ask.answer_by)
        try:
            async with aclosing(self._inner.call(ask)) as pieces:
                async for piece in pieces:
                    yield piece
        finally:
            self._limit.give_back()
