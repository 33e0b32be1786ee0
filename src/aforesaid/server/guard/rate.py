"""How much one caller may ask for."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

_MOST_CALLERS: Final = 10_000


class Rates:
    """A bucket of allowances for each caller: it fills steadily, and a request takes one out."""

    def __init__(self, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._burst = float(burst)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> float:
        """Take an allowance. Return 0, or in how many seconds there will be one."""
        left = self._left(caller)
        if left < 1:
            return (1 - left) / self._per_second
        self._keep(caller, left - 1)
        return 0.0

    def empty(self, caller: str) -> float:
        """Say, without taking one, in how many seconds there will be an allowance; 0 for now."""
        return max(1 - self._left(caller), 0.0) / self._per_second

    def _left(self, caller: str) -> float:
        left, at = self._buckets.get(caller, (self._burst, self._clock()))
        return min(self._burst, left + (self._clock() - at) * self._per_second)

    def _keep(self, caller: str, left: float) -> None:
        self._buckets[caller] = (left, self._clock())
        self._buckets.move_to_end(caller)
        if len(self._buckets) > _MOST_CALLERS:
            self._buckets.popitem(last=False)
