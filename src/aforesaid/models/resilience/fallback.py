"""Try models in order until one answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Final, Generic

from aforesaid.errors import ModelError, ModelGarbled, ModelRefused, ModelUnavailable, NoModel
from aforesaid.models.resilience.contract import Ask, Got, Service, What, begin

_log: Final = logging.getLogger("aforesaid.models")


class Fallback(Generic[What, Got]):
    """Calls models in order until one begins to answer.

    Each gets an equal share of the time that is left, so that one which hangs does not use up the time of the next. A
    spending limit ends it: the next model would cost as well.
    """

    def __init__(self, chain: Sequence[Service[What, Got]]) -> None:
        self._chain = chain

    async def call(self, ask: Ask[What]) -> AsyncGenerator[Got, None]:
        """Yield what the first model that begins to answer yields."""
        async with aclosing(await self._begin(ask)) as pieces:
            async for piece in pieces:
                yield piece

    async def _begin(self, ask: Ask[What]) -> AsyncGenerator[Got, None]:
        time = asyncio.get_running_loop().time
        failures: list[ModelError] = []
        for number, service in enumerate(self._chain):
            now = time()
            share = (ask.answer_by - now) / (len(self._chain) - number)
            try:
                return await begin(service, replace(ask, answer_by=now + share))
            except (ModelUnavailable, ModelRefused, ModelGarbled) as error:
                failures.append(error)
                if number + 1 < len(self._chain):
                    _log.warning("%s falls back to the next model: %s", ask.operation, error)
        raise _together(ask, failures)


def _together(ask: Ask[What], failures: list[ModelError]) -> ModelError:
    """Combine errors: the result is retryable if one of them is, otherwise it needs a person."""
    if not failures:
        return NoModel(f"no model is configured to {ask.operation}")
    if len(failures) == 1:
        return failures[0]
    text = f"no model of the chain did {ask.operation!r}: " + "; ".join(str(error) for error in failures)
    waits = [error.retry_after for error in failures if isinstance(error, ModelUnavailable)]
    if waits:
        return ModelUnavailable(text, retry_after=min((wait for wait in waits if wait is not None), default=None))
    kind = ModelRefused if any(isinstance(error, ModelRefused) for error in failures) else ModelGarbled
    return kind(text)
