"""Metrics for Prometheus, and the routes that watch a server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from aforesaid.domain.report import Health, Stats
from aforesaid.memory import Memory
from aforesaid.telemetry import SECONDS, Key, OperationMetrics

_TOTALS: Final = ("spaces", "users", "threads", "sessions", "messages", "archived", "summaries", "memories", "bytes")
_LABELS: Final = ("operation", "model")
_STATUSES: Final = ("active", "initializing", "failing")


async def registry_of(memory: Memory) -> CollectorRegistry:
    """Return a registry of everything as it is now. It does not change afterwards: make one for each scrape."""
    registry = CollectorRegistry()
    stats, health = await memory.stats(), await memory.health()
    registry.register(_Now(stats, health, memory.metrics.snapshot()))
    return registry


class _Now(Collector):
    """A snapshot of a memory's metrics."""

    def __init__(self, stats: Stats, health: Health, counts: Mapping[Key, OperationMetrics]) -> None:
        self._stats = stats
        self._health = health
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        for name in _TOTALS:
            value = getattr(self._stats, name)
            yield GaugeMetricFamily(f"aforesaid_store_{name}", f"The store's {name}.", value)
        yield from _parts(self._health)
        yield from _room(self._health)
        yield from _operations(self._counts)


def _parts(health: Health) -> Iterator[Metric]:
    healthy = GaugeMetricFamily("aforesaid_component_healthy", "1 while a part works.", labels=("component",))
    status = GaugeMetricFamily(
        "aforesaid_component_status", "1 for the status of a part.", labels=("component", "status")
    )
    waiting = GaugeMetricFamily("aforesaid_component_waiting", "What a part has still to do.", labels=("component",))
    updated = GaugeMetricFamily(
        "aforesaid_component_last_update_seconds", "When a part last did something.", labels=("component",)
    )
    for part in health.components:
        healthy.add_metric((part.name,), part.status != "failing")
        for each in _STATUSES:
            status.add_metric((part.name, each), part.status == each)
        if part.waiting is not None:
            waiting.add_metric((part.name,), part.waiting)
        if part.last_update is not None:
            updated.add_metric((part.name,), part.last_update.timestamp())
    alerts = GaugeMetricFamily("aforesaid_alert", "1 for every alert that stands.", labels=("kind", "about"))
    for alert in health.alerts:
        alerts.add_metric((alert.kind, alert.about), 1)
    yield from (healthy, status, waiting, updated, alerts)


def _room(health: Health) -> Iterator[Metric]:
    storage = health.storage
    if storage is None:
        return
    for name, value, what in (
        ("aforesaid_disk_free_bytes", storage.free, "What is left on the store's device."),
        ("aforesaid_store_bytes_per_day", storage.bytes_per_day, "How fast the store grows."),
        ("aforesaid_store_messages_per_day", storage.messages_per_day, "How many messages are stored in a day."),
    ):
        if value is not None:
            yield GaugeMetricFamily(name, what, value)


def _operations(counts: Mapping[Key, OperationMetrics]) -> Iterator[Metric]:
    seconds = HistogramMetricFamily("aforesaid_operation_seconds", "How long calls of operations took.", labels=_LABELS)
    failures = CounterMetricFamily(
        "aforesaid_operation_failures", "Calls that failed, by kind.", labels=(*_LABELS, "kind")
    )
    known = CounterMetricFamily("aforesaid_cache_hits", "Answers that were known already.", labels=_LABELS)
    tokens = CounterMetricFamily(
        "aforesaid_model_tokens", "Tokens that models read and wrote.", labels=(*_LABELS, "way")
    )
    for key, measured in sorted(counts.items()):
        ends = [*map(str, SECONDS), "+Inf"]
        seconds.add_metric(key, list(zip(ends, accumulate(measured.latencies), strict=True)), measured.seconds)
        for kind, count in measured.failures.items():
            failures.add_metric((*key, kind), count)
        if measured.cache_hits:
            known.add_metric(key, measured.cache_hits)
        for way, count in (("read", measured.prompt_tokens), ("written", measured.reply_tokens)):
            if count:
                tokens.add_metric((*key, way), count)
    yield from (seconds, failures, known, tokens)


_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class HttpMetrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "aforesaid_http_requests",
            "Requests that were answered.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "aforesaid_http_request_seconds",
            "How long answers took, to their last byte.",
            ("method", "route"),
            buckets=_SECONDS,
            registry=self.registry,
        )

    def seen(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)


async def exposition(memory: Memory, http: HttpMetrics) -> bytes:
    return generate_latest(http.registry) + generate_latest(await registry_of(memory))
