"""What everything took, counted in this process. Nothing of it leaves the machine by itself."""

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
from aforesaid.telemetry.timing import timed

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
    "timed",
]
