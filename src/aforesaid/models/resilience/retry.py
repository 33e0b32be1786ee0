"""Retry a call after a delay."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final, Generic

from aforesaid.errors import ModelError, ModelUnavailable
from aforesaid.extras import how_to_install
from aforesaid.models.resilience.breaker import BreakerOpen
from aforesaid.models.resilience.contract import Ask, Got, Service, What, begin

_log: Final = logging.getLogger("aforesaid.models")


class _SaidAlready(logging.Filter):
    """Drops stamina's log records about retries: this module logs them, with the error."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not str(getattr(record, "stamina.caused_by", "")).startswith("ModelUnavailable(")


_SAID_ALREADY: Final = _SaidAlready()


class Retry(Generic[What, Got]):
    """Asks again when a model is unavailable: after longer and longer pauses, or when the server said so.

    Never after the first piece, never past the deadline, and not while the breaker is open.
    """

    def __init__(
        self,
        inner: Service[What, Got],
        attempts: int,
        *,
        first_pause: float = 0.25,
        longest_pause: float = 5.0,
        jitter: float = 0.5,
    ) -> None:
        self._inner = inner
        self._attempts = attempts
        self._first_pause = first_pause
        self._longest_pause = longest_pause
        self._jitter = jitter

    async def call(self, ask: Ask[What]) -> AsyncGenerator[Got, None]:
        """Yield what the first attempt that begins to answer yields."""
        async with aclosing(await self._begin(ask)) as pieces:
            async for piece in pieces:
                yield piece

    async def _begin(self, ask: Ask[What]) -> AsyncGenerator[Got, None]:
        try:
            import stamina  # noqa: PLC0415 - only programs that use a model need it
        except ImportError as error:
            raise ModelError(f"calling a model needs stamina; {how_to_install('models')}") from error
        logging.getLogger("stamina").addFilter(_SAID_ALREADY)
        time = asyncio.get_running_loop().time
        pause = 0.0

        def again(error: Exception) -> bool | float:
            if not isinstance(error, ModelUnavailable) or isinstance(error, BreakerOpen):
                return False
            wait = pause if error.retry_after is None else error.retry_after
            if wait >= ask.answer_by - time():
                return False
            _log.info("retrying %s: %s", ask.operation, error)
            return True if error.retry_after is None else wait

        async for attempt in stamina.retry_context(
            on=again,
            attempts=self._attempts,
            timeout=None,
            wait_initial=self._first_pause,
            wait_max=self._longest_pause,
            wait_jitter=self._jitter,
        ):
            with attempt:
                pause = attempt.next_wait + self._jitter
                return await begin(self._inner, ask)
        raise AssertionError("stamina lets the last error through")
