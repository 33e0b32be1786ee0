"""Metrics of this process: counters and timers of operations, and the kinds of failures that they count.

Nothing is sent anywhere, unless a setting says where to send spans (`telemetry.tracing`).
"""

from __future__ import annotations

import logging
import time
from asyncio import CancelledError
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock
from types import MappingProxyType
from typing import Final, NamedTuple

from aforesaid.domain.receipt import Receipt, Stored
from aforesaid.domain.scope import automatic_name
from aforesaid.errors import (
    InvalidInput,
    ModelError,
    ModelGarbled,
    ModelRefused,
    ModelUnavailable,
    NotFound,
    SourcesChanged,
    SpendingLimit,
    StoreError,
)
from aforesaid.telemetry.tracing import Tracing

_KINDS: Final[tuple[tuple[type[BaseException], str], ...]] = (
    (ModelUnavailable, "unavailable"),
    (ModelRefused, "refused"),
    (ModelGarbled, "garbled"),
    (SpendingLimit, "limit"),
    (ModelError, "other"),
    (InvalidInput, "invalid"),
    (NotFound, "invalid"),
    (SourcesChanged, "changed"),
    (StoreError, "store"),
    (CancelledError, "abandoned"),
    (TimeoutError, "timeout"),
)

CALLERS: Final = frozenset({"invalid", "abandoned"})
"""Kinds of failures that the caller caused. They do not count as errors of the memory."""


def kind_of(error: BaseException) -> str:
    """Return the kind of an exception; `other` if no rule applies."""
    return next((kind for cls, kind in _KINDS if isinstance(error, cls)), "other")


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


SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of the latency histogram's buckets, in seconds. The last bucket has no upper bound."""

OWN: Final = ""
"""The model of operations that use none, such as `add`."""
PROXY_RECALL: Final = "proxy_recall"
"""Operation: find memories for a proxy request. If it fails, the request is answered without memory."""
PROXY_SEARCH: Final = "proxy_search"
"""Operation: the search for a proxy request. If it fails, the request gets memories and recent messages without it."""
PROXY_STORE: Final = "proxy_store"
"""Operation: store the new messages of a proxy request, or its reply."""
RECALL_WAIT: Final = "recall_wait"
"""Operation: wait until fewer searches run. Searches that need not wait are not counted."""
UPSTREAM: Final = "upstream"
"""Operation: a request that the proxy passes on. Its model is the provider; it ends when the answer begins."""
SEARCH_VECTOR: Final = "search_vector"
"""Operation: embed the question of a search. After a failed one the search went by words alone."""

_CLASSES: Final = len(SECONDS) + 1


class OperationMetrics(NamedTuple):
    """Calls, failures and latencies of one operation, since the process started or since an earlier snapshot."""

    calls: int = 0
    """Number of calls, answered or not."""
    failures: Mapping[str, int] = MappingProxyType({})
    """Number of failures by kind.

    Models: `unavailable`, `refused`, `garbled`, `limit`. The memory's own operations: also `store`, `changed` and
    `invalid` (invalid arguments). Providers behind the proxy: `unavailable`, `timeout`, `invalid`, and the status of
    their answer, such as `503`. All: `abandoned` (the caller was cancelled), `other`.
    """
    seconds: float = 0.0
    """Total of all calls."""
    latencies: tuple[int, ...] = (0,) * _CLASSES
    """Number of calls per bucket of SECONDS; the last bucket counts calls above the last bound."""
    prompt_tokens: int = 0
    reply_tokens: int = 0
    cache_hits: int = 0
    """Cache hits."""

    @property
    def failed(self) -> int:
        """Number of failures that the caller did not cause."""
        return sum(count for kind, count in self.failures.items() if kind not in CALLERS)

    @property
    def error_rate(self) -> float:
        """Share of failed calls, 0 to 1. Calls that failed because of the caller are ignored."""
        counted = self.calls - sum(self.failures.values()) + self.failed
        return self.failed / counted if counted else 0.0

    @property
    def mean(self) -> float:
        return self.seconds / self.calls if self.calls else 0.0

    def within(self, part: float) -> float:
        """Return the seconds within which such a part of the calls was done: an upper bound, by the classes.

        Infinite where they took longer than the last class says.
        """
        wanted, seen = part * self.calls, 0
        if not self.calls:
            return 0.0
        for end, count in zip(SECONDS, self.latencies, strict=False):
            seen += count
            if seen >= wanted:
                return end
        return float("inf")

    def slower_than(self, seconds: float) -> int:
        """Return the number of calls in the buckets at or above this latency: a lower bound."""
        return sum(self.latencies[bisect_left(SECONDS, seconds) + 1 :])

    def since(self, before: OperationMetrics) -> OperationMetrics:
        failures = {kind: count - before.failures.get(kind, 0) for kind, count in self.failures.items()}
        return OperationMetrics(
            self.calls - before.calls,
            MappingProxyType({kind: count for kind, count in failures.items() if count}),
            self.seconds - before.seconds,
            tuple(now - then for now, then in zip(self.latencies, before.latencies, strict=True)),
            self.prompt_tokens - before.prompt_tokens,
            self.reply_tokens - before.reply_tokens,
            self.cache_hits - before.cache_hits,
        )


NOTHING: Final = OperationMetrics()


class Key(NamedTuple):
    """An operation and its model: the key of a counter."""

    operation: str
    model: str


@dataclass(slots=True)
class _Counts:
    calls: int = 0
    failures: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    latencies: list[int] = field(default_factory=lambda: [0] * _CLASSES)
    prompt_tokens: int = 0
    reply_tokens: int = 0
    cache_hits: int = 0


@dataclass(slots=True)
class _Pause:
    is_over: bool = False


_pause: Final[ContextVar[_Pause | None]] = ContextVar("metrics_pause", default=None)


@contextmanager
def unmeasured() -> Iterator[None]:
    """Leave what the block does out of metrics and of warnings about slow operations: nobody asked for it.

    The same is true of tasks that it starts, until the block ends.
    """
    pause = _Pause()
    token = _pause.set(pause)
    try:
        yield
    finally:
        # A task that goes on has a copy of the context variable, so resetting that is not enough.
        pause.is_over = True
        _pause.reset(token)


def is_measured() -> bool:
    """Return whether the caller is outside of all `unmeasured` blocks."""
    pause = _pause.get()
    return pause is None or pause.is_over


class Metrics:
    """Counts per operation and model. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: dict[tuple[str, str], _Counts] = {}
        self.slow_seconds = float("inf")
        """Seconds; slower operations are logged."""
        self.warnings = ThrottledLog()
        self.tracing: Tracing | None = None
        """Makes spans, if tracing is on."""

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
        """Count a call. `failure` is the kind of its failure, None if it succeeded."""
        if not is_measured():
            return
        place = bisect_left(SECONDS, seconds)
        with self._lock:
            counts = self._of(operation, model)
            counts.calls += 1
            counts.seconds += seconds
            counts.latencies[place] += 1
            counts.prompt_tokens += prompt_tokens
            counts.reply_tokens += reply_tokens
            if failure is not None:
                counts.failures[failure] = counts.failures.get(failure, 0) + 1

    def cache_hit(self, operation: str, model: str = OWN, count: int = 1) -> None:
        if not is_measured():
            return
        with self._lock:
            self._of(operation, model).cache_hits += count

    def snapshot(self) -> dict[Key, OperationMetrics]:
        with self._lock:
            return {
                Key(*key): OperationMetrics(
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
        counts = self._counts.get((operation, model))
        if counts is None:
            counts = self._counts[operation, model] = _Counts()
        return counts


def between(
    before: Mapping[Key, OperationMetrics], after: Mapping[Key, OperationMetrics]
) -> dict[Key, OperationMetrics]:
    """Return the differences between two snapshots, without operations that were not called."""
    found = {key: measured.since(before.get(key, NOTHING)) for key, measured in after.items()}
    return {key: measured for key, measured in found.items() if measured.calls or measured.cache_hits}


_errors: Final = logging.getLogger("aforesaid.errors")
_performance: Final = logging.getLogger("aforesaid.performance")
# Without a configured handler, Python would print warnings to standard error, in the middle of other output.
_performance.addHandler(logging.NullHandler())


def done(metrics: Metrics, operation: str, seconds: float, *, unbounded: bool) -> None:
    """Count a successful operation. One whose duration depends on the amount of data is never logged as slow."""
    metrics.called(operation, OWN, seconds)
    if seconds >= metrics.slow_seconds and not unbounded and is_measured():
        _performance.warning("%s took %.2f s", operation, seconds)
    else:
        _performance.debug("%s took %.4f s", operation, seconds)


def failed(metrics: Metrics, operation: str, seconds: float, error: BaseException) -> None:
    """Count a failed operation, and log the failure unless the caller caused it."""
    kind = kind_of(error)
    metrics.called(operation, OWN, seconds, failure=kind)
    if kind not in CALLERS:
        metrics.warnings.warn(_errors, f"{operation} {kind}", f"{operation} failed: {type(error).__name__}: {error}")


_log: Final = logging.getLogger("aforesaid.sessions")

_MOST_THREADS: Final = 10_000


class SessionLog:
    """Tells when a session opens, and that the one before it in the thread is closed by then.

    Sessions close by silence, so nothing happens at that moment that could be written down.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], str] = {}
        """The last known session of each thread."""

    def record(self, receipt: Receipt) -> None:
        """Log a change of session, given a message that was just stored. Does nothing if the log is disabled."""
        if not _log.isEnabledFor(logging.INFO):
            return
        stored = receipt.results[0]
        if not isinstance(stored, Stored):
            return
        scope = stored.draft.scope
        place = scope.space, scope.thread
        before = self._last.get(place)
        if before == stored.session:
            return
        if len(self._last) >= _MOST_THREADS:
            self._last.clear()
        self._last[place] = stored.session
        if stored.session != automatic_name(stored.seq):
            _log.info("session %s of %s continues in thread %s", stored.session, scope.user, scope.thread)
            return
        if before is not None:
            _log.info("session %s in thread %s is closed", before, scope.thread)
        _log.info("session %s of %s is open in thread %s", stored.session, scope.user, scope.thread)
