"""Leaving a database alone that does not answer, so that callers hear of it at once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final, Literal

from aforesaid.errors import StoreUnavailable

_log: Final = logging.getLogger("aforesaid.store")

_PROBE_SECONDS: Final = 2.0


class Breaker:
    """Opens when a call has waited for the database in vain. Then one call per interval may try; the first success closes.

    Only a database that cannot be reached counts. One that refuses what was asked is there.
    """

    def __init__(
        self, name: str, probe_seconds: float = _PROBE_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._name = name
        self._interval = probe_seconds
        self._clock = clock
        self._next_probe: float | None = None
        self.error: str | None = None
        """Why it is open."""

    @property
    def state(self) -> Literal["closed", "open", "half-open"]:
        """Closed: calls go through. Open: none does. Half-open: the next call tries."""
        if self._next_probe is None:
            return "closed"
        return "open" if self._clock() < self._next_probe else "half-open"

    def admit(self) -> bool:
        """Let a call through, or raise; tell whether it is a probe, which does not wait."""
        if self._next_probe is None:
            return False
        left = self._next_probe - self._clock()
        if left > 0:
            raise StoreUnavailable(
                f"{self._name} is left alone for {left:.1f} s, because it did not answer. The last failure: {self.error}"
            )
        self._next_probe = self._clock() + self._interval
        return True

    def answered(self) -> None:
        """Note that the database answered."""
        if self._next_probe is not None:
            _log.warning("%s answers again", self._name)
            self._next_probe, self.error = None, None

    def failed(self, error: Exception) -> None:
        """Note that a call has given up."""
        if self._next_probe is None:
            _log.error("%s does not answer and is left alone: %s", self._name, error)
        self._next_probe, self.error = self._clock() + self._interval, str(error)
