"""Circuit breakers: stop calling a provider that is down."""

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
    """The state of a circuit breaker."""

    state: Literal["closed", "open", "half-open"]
    """Closed: calls pass. Open: calls fail at once. Half-open: a test call is running."""
    failures: int
    """Number of consecutive failures."""
    retry_in: float | None
    """Seconds until the next test call; None if closed."""
    error: str | None
    """The last failure; None after a success."""
    answered: bool
    """Whether it ever answered since the process began."""


class BreakerOpen(ModelUnavailable):
    """The breaker is open: no call was made."""


class Breaker:
    """Opens after a number of consecutive failures; then lets one probe through per interval; closes at a success.

    Only an unavailable provider counts as a failure, not a refused request or a malformed reply. With c concurrent
    calls, a dead provider gets at most failures + c - 1 calls before the breaker opens.
    """

    def __init__(self, name: str, resilience: Resilience, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self._limit = resilience.failures
        self._interval = resilience.probe_seconds
        self._clock = clock
        self._failures = 0
        self._answered = False
        self._error: ModelUnavailable | None = None
        self._next_probe: float | None = None
        """None while closed."""
        self._probes = 0

    def check(self) -> None:
        """Raise BreakerOpen while the breaker is open and no test call is due."""
        if self._next_probe is not None and (left := self._next_probe - self._clock()) > 0:
            raise BreakerOpen(
                f"{self.name} is left alone after {self._failures} failures in a row; the next try is in {left:.1f} s. "
                f"The last failure: {self._error}",
                retry_after=left,
            )

    def admit(self) -> bool:
        """Let a call pass, or raise BreakerOpen. Return whether it is the test call of this interval."""
        self.check()
        if self._next_probe is None:
            return False
        self._next_probe = self._clock() + self._interval
        self._probes += 1
        return True

    def done(self, *, probe: bool) -> None:
        """Record that an admitted call has ended."""
        self._probes -= probe

    def answered(self) -> None:
        """Record a success."""
        if self._next_probe is not None:
            _log.warning("%s answers again", self.name)
        self._failures, self._error, self._next_probe, self._answered = 0, None, None, True

    def failed(self, error: ModelUnavailable) -> None:
        """Record a failure."""
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
        """Return the current state."""
        error = None if self._error is None else str(self._error)
        if self._next_probe is None:
            return BreakerState("closed", self._failures, None, error, self._answered)
        state: Literal["open", "half-open"] = "half-open" if self._probes else "open"
        return BreakerState(state, self._failures, max(0.0, self._next_probe - self._clock()), error, self._answered)


class Checked(Generic[What, Got]):
    """Fails at once while a breaker is open, before the call queues for a slot."""

    def __init__(self, inner: Service[What, Got], breaker: Breaker) -> None:
        self._inner = inner
        self._breaker = breaker

    async def call(self, ask: Ask[What]) -> AsyncGenerator[Got, None]:
        """Yield the answer, or raise BreakerOpen."""
        self._breaker.check()
        async with aclosing(self._inner.call(ask)) as pieces:
            async for piece in pieces:
                yield piece


class Guarded(Generic[What, Got]):
    """Reports the results of calls to a breaker."""

    def __init__(self, inner: Service[What, Got], breaker: Breaker) -> None:
        self._inner = inner
        self._breaker = breaker

    async def call(self, ask: Ask[What]) -> AsyncGenerator[Got, None]:
        """Yield the answer, or raise BreakerOpen."""
        probe = self._breaker.admit()
        try:
            async with aclosing(self._inner.call(ask)) as pieces:
                async for piece in pieces:
                    # Counted at the first piece, because the caller may stop before the last one.
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
