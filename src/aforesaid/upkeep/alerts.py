"""Alerts: when something is wrong, and when it is over."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from aforesaid.domain.counting import counted
from aforesaid.domain.literals import AlertKind
from aforesaid.domain.report import Alert, Component, Storage
from aforesaid.settings import Alerts
from aforesaid.telemetry import OWN, PROXY_RECALL, PROXY_STORE, SEARCH_VECTOR, Key, OperationMetrics

_log: Final = logging.getLogger("aforesaid.health")

HOT: Final = ("add", "search", "context")
"""What people wait for."""
_FROM_THE_FIRST_CALL: Final = {
    PROXY_RECALL: "requests of the proxy were answered without memory",
    PROXY_STORE: "requests and replies of the proxy could not be stored",
    SEARCH_VECTOR: "searches went by words alone, because the embedder did not answer",
}
"""What failures of these operations mean to users. They raise an alert however few calls there were."""
_MOST: Final = 0.95
_IN_BETWEEN: Final = 0.99
"""Not enough to raise an alert, and too much to take one back."""


class Reading(NamedTuple):
    """A value beside its limit."""

    kind: AlertKind
    about: str
    ratio: float
    """The value as a part of its limit: from 1 on, it is too much."""
    text: str


@dataclass(slots=True)
class _Spell:
    """How long a part has been failing, or working again, in seconds of the clock."""

    failing: bool
    since: float


class Alarm:
    """Raises alerts and takes them back. Between the limit and a good part below it, things stay as they are."""

    def __init__(self, limits: Alerts) -> None:
        self._limits = limits
        self._raised: dict[tuple[AlertKind, str], Alert] = {}
        self._spells: dict[str, _Spell] = {}

    def judge(self, readings: Iterable[Reading], at: datetime) -> tuple[Alert, ...]:
        """Return the alerts that stand now. What is new and what is over is written down once."""
        standing: dict[tuple[AlertKind, str], Alert] = {}
        for reading in readings:
            key = reading.kind, reading.about
            before = self._raised.get(key)
            if reading.ratio >= (1.0 if before is None else self._limits.clear):
                # The text of the moment it was raised: it says why, and does not change with every look.
                standing[key] = before or Alert(reading.kind, reading.about, reading.text, at)
                if before is None:
                    _log.warning("alert (%s): %s", reading.kind, reading.text)
        for key, alert in self._raised.items():
            if key not in standing:
                _log.warning("over (%s): %s", alert.kind, alert.text)
        self._raised = standing
        return tuple(standing.values())

    def failures(self, components: Iterable[Component], now: float) -> Iterable[Reading]:
        """Read how long parts have been failing. One that has just recovered may fail again: it stays for a while."""
        patience = self._limits.failing_seconds
        for component in components:
            failing = component.status == "failing"
            spell = self._spells.get(component.name)
            if spell is None and not failing:
                continue
            if spell is None or spell.failing != failing:
                spell = self._spells[component.name] = _Spell(failing, now)
            lasted = now - spell.since
            ratio = _IN_BETWEEN if lasted < patience else float(failing)
            why = f": {component.issues[0]}" if component.issues else ""
            yield Reading("failure", component.name, ratio, f"{component.name} is failing{why}")


def waiting(components: Iterable[Component], limits: Alerts) -> Iterable[Reading]:
    """Read how much is still to do."""
    for component in components:
        if component.waiting is not None:
            text = f"{component.name} is {counted(component.waiting, 'message')} behind"
            yield Reading("backlog", component.name, component.waiting / limits.backlog_messages, text)


def room(storage: Storage, device_bytes: int | None, limits: Alerts) -> Iterable[Reading]:
    """Read how much room is left."""
    if limits.storage_bytes is not None:
        text = f"the store has {storage.bytes:,} bytes, and {limits.storage_bytes:,} are allowed"
        yield Reading("capacity", "store", storage.bytes / limits.storage_bytes, text)
    if storage.free is not None and device_bytes:
        left = storage.free / device_bytes
        ratio = limits.free_disk / left if left else float("inf")
        yield Reading("capacity", "disk", ratio, f"{left:.1%} of the disk is left ({storage.free:,} bytes)")


def performance(measured: Mapping[Key, OperationMetrics], limits: Alerts) -> Iterable[Reading]:
    """Read how long operations take and how often they fail."""
    for key, counts in measured.items():
        if (what := _FROM_THE_FIRST_CALL.get(key.operation)) is not None and counts.calls:
            # A message that was not stored is one too many.
            ratio = float(counts.failed > 0) if key.operation == PROXY_STORE else counts.error_rate / limits.error_rate
            yield Reading("errors", key.operation, ratio, f"{counts.failed:,} of {counts.calls:,} {what}")
            continue
        if counts.calls < limits.least_calls:
            continue
        name = key.operation if key.model == OWN else f"{key.operation} by {key.model}"
        failing = f"{counts.failed:,} of {counts.calls:,} calls of {name} failed"
        yield Reading("errors", name, counts.error_rate / limits.error_rate, failing)
        if key.model == OWN and key.operation in HOT:
            slow = counts.slower_than(limits.slow_seconds) / counts.calls
            late = f"{slow:.0%} of {counts.calls:,} calls of {name} took longer than {limits.slow_seconds:g} s"
            yield Reading("slowness", name, slow / (1 - _MOST), late)
