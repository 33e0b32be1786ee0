"""Measure the memory's operations: latency and result."""

from __future__ import annotations

import logging
from typing import Final

from aforesaid.telemetry.failure_kinds import CALLERS, kind_of
from aforesaid.telemetry.metrics import OWN, Metrics, is_measured

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
