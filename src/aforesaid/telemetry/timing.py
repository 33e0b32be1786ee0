"""Measure the memory's operations: latency and result."""

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
# Without a configured handler, Python would print warnings to standard error, in the middle of other output.
_performance.addHandler(logging.NullHandler())

_LONG: Final = frozenset({"upkeep", "verify", "repair", "backup", "export", "load", "purge", "summarize"})
"""Operations whose duration depends on the amount of data. They are never logged as slow."""


class Measuring(Protocol):
    """An object whose methods are measured."""

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
    """Return a decorator that counts every call of a method and its result, under the name of an operation."""

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
    """Count a successful operation."""
    metrics.called(operation, OWN, seconds)
    if seconds >= metrics.slow_seconds and operation not in _LONG:
        _performance.warning("%s took %.2f s", operation, seconds)
    else:
        _performance.debug("%s took %.4f s", operation, seconds)


def failed(metrics: Metrics, operation: str, seconds: float, error: BaseException) -> None:
    """Count a failed operation, and log the failure unless the caller caused it."""
    kind = kind_of(error)
    metrics.called(operation, OWN, seconds, failure=kind)
    if kind not in CALLERS:
        metrics.warnings.warn(_errors, f"{operation} {kind}", f"{operation} failed: {type(error).__name__}: {error}")
