"""Timeouts of calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Generic

from aforesaid.errors import ModelUnavailable
from aforesaid.models.resilience.contract import Ask, Got, Service, What


class Deadline(Generic[What, Got]):
    """Aborts calls that take too long: until the first piece, between two pieces, or in total."""

    def __init__(self, inner: Service[What, Got], name: str, *, stall: float) -> None:
        self._inner = inner
        self._name = name
        self._stall = stall

    async def call(self, ask: Ask[What]) -> AsyncGenerator[Got, None]:
        """Yield the pieces that arrive in time. Raises ModelUnavailable on a timeout."""
        time = asyncio.get_running_loop().time
        started, next_by, came = time(), min(ask.answer_by, ask.over_by), 0
        async with aclosing(self._inner.call(ask)) as pieces:
            while True:
                try:
                    # The timeout covers waiting only: the caller's work between two pieces is never cancelled.
                    async with asyncio.timeout_at(next_by):
                        piece = await anext(pieces)
                except StopAsyncIteration:
                    return
                except TimeoutError:
                    what = f"fell silent after {came} pieces" if came else "did not answer"
                    raise self._late(what, time() - started, ask) from None
                if came and time() >= ask.over_by:
                    # Pieces that arrive without waiting would never hit the timeout.
                    raise self._late(f"was not done after {came} pieces", time() - started, ask)
                came += 1
                yield piece
                next_by = min(ask.over_by, time() + self._stall)

    def _late(self, what: str, seconds: float, ask: Ask[What]) -> ModelUnavailable:
        return ModelUnavailable(
            f"{self._name} {what}; given up after {seconds:.1f} s. If it is only slow, raise the timeout of "
            f"{ask.operation!r}"
        )
