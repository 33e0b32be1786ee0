"""Leaving a provider alone that is down."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final, Generic, Literal, NamedTuple

from aforesaid.errors import ModelGarbled, ModelRefused, ModelUnavailable
from aforesaid.models.resilience.contract import Ask, Got, Service, What
from aforesaid.settings import Resilience

_log: Final = logging.getLogger("aforesaid.models")


class BreakerState(NamedTuple):
    """How a provider is doing."""

    state: Literal["closed", "open", "half-open"]
    """Closed: calls go through. Open: none does. Half-open: a probe is on its way."""
    failures: int
    """In a row."""
    retry_in: float | None
    """Seconds until the next probe may go; None where the breaker is closed."""
    error: str | None
    """The last failure, while there is one."""


class BreakerOpen(ModelUnavailable):
    """The breaker is open: no call was made."""


class Breaker:
    """Opens after so many failures in a row; then lets one probe through per interval; closes at the first success.

    What counts is a provider that is unavailable. One that refuses a request or writes nonsense is there. With c calls
    at a time, a dead provider gets at most failures + c - 1 calls before it is left alone.
    """

    def __init__(self, name: str, resilience: Resilience, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self._limit = resilience.failures
        self._interval = resilience.probe_seconds
        self._clock = clock
        self._failures = 0
        self._error: ModelUnavailable | None = None
        self._next_probe: float | None = None
        """None while closed."""
        self._probes = 0

    def check(self) -> None:
        """Raise while the breaker is open and no probe is due."""
        if self._next_probe is not None and (left := self._next_probe - self._clock()) > 0:
            raise BreakerOpen(
                f"{self.name} is left alone after {self._failures} failures in a row; the next try is in {left:.1f} s. "
                f"The last failure: {self._error}",
                retry_after=left,
            )

    def admit(self) -> bool:
        """Let a call through, or raise; tell whether it is the probe of this interval."""
        self.check()
        if self._next_probe is None:
            return False
        self._next_probe = self._clock() + self._interval
        self._probes += 1
        return True

    def done(self, *, probe: bool) -> None:
        """Note that an admitted call is over, whatever came of it."""
        self._probes -= probe

    def answered(self) -> None:
        """Note that the provider answered."""
        if self._next_probe is not None:
            _log.warning("%s answers again", self.name)
        self._failures, self._error, self._next_probe = 0, None, None

    def failed(self, error: ModelUnavailable) -> None:
        """Note that it did not."""
        self._failures += 1
        self._error = error
        if self._next_probe is None and self._failures >= self._limit:
            self._next_probe = self._clock() + self._interval
            _log.warning(
                "%s failed %d times in a row and is left alone for %g s: %s",
                self.name,
                self._failures,
                self._interval,
                error,
            )

    def state(self) -> BreakerState:
        """Describe it."""
        error = None if self._error is None else str(self._error)
        if self._next_probe is None:
            return BreakerState("closed", self._failures, None, error)
        state: Literal["open", "half-open"] = "half-open" if self._probes else "open"
        return BreakerState(state, self._failures, max(0.0, self._next_probe - self._clock()), error)


class Checked(Generic[What, Got]):
    """Turns callers away at once while a breaker is open, before they queue for anything."""

    def __init__(self, inner: Service[What, Got], breaker: Breaker) -> None:
        self._inner = inner
        self._breaker = breaker

    async def call(self, ask: Ask[What]) -> AsyncGenerator[Got, None]:
        """Yield the answer, or raise Resting."""
        self._breaker.check()
        async with aclosing(self._inner.call(ask)) as pieces:
            async for piece in pieces:
                yield piece


class Guarded(Generic[What, Got]):
    """Tells a breaker how calls go."""

    def __init__(self, inner: Service[What, Got], breaker: Breaker) -> None:
        self._inner = inner
        self._breaker = breaker

    async def call(self, ask: Ask[What]) -> AsyncGenerator[Got, None]:
        """Yield the answer, or raise Resting."""
        probe = self._breaker.admit()
        try:
            async with aclosing(self._inner.call(ask)) as pieces:
                async for piece in pieces:
                    # At the first piece, not after the last: a caller may stop listening in between.
                    self._breaker.answered()
                    yield piece
        except ModelUnavailable as error:
            self._breaker.failed(error)
            raise
        except (ModelRefused, ModelGarbled):
            self._breaker.answered()
            raise
        finally:
            self._breaker.done(probe=probe)
