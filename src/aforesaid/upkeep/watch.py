"""Watches the health of a memory: components, changes and alerts.

It checks at intervals and on request. Each change is logged once.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from aforesaid.background import BackgroundLoop, BackgroundLoops, LoopStatus
from aforesaid.domain.checks import ComponentStatus, counted, moment, now
from aforesaid.domain.report import Component, Health, Operation, Storage
from aforesaid.errors import AforesaidError
from aforesaid.settings import Alerts
from aforesaid.store import questions
from aforesaid.telemetry import Key, Metrics, OperationMetrics
from aforesaid.telemetry.metrics import between
from aforesaid.upkeep.acknowledgements import acknowledgements, drop_acknowledgements
from aforesaid.upkeep.alerts import Alarm, performance, room, waiting
from aforesaid.upkeep.growth import grown, note_size

if TYPE_CHECKING:
    from aforesaid.store import Store

_log: Final = logging.getLogger("aforesaid.health")
_performance: Final = logging.getLogger("aforesaid.performance")

_P95: Final = 0.95
_MINUTE: Final = 60.0


class _Snapshot(NamedTuple):
    at: float
    counts: dict[Key, OperationMetrics]


class Watch:
    """Watches the health of one memory."""

    def __init__(
        self,
        store: Store,
        parts: Callable[[], Awaitable[Sequence[Component]]],
        metrics: Metrics,
        limits: Alerts,
        *,
        clock: Callable[[], float] = time.monotonic,
        loops: BackgroundLoops | None = None,
    ) -> None:
        """Watch the components that `parts` returns. `clock` returns seconds."""
        self._store = store
        self._parts = parts
        self._metrics = metrics
        self._limits = limits
        self._clock = clock
        self._alarm = Alarm(limits)
        self._restored = False
        """Whether the acknowledged alerts of an earlier process were read."""
        self._statuses: dict[str, ComponentStatus] = {}
        self._earlier = self._latest = _Snapshot(clock(), {})
        """Counters of one and two minutes ago, or intervals; recent operations are those after the earlier one."""
        interval = limits.interval_seconds
        self._loop = BackgroundLoop(
            "health watch", self._work, retry_seconds=interval, longest_retry_seconds=interval, log=_log
        )
        (loops or BackgroundLoops()).add(self._loop)
        metrics.slow_seconds = limits.slow_seconds

    def start(self) -> None:
        """Start checking at intervals."""
        self._loop.start(self._limits.interval_seconds)

    async def look(self) -> Health:
        """Return the health of all components, and log changes since the last check."""
        at = moment(now())
        await self._restore_alerts(at)
        components = tuple(replace(part, health_check=at) for part in await self._parts())
        self._note_changes(components)
        recent, seconds = self._recent()
        storage, device = await self._storage(components)
        if storage is not None:
            components = tuple(_counted(part, storage) for part in components)
        measurements = [
            *self._alarm.failures(components, self._clock()),
            *waiting(components, self._limits),
            *performance(recent, self._limits),
            *(room(storage, device, self._limits) if storage is not None else ()),
        ]
        return Health(
            status="failing" if any(part.status == "failing" for part in components) else "active",
            components=components,
            alerts=self._alarm.judge(measurements, at),
            storage=storage,
            operations=tuple(_operation(key, counts, seconds) for key, counts in sorted(recent.items())),
            checked_at=at,
        )

    async def close(self) -> None:
        """Stop checking."""
        await self._loop.stop()

    async def _work(self) -> float:
        health = await self.look()
        for operation in health.operations:
            _performance.info("%s", _line(operation))
        if health.storage is not None:
            await self._note_size(health.storage)
        await self._drop_acknowledgements()
        return self._limits.interval_seconds

    async def _note_size(self, storage: Storage) -> None:
        try:
            await note_size(self._store, storage, now())
        except AforesaidError as error:
            # A failing store raises its own alert; a missing day only makes growth less exact.
            _log.debug("the size of the store could not be recorded: %s", error)

    async def _restore_alerts(self, at: datetime) -> None:
        """Go on with the alerts that somebody has acknowledged, so that a restart does not raise them anew."""
        if self._restored:
            return
        try:
            known = await acknowledgements(self._store)
        except AforesaidError as error:
            _log.debug("the acknowledged alerts are unknown: %s", error)
            return
        self._alarm.restore([each.alert for each in known], at)
        self._restored = True

    async def _drop_acknowledgements(self) -> None:
        over, self._alarm.cleared = self._alarm.cleared, []
        try:
            await drop_acknowledgements(self._store, over)
        except AforesaidError as error:
            self._alarm.cleared += over
            _log.debug("acknowledgements of alerts that are over could not be deleted: %s", error)

    def _note_changes(self, components: Sequence[Component]) -> None:
        for part in components:
            before = self._statuses.get(part.name, "active")
            if part.status != before:
                why = f": {'; '.join(part.issues)}" if part.issues else ""
                _log.warning("%s was %s and is %s now%s", part.name, before, part.status, why)
            self._statuses[part.name] = part.status

    def _recent(self) -> tuple[dict[Key, OperationMetrics], float]:
        """Return the counters of the last one or two minutes, or intervals, and their duration in seconds."""
        time, counts = self._clock(), self._metrics.snapshot()
        if time - self._latest.at >= max(self._limits.interval_seconds, _MINUTE):
            self._earlier, self._latest = self._latest, _Snapshot(time, counts)
        return between(self._earlier.counts, counts), time - self._earlier.at

    async def _storage(self, components: Sequence[Component]) -> tuple[Storage | None, int | None]:
        """Return the size of the store and of its device; None if the store does not answer."""
        try:
            stats = await self._store.read(questions.Totals())
        except AforesaidError as error:
            _log.debug("the size of the store is unknown: %s", error)
            return None, None
        location = next((dict(part.facts).get("location") for part in components if part.name == "store"), None)
        usage = None if location is None else await asyncio.to_thread(_usage, Path(location))
        free, total = (None, None) if usage is None else usage
        storage = Storage(stats.bytes, stats.messages, free)
        try:
            return await grown(self._store, storage, now()), total
        except AforesaidError as error:
            _log.debug("the growth of the store is unknown: %s", error)
            return storage, total


def loops_health(statuses: Sequence[LoopStatus]) -> Component:
    """Return one component for all background loops: when each last succeeded, and how it last failed.

    It is failing while a loop fails with an unexpected exception; expected ones, such as a model that is down, make the
    component fail that the loop works for.
    """
    issues = tuple(f"{status.name}: {status.last_error}" for status in statuses if status.unexpected)
    succeeded = [status.last_success for status in statuses if status.last_success is not None]
    return Component(
        "background",
        "failing" if issues else "active",
        max(succeeded, default=None),
        issues,
        tuple((status.name, _loop_line(status)) for status in statuses),
    )


def _loop_line(status: LoopStatus) -> str:
    success = "never" if status.last_success is None else f"{status.last_success:%Y-%m-%d %H:%M:%S} UTC"
    line = f"{counted(status.runs, 'run')}, last success {success}"
    if status.last_error_at is None:
        return line
    failed = f"{status.failures:,} failed, last error {status.last_error_at:%Y-%m-%d %H:%M:%S} UTC: {status.last_error}"
    return f"{line}; {failed}"


def _counted(part: Component, storage: Storage) -> Component:
    return replace(part, message_count=storage.messages) if part.name == "store" else part


def _usage(path: Path) -> tuple[int, int] | None:
    """Return the free bytes and the size of a file's device; None for a store that is no local file."""
    try:
        usage = shutil.disk_usage(path if path.exists() else path.parent)
    except (OSError, ValueError):
        return None
    return usage.free, usage.total


def _operation(key: Key, counts: OperationMetrics, seconds: float) -> Operation:
    most = counts.within(_P95)
    return Operation(
        name=key.operation,
        model=key.model,
        calls=counts.calls,
        # Rates of a process younger than a minute are not meaningful yet.
        per_minute=counts.calls / max(seconds, _MINUTE) * _MINUTE,
        failed=counts.failed,
        error_rate=counts.error_rate,
        mean_seconds=counts.mean,
        p95_seconds=None if most == float("inf") else most,
        cache_hits=counts.cache_hits,
    )


def _line(operation: Operation) -> str:
    name = f"{operation.name} by {operation.model}" if operation.model else operation.name
    most = "over a minute" if operation.p95_seconds is None else f"{operation.p95_seconds:g} s"
    return (
        f"{name}: {operation.calls:,} calls ({operation.per_minute:.1f} a minute), {operation.failed:,} failed, "
        f"mean {operation.mean_seconds:.4f} s, 95 of 100 within {most}, {operation.cache_hits:,} known already"
    )
