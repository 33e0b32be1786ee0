"""The routes that watch a server: whether it runs, whether it is ready, and metrics for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Final, Literal

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from pydantic import BaseModel

from aforesaid.domain.report import Health, Stats
from aforesaid.memory import Memory
from aforesaid.server.authentication import Overseer, StateDep
from aforesaid.server.problems import declared
from aforesaid.telemetry import SECONDS, Key, OperationMetrics

_TOTALS: Final = ("spaces", "users", "threads", "sessions", "messages", "archived", "summaries", "memories", "bytes")
_LABELS: Final = ("operation", "model")
_STATUSES: Final = ("active", "initializing", "failing")


async def registry_of(memory: Memory) -> CollectorRegistry:
    """Return a registry of everything as it is now. It does not change afterwards: make one for each scrape."""
    registry = CollectorRegistry()
    stats, health = await memory.stats(), await memory.health()
    counts = memory.metrics.snapshot()
    registry.register(_Now([*_totals(stats), *_parts(health), *_operations(counts)]))
    return registry


class _Now(Collector):
    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> list[Metric]:
        return self._metrics


def _totals(stats: Stats) -> Iterator[Metric]:
    for name in _TOTALS:
        yield GaugeMetricFamily(f"aforesaid_store_{name}", f"The store's {name}.", getattr(stats, name))


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
    if (storage := health.storage) is None:
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


router = APIRouter(tags=["operation"], responses=declared(400, 413))


class Alive(BaseModel):
    """It runs."""

    status: Literal["ok"] = "ok"


class Ready(BaseModel):
    """Whether it can store and answer."""

    status: Literal["ready", "failing"]


@router.get("/healthz", summary="Does it run?")
async def alive() -> Alive:
    """Return 200 while the process runs."""
    return Alive()


@router.get(
    "/readyz",
    summary="Can it store and answer?",
    responses={503: {"description": "The store cannot be used.", "model": Ready}},
)
async def ready(here: StateDep, response: Response) -> Ready:
    """Return 503 while the store is failing. A failing model does not matter: everything works without one."""
    if (await here.memory.store.health()).status == "failing":
        response.status_code = 503
        return Ready(status="failing")
    return Ready(status="ready")


@router.get(
    "/metrics",
    summary="Everything that is counted",
    response_class=Response,
    responses={
        200: {"description": "Prometheus' text form.", "content": {"text/plain": {"schema": {"type": "string"}}}},
        **declared(401, 403, 429, 503),
    },
)
async def metrics(here: StateDep, who: Overseer) -> Response:
    """Return metrics for Prometheus. Needs a key for all spaces."""
    del who
    return Response(
        generate_latest(here.http.registry) + generate_latest(await registry_of(here.memory)),
        media_type=CONTENT_TYPE_LATEST,
    )
