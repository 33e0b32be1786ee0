"""A limit on concurrent calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Generic

from aforesaid.errors import ModelUnavailable
from aforesaid.models.resilience.contract import Ask, Got, Service, What


class ConcurrencyLimit:
    """The concurrent calls allowed at one provider, shared by its models."""

    def __init__(self, name: str, count: int) -> None:
        self.name = name
        self.count = count
        self._free = asyncio.Semaphore(count)

    async def take(self, until: float) -> None:
        """Wait for a free slot, in order of arrival. Raises ModelUnavailable at the deadline."""
        try:
            async with asyncio.timeout_at(until):
                await self._free.acquire()
        except TimeoutError:
            raise ModelUnavailable(
                f"{self.name} is busy: its limit of {self.count} concurrent calls was in use until the deadline. "
                f"Raise its concurrency or the timeout"
            ) from None

    def give_back(self) -> None:
        """Release the slot."""
        self._free.release()


class Limited(Generic[What, Got]):
    """Holds a slot from the request to the last piece."""

    def __init__(self, inner: Service[What, Got], limit: ConcurrencyLimit) -> None:
        self._inner = inner
        self._limit = limit

    async def call(self, ask: Ask[What]) -> AsyncGenerator[Got, None]:
        """Yield the answer, once a slot is free."""
        await self._limit.take(ask.answer_by)
        try:
            async with aclosing(self._inner.call(ask)) as pieces:
                async for piece in pieces:
                    yield piece
        finally:
            self._limit.give_back()
