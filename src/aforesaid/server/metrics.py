"""What requests took, counted in this process, and how the memory is doing: for Prometheus."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from aforesaid.memory import Memory
from aforesaid.server.exporter import registry_of

_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class HttpMetrics:
    """Counts of requests."""

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
        """Count a request."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)


async def exposition(memory: Memory, http: HttpMetrics) -> bytes:
    """Return everything that is counted, in Prometheus' text form."""
    return generate_latest(http.registry) + generate_latest(await registry_of(memory))
