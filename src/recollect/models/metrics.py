"""What asking models took, counted in this process."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from types import MappingProxyType
from typing import Final, NamedTuple

from recollect.errors import ModelError, ModelGarbled, ModelRefused, ModelUnavailable, SpendingLimit

SECONDS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper ends of the classes of latency. The last class has none."""

_KINDS: Final = {
    ModelUnavailable: "unavailable",
    ModelRefused: "refused",
    ModelGarbled: "garbled",
    SpendingLimit: "limit",
}


class Measured(NamedTuple):
    """What one operation of one model took, since the process started."""

    calls: int = 0
    """Requests that went out, whether or not they were answered."""
    failures: Mapping[str, int] = MappingProxyType({})
    """By kind: `unavailable`, `refused`, `garbled`, `limit`, `abandoned` (the caller gave up), `other`."""
    seconds: float = 0.0
    """Of all calls together."""
    latencies: tuple[int, ...] = (0,) * (len(SECONDS) + 1)
    """How many calls fall into each class: up to the first of SECONDS, up to the second, …, longer than the last."""
    prompt_tokens: int = 0
    reply_tokens: int = 0
    cache_hits: int = 0
    """Answers that needed no call."""


class Key(NamedTuple):
    """What is counted together."""

    operation: str
    model: str


@dataclass(slots=True)
class _Counts:
    calls: int = 0
    failures: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    latencies: list[int] = field(default_factory=lambda: [0] * (len(SECONDS) + 1))
    prompt_tokens: int = 0
    reply_tokens: int = 0
    cache_hits: int = 0


class Metrics:
    """Counts per operation and model. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: dict[Key, _Counts] = {}

    def called(
        self,
        operation: str,
        model: str,
        seconds: float,
        *,
        prompt_tokens: int = 0,
        reply_tokens: int = 0,
        failure: str | None = None,
    ) -> None:
        """Count a call; `failure` is the kind of its failure."""
        with self._lock:
            counts = self._of(operation, model)
            counts.calls += 1
            counts.seconds += seconds
            counts.latencies[bisect_left(SECONDS, seconds)] += 1
            counts.prompt_tokens += prompt_tokens
            counts.reply_tokens += reply_tokens
            if failure is not None:
                counts.failures[failure] = counts.failures.get(failure, 0) + 1

    def cache_hit(self, operation: str, model: str) -> None:
        """Count an answer that was known already."""
        with self._lock:
            self._of(operation, model).cache_hits += 1

    def snapshot(self) -> dict[Key, Measured]:
        """Return all counts as they are now."""
        with self._lock:
            return {
                key: Measured(
                    counts.calls,
                    MappingProxyType(dict(counts.failures)),
                    counts.seconds,
                    tuple(counts.latencies),
                    counts.prompt_tokens,
                    counts.reply_tokens,
                    counts.cache_hits,
                )
                for key, counts in self._counts.items()
            }

    def _of(self, operation: str, model: str) -> _Counts:
        return self._counts.setdefault(Key(operation, model), _Counts())


def kind_of(error: ModelError) -> str:
    """Name the kind of a failure, for counting."""
    return next((kind for cls, kind in _KINDS.items() if isinstance(error, cls)), "other")
