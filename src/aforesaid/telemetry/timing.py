"""Timing the memory's own operations: how long they take, and how they end."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from time import perf_counter
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

from aforesaid.telemetry.failure_kinds import CALLERS, kind_of
from aforesaid.telemetry.metrics import OWN, Metrics

_errors: Final = logging.getLogger("aforesaid.errors")
_performance: Final = logging.getLogger("aforesaid.performance")
# Who reads logs has set them up. Where nobody has, Python would print this into the middle of somebody's output.
_performance.addHandler(logging.NullHandler())

_LONG: Final = frozenset({"upkeep", "verify", "repair", "backup", "export", "load", "purge", "summarize"})
"""What reads or works through all there is: it takes as long as there is work, and nobody need be told."""


class Measuring(Protocol):
    """Whatever has operations that are timed."""

    _metrics: Metrics


Self = TypeVar("Self", bound=Measuring)
Given = ParamSpec("Given")
Got = TypeVar("Got")


def timed(
    operation: str,
) -> Callable[
    [Callable[Concatenate[Self, Given], Awaitable[Got]]],
    Callable[Concatenate[Self, Given], Coroutine[Any, Any, Got]],
]:
    """Count every call of a method, and how it ended, under the name of an operation."""

    def decorate(
        method: Callable[Concatenate[Self, Given], Awaitable[Got]],
    ) -> Callable[Concatenate[Self, Given], Coroutine[Any, Any, Got]]:
        @wraps(method)
        async def call(self: Self, /, *args: Given.args, **kwargs: Given.kwargs) -> Got:
            began = perf_counter()
            try:
                result = await method(self, *args, **kwargs)
            except BaseException as error:
                failed(self._metrics, operation, perf_counter() - began, error)
                raise
            done(self._metrics, operation, perf_counter() - began)
            return result

        return call

    return decorate


def done(metrics: Metrics, operation: str, seconds: float) -> None:
    """Count an operation that ended well."""
    metrics.called(operation, OWN, seconds)
    if seconds >= metrics.slow_seconds and operation not in _LONG:
        _performance.warning("%s took %.2f s", operation, seconds)
    else:
        _performance.debug("%s took %.4f s", operation, seconds)


def failed(metrics: Metrics, operation: str, seconds: float, error: BaseException) -> None:
    """Count an operation that failed, and write it down where that is not the caller's doing."""
    kind = kind_of(error)
    metrics.called(operation, OWN, seconds, failure=kind)
    if kind not in CALLERS:
        metrics.quiet.tell(_errors, f"{operation} {kind}", f"{operation} failed: {type(error).__name__}: {error}")
