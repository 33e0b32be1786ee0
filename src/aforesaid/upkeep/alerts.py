"""Raises and clears alerts."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from aforesaid.domain.checks import AlertKind, counted
from aforesaid.domain.report import Alert, Component, Storage
from aforesaid.settings import Alerts
from aforesaid.telemetry import OWN, PROXY_RECALL, PROXY_SEARCH, PROXY_STORE, SEARCH_VECTOR, Key, OperationMetrics

_log: Final = logging.getLogger("aforesaid.health")

HOT: Final = ("add", "search", "context")
"""Operations that users wait for."""
_FROM_THE_FIRST_CALL: Final = {
    PROXY_RECALL: "requests of the proxy were answered without memory",
    PROXY_SEARCH: "requests of the proxy got memories and recent messages without a search",
    PROXY_STORE: "requests and replies of the proxy could not be stored",
    SEARCH_VECTOR: "searches went by words alone, because the embedder did not answer",
}
"""Operations whose failures raise an alert after any number of calls, and what a failure means to users."""
_MOST: Final = 0.95
_IN_BETWEEN: Final = 0.99
"""A ratio that neither raises nor clears an alert."""


class Measurement(NamedTuple):
    """A measured value relative to its limit."""

    kind: AlertKind
    about: str
    ratio: float
    """The value divided by its limit; an alert is raised from 1."""
    text: str


@dataclass(slots=True)
class _StateSince:
    """Whether a component is failing, and since when, in seconds of the clock."""

    failing: bool
    since: float


class Alarm:
    """Raises alerts at their limit and clears them clearly below it, so that they do not flap."""

    def __init__(self, limits: Alerts) -> None:
        self._limits = limits
        self._raised: dict[tuple[AlertKind, str], Alert] = {}
        self._states: dict[str, _StateSince] = {}
        self._unmeasured: dict[tuple[AlertKind, str], datetime] = {}
        """Until when alerts of an earlier process stay active without a measurement."""
        self.cleared: list[Alert] = []
        """Alerts that were measured to be over, until somebody takes them."""

    def restore(self, alerts: Iterable[Alert], at: datetime) -> None:
        """Go on with alerts of an earlier process: they are not raised anew, and stay until they are clearly over.

        What nothing is measured of, such as an operation that nobody calls, counts as over after a while.
        """
        seconds = max(self._limits.failing_seconds, 2 * self._limits.interval_seconds)
        for alert in alerts:
            key = alert.kind, alert.about
            if key not in self._raised:
                self._raised[key] = alert
                self._unmeasured[key] = at + timedelta(seconds=seconds)
                if alert.kind == "failure":
                    self._states.setdefault(alert.about, _StateSince(failing=True, since=float("-inf")))

    def judge(self, measurements: Iterable[Measurement], at: datetime) -> tuple[Alert, ...]:
        """Return the active alerts. Each raised and cleared alert is logged once."""
        standing: dict[tuple[AlertKind, str], Alert] = {}
        for measurement in measurements:
            key = measurement.kind, measurement.about
            self._unmeasured.pop(key, None)
            before = self._raised.get(key)
            if measurement.ratio >= (1.0 if before is None else self._limits.clear):
                # Keep the text of the time it was raised: it says why, and stays the same.
                standing[key] = before or Alert(measurement.kind, measurement.about, measurement.text, at)
                if before is None:
                    _log.warning("alert (%s): %s", measurement.kind, measurement.text)
        for key, alert in self._raised.items():
            if key in standing:
                continue
            until = self._unmeasured.get(key)
            if until is not None and at < until:
                standing[key] = alert
                continue
            _log.warning("cleared (%s): %s", alert.kind, alert.text)
            if self._unmeasured.pop(key, None) is None:
                self.cleared.append(alert)
        self._raised = standing
        return tuple(standing.values())

    def failures(self, components: Iterable[Component], now: float) -> Iterable[Measurement]:
        """Measure how long components have been failing. An alert stays for a while after a recovery."""
        patience = self._limits.failing_seconds
        for component in components:
            failing = component.status == "failing"
            state = self._states.get(component.name)
            if state is None and not failing:
                continue
            if state is None or state.failing != failing:
                state = self._states[component.name] = _StateSince(failing, now)
            lasted = now - state.since
            ratio = _IN_BETWEEN if lasted < patience else float(failing)
            why = f": {component.issues[0]}" if component.issues else ""
            yield Measurement("failure", component.name, ratio, f"{component.name} is failing{why}")


def waiting(components: Iterable[Component], limits: Alerts) -> Iterable[Measurement]:
    """Measure the backlogs."""
    for component in components:
        if component.waiting is not None:
            text = f"{component.name} is {counted(component.waiting, 'message')} behind"
            yield Measurement("backlog", component.name, component.waiting / limits.backlog_messages, text)


def room(storage: Storage, device_bytes: int | None, limits: Alerts) -> Iterable[Measurement]:
    """Measure the free space."""
    if limits.storage_bytes is not None:
        text = f"the store has {storage.bytes:,} bytes; the limit is {limits.storage_bytes:,}"
        yield Measurement("capacity", "store", storage.bytes / limits.storage_bytes, text)
    if storage.free is not None and device_bytes:
        left = storage.free / device_bytes
        ratio = limits.free_disk / left if left else float("inf")
        yield Measurement("capacity", "disk", ratio, f"{left:.1%} of the disk is left ({storage.free:,} bytes)")


def performance(measured: Mapping[Key, OperationMetrics], limits: Alerts) -> Iterable[Measurement]:
    """Measure the latencies and error rates of operations."""
    for key, counts in measured.items():
        if (what := _FROM_THE_FIRST_CALL.get(key.operation)) is not None and counts.calls:
            # One message that could not be stored is enough.
            ratio = float(counts.failed > 0) if key.operation == PROXY_STORE else counts.error_rate / limits.error_rate
            yield Measurement("errors", key.operation, ratio, f"{counts.failed:,} of {counts.calls:,} {what}")
            continue
        # A model or provider that answers nobody is an alert, however seldom it is called.
        answers_nobody = key.model != OWN and counts.error_rate == 1
        if counts.calls < limits.least_calls and not answers_nobody:
            continue
        name = key.operation if key.model == OWN else f"{key.operation} by {key.model}"
        failing = f"{counts.failed:,} of {counts.calls:,} calls of {name} failed"
        yield Measurement("errors", name, counts.error_rate / limits.error_rate, failing)
        if key.model == OWN and key.operation in HOT:
            slow = counts.slower_than(limits.slow_seconds) / counts.calls
            late = f"{slow:.0%} of {counts.calls:,} calls of {name} took longer than {limits.slow_seconds:g} s"
            yield Measurement("slowness", name, slow / (1 - _MOST), late)
