"""Metrics of this process. Nothing is sent anywhere."""

from aforesaid.telemetry.failure_kinds import CALLERS, kind_of
from aforesaid.telemetry.metrics import (
    OWN,
    PROXY_RECALL,
    PROXY_STORE,
    SEARCH_VECTOR,
    SECONDS,
    Key,
    Metrics,
    OperationMetrics,
)

__all__ = [
    "CALLERS",
    "OWN",
    "PROXY_RECALL",
    "PROXY_STORE",
    "SEARCH_VECTOR",
    "SECONDS",
    "Key",
    "Metrics",
    "OperationMetrics",
    "kind_of",
]
