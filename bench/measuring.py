"""Timing and printing."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager


@contextmanager
def stopwatch() -> Iterator[Callable[[], float]]:
    """Yield a function that returns the seconds since the block began."""
    start = time.perf_counter()
    yield lambda: time.perf_counter() - start


async def latencies(call: Callable[[int], Awaitable[object]], count: int, warm: int) -> list[float]:
    """Return how long each of `count` calls took, in milliseconds, after `warm` calls that are not counted."""
    for number in range(warm):
        await call(number)
    taken = []
    for number in range(warm, warm + count):
        start = time.perf_counter()
        await call(number)
        taken.append((time.perf_counter() - start) * 1000)
    return taken


def percentiles(taken: list[float]) -> str:
    """Format p50 and p99."""
    cuts = statistics.quantiles(taken, n=100)
    return f"p50 {statistics.median(taken):7.3f} ms   p99 {cuts[98]:7.3f} ms"


def heading(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}", flush=True)


def row(label: str, value: str) -> None:
    print(f"  {label:<58} {value}", flush=True)
