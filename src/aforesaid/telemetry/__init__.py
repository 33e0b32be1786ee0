"""Metrics of this process, and spans. Nothing is sent anywhere, unless a setting says where to send spans."""

from aforesaid.telemetry.metrics import (
    CALLERS,
    OWN,
    PROXY_RECALL,
    PROXY_SEARCH,
    PROXY_STORE,
    RECALL_WAIT,
    SEARCH_VECTOR,
    SECONDS,
    UPSTREAM,
    Key,
    Metrics,
    OperationMetrics,
    kind_of,
    unmeasured,
)

__all__ = [
    "CALLERS",
    "OWN",
    "PROXY_RECALL",
    "PROXY_SEARCH",
    "PROXY_STORE",
    "RECALL_WAIT",
    "SEARCH_VECTOR",
    "SECONDS",
    "UPSTREAM",
    "Key",
    "Metrics",
    "OperationMetrics",
    "kind_of",
    "unmeasured",
]
