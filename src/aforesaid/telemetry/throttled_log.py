"""Writing the same thing down once in a while, however often it happens."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Lock
from typing import Final

SECONDS_BETWEEN: Final = 10.0
"""A dead disk fails every call; a log that repeats it helps nobody, and fills what is left of the disk."""


class ThrottledLog:
    """Lets the first of a kind through, and after a while the next, which says how many were left out."""

    def __init__(self, seconds: float = SECONDS_BETWEEN, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._lock = Lock()
        self._told: dict[str, tuple[float, int]] = {}
        """When it was last told, and how many were left out since, by kind."""

    def tell(self, log: logging.Logger, kind: str, text: str) -> None:
        """Write a warning down, unless one of this kind was written down a moment ago."""
        now = self._clock()
        with self._lock:
            last, left_out = self._told.get(kind, (float("-inf"), 0))
            if now - last < self._seconds:
                self._told[kind] = last, left_out + 1
                return
            self._told[kind] = now, 0
        log.warning("%s%s", text, f" (and {left_out:,} times more before)" if left_out else "")
