"""Log repeated warnings at most once per interval."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Lock
from typing import Final

SECONDS_BETWEEN: Final = 10.0
"""Minimum seconds between two warnings of a kind. A dead disk fails every call, and the log must not fill the disk."""


class ThrottledLog:
    """Logs the first warning of a kind at once, and later ones once per interval with the number of skipped ones."""

    def __init__(self, seconds: float = SECONDS_BETWEEN, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._lock = Lock()
        self._told: dict[str, tuple[float, int]] = {}
        """By kind: the time of the last warning, and the number of warnings skipped since."""

    def warn(self, log: logging.Logger, kind: str, text: str) -> None:
        """Log a warning, unless one of this kind was logged within the last interval."""
        now = self._clock()
        with self._lock:
            last, left_out = self._told.get(kind, (float("-inf"), 0))
            if now - last < self._seconds:
                self._told[kind] = last, left_out + 1
                return
            self._told[kind] = now, 0
        log.warning("%s%s", text, f" ({left_out:,} similar warnings were skipped)" if left_out else "")
