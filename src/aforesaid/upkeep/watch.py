"""Watches the health of a memory: components, changes, growth and alerts."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from aforesaid.background import BackgroundLoop, BackgroundLoops, LoopStatus
from aforesaid.domain.checks import AlertKind, ComponentStatus, counted, moment, now
from aforesaid.domain.report import Alert, Component, Health, Ledger, Operation, Storage
from aforesaid.domain.scope import Scope, Subject
from aforesaid.domain.setting import cleared_up_to
from aforesaid.errors import AforesaidError
from aforesaid.profiles.effective import settings_of
from aforesaid.settings import Alerts
from aforesaid.store.agenda import PlannedEntry
from aforesaid.store.memories import Memories
from aforesaid.store.messages import Messages, UserLedger
from aforesaid.store.people import Marks, PutMark, Totals
from aforesaid.store.summaries import Summaries
from aforesaid.telemetry import (
    OWN,
    PROXY_RECALL,
    PROXY_SEARCH,
    PROXY_STORE,
    SEARCH_VECTOR,
    Key,
    Metrics,
    OperationMetrics,
    between,
)

if TYPE_CHECKING:
    from aforesaid.profiles import Profile
    from aforesaid.store import Store


_PREFIX: Final = "panel/acknowledged/"
"""The beginning of the names of their marks."""


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """An alert, and who has seen it when."""

    alert: Alert
    by: str
    at: datetime


async def acknowledge(store: Store, acknowledgement: Acknowledgement) -> None:
    """Store that somebody has seen an alert."""
    alert = acknowledgement.alert
    value = {**asdict(alert), "since": alert.since.isoformat(), "by": acknowledgement.by}
    value["at"] = acknowledgement.at.isoformat()
    await store.apply([PutMark(_name(alert), json.dumps(value))])


async def acknowledgements(store: Store) -> list[Acknowledgement]:
    """Return all that are stored. Those of earlier versions, which do not say of what, are left out."""
    found = []
    for name, value in (await store.read(Marks())).items():
        if name.startswith(_PREFIX) and "text" in (seen := json.loads(value)):
            alert = Alert(seen["kind"], seen["about"], seen["text"], datetime.fromisoformat(seen["since"]))
            found.append(Acknowledgement(alert, seen["by"], datetime.fromisoformat(seen["at"])))
    return found


def _name(alert: Alert) -> str:
    return f"{_PREFIX}{alert.kind}/{alert.about}"


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


_NAME: Final = "size "
"""Prefix of the mark of a day."""
_DAYS: Final = 30
"""Number of days over which growth is measured."""
_DAY: Final = 24 * 3600.0


async def note_size(store: Store, storage: Storage, at: int) -> None:
    """Record the size once a day, and delete records that are too old."""
    today = moment(at).date()
    marks = await store.read(Marks())
    if _NAME + today.isoformat() in marks:
        return
    value = json.dumps({"at": at, "bytes": storage.bytes, "messages": storage.messages})
    old = [name for name in marks if name.startswith(_NAME) and not _recent(name, today)]
    await store.apply([PutMark(_NAME + today.isoformat(), value), *(PutMark(name, None) for name in old)])


async def with_growth(store: Store, storage: Storage, at: int) -> Storage:
    """Add the growth since the oldest recorded size, if it is long enough ago."""
    marks, today = await store.read(Marks()), moment(at).date()
    sizes = [json.loads(value) for name, value in marks.items() if name.startswith(_NAME) and _recent(name, today)]
    first = min(sizes, key=lambda size: size["at"], default=None)
    if first is None:
        return storage
    since = moment(first["at"])
    days = (moment(at) - since).total_seconds() / _DAY
    # Less than an hour is too short for an estimate per day.
    if days * _DAY < 3600:  # noqa: PLR2004
        return storage
    return replace(
        storage,
        since=since,
        bytes_per_day=(storage.bytes - first["bytes"]) / days,
        messages_per_day=(storage.messages - first["messages"]) / days,
    )


def _recent(name: str, today: date) -> bool:
    return timedelta() <= today - date.fromisoformat(name.removeprefix(_NAME)) <= timedelta(days=_DAYS)


_log: Final = logging.getLogger("aforesaid.health")
_performance: Final = logging.getLogger("aforesaid.performance")

_P95: Final = 0.95
_MINUTE: Final = 60.0


class _Snapshot(NamedTuple):
    at: float
    counts: dict[Key, OperationMetrics]


class Watch:
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
        self._loop.start(self._limits.interval_seconds)

    async def look(self) -> Health:
        """Return the health of all components, and log changes since the last check."""
        at = moment(now())
        if not self._restored:
            # Go on with the alerts that somebody has acknowledged, so that a restart does not raise them anew.
            try:
                self._alarm.restore([each.alert for each in await acknowledgements(self._store)], at)
                self._restored = True
            except AforesaidError as error:
                _log.debug("the acknowledged alerts are unknown: %s", error)
        components = tuple(replace(part, health_check=at) for part in await self._parts())
        for part in components:
            before = self._statuses.get(part.name, "active")
            if part.status != before:
                why = f": {'; '.join(part.issues)}" if part.issues else ""
                _log.warning("%s was %s and is %s now%s", part.name, before, part.status, why)
            self._statuses[part.name] = part.status
        recent, seconds = self._recent()
        storage, device = await self._storage(components)
        if storage is not None:
            components = tuple(
                (replace(part, message_count=storage.messages) if part.name == "store" else part) for part in components
            )
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
        await self._loop.stop()

    async def _work(self) -> float:
        health = await self.look()
        for operation in health.operations:
            _performance.info("%s", _line(operation))
        if health.storage is not None:
            try:
                await note_size(self._store, health.storage, now())
            except AforesaidError as error:
                # A failing store raises its own alert; a missing day only makes growth less exact.
                _log.debug("the size of the store could not be recorded: %s", error)
        over, self._alarm.cleared = self._alarm.cleared, []
        try:
            # Delete the acknowledgements of alerts that are over. Those of the same alerts, raised anew since, stay.
            known = [each.alert for each in await acknowledgements(self._store)] if over else []
            if marks := [PutMark(_name(alert), None) for alert in known if alert in over]:
                await self._store.apply(marks)
        except AforesaidError as error:
            self._alarm.cleared += over
            _log.debug("acknowledgements of alerts that are over could not be deleted: %s", error)
        return self._limits.interval_seconds

    def _recent(self) -> tuple[dict[Key, OperationMetrics], float]:
        """Return the counters of the last one or two minutes, or intervals, and their duration in seconds."""
        time, counts = self._clock(), self._metrics.snapshot()
        if time - self._latest.at >= max(self._limits.interval_seconds, _MINUTE):
            self._earlier, self._latest = self._latest, _Snapshot(time, counts)
        return between(self._earlier.counts, counts), time - self._earlier.at

    async def _storage(self, components: Sequence[Component]) -> tuple[Storage | None, int | None]:
        """Return the size of the store and of its device; None if the store does not answer."""
        try:
            stats = await self._store.read(Totals())
        except AforesaidError as error:
            _log.debug("the size of the store is unknown: %s", error)
            return None, None
        location = next((dict(part.facts).get("location") for part in components if part.name == "store"), None)
        usage = None if location is None else await asyncio.to_thread(_usage, Path(location))
        free, total = (None, None) if usage is None else usage
        storage = Storage(stats.bytes, stats.messages, free)
        try:
            return await with_growth(self._store, storage, now()), total
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
    facts = []
    for status in statuses:
        success = "never" if status.last_success is None else f"{status.last_success:%Y-%m-%d %H:%M:%S} UTC"
        line = f"{counted(status.runs, 'run')}, last success {success}"
        if status.last_error_at is not None:
            line += f"; {status.failures:,} failed, last error {status.last_error_at:%Y-%m-%d %H:%M:%S} UTC"
            line += f": {status.last_error}"
        facts.append((status.name, line))
    updated = max(succeeded, default=None)
    return Component("background", "failing" if issues else "active", updated, issues, tuple(facts))


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


async def account(store: Store, profile: Profile, scope: Scope) -> Health:
    """Return the parts of a user's memory.

    With the policy `tiers`: short-term, mid-term, whole history and history context. With other policies: the whole
    history, summaries, memories. An empty part is initializing. If the store does not answer, all of them are
    failing.
    """
    at = moment(now())
    names = _TIERS if profile.summaries == "tiers" else _OTHERS
    try:
        keeping = await store.health()
        found = await (_tiers if profile.summaries == "tiers" else _others)(store, profile, scope)
    except AforesaidError as error:
        issue = f"the store does not answer: {error}"
        parts = [Component(name, "failing", None, (issue,), (), None, health_check=at) for name in names]
        return Health("failing", tuple(parts), checked_at=at)
    parts = [replace(part, health_check=at) for part in found]
    if keeping.status == "failing":
        parts = [replace(part, status="failing", issues=(*part.issues, *keeping.issues)) for part in parts]
    failing = any(part.status == "failing" for part in parts)
    empty = all(part.status == "initializing" for part in parts)
    return Health("failing" if failing else "initializing" if empty else "active", tuple(parts), checked_at=at)


_TIERS = ("short_term", "mid_term", "whole_history", "history_context")
_OTHERS = ("whole_history", "summaries", "memories")


async def _tiers(store: Store, profile: Profile, scope: Scope) -> list[Component]:
    from aforesaid.digest.tiers import TiersRules, windows  # noqa: PLC0415 - brings the digest

    ledger = await store.read(UserLedger(scope))
    rules = TiersRules(profile.short_term, profile.mid_term)
    newest = await store.read(Messages(scope, limit=rules.short_term + rules.mid_term))
    cleared = cleared_up_to(await settings_of(store, scope))
    held = windows([message.seq for message in newest], cleared, rules)
    updated = newest[-1].stored_at if newest else None
    return [
        _window("short_term", held.short_term, updated, rules.short_term),
        _window("mid_term", held.mid_term, updated if held.mid_term else None, rules.mid_term),
        _whole(ledger, updated),
        await _history_context(store, scope),
    ]


async def _others(store: Store, profile: Profile, scope: Scope) -> list[Component]:
    from aforesaid.digest.calendar import subject_of_user  # noqa: PLC0415 - brings the digest

    ledger = await store.read(UserLedger(scope))
    newest = await store.read(Messages(scope, limit=1))
    summaries = await store.read(Summaries(scope))
    memories = await store.read(Memories(scope))
    subject = subject_of_user(profile.summaries, scope.space, scope.user, scope.thread)
    planned = None if subject is None else await store.read(PlannedEntry(subject))
    issues = () if planned is None or planned.error is None else (planned.error,)
    made = max((summary.created_at for summary in summaries), default=None)
    covered = max((summary.covered for summary in summaries), default=0)
    learned = max((memory.created_at for memory in memories), default=None)
    policy = (("policy", profile.summaries), ("active", f"{len(summaries):,}"))
    learning = (("learning", "on" if profile.extract else "off"), ("active", f"{len(memories):,}"))
    return [
        _whole(ledger, newest[0].stored_at if newest else None),
        Component("summaries", _status(issues, begun=bool(summaries)), made, issues, policy, covered),
        Component("memories", _status((), begun=bool(memories)), learned, (), learning),
    ]


def _window(name: str, count: int, updated: datetime | None, limit: int) -> Component:
    facts = (("room for", counted(limit, "message")),)
    return Component(name, _status((), begun=count > 0), updated, (), facts, count)


def _whole(ledger: Ledger, updated: datetime | None) -> Component:
    facts = (("archived", counted(ledger.archived, "message")),)
    return Component("whole_history", _status((), begun=ledger.messages > 0), updated, (), facts, ledger.messages)


async def _history_context(store: Store, scope: Scope) -> Component:
    found = await store.read(Summaries(scope, kind="history"))
    planned = await store.read(PlannedEntry(Subject("tiers", scope.space, scope.user)))
    issues = () if planned is None or planned.error is None else (planned.error,)
    current = found[0] if found else None
    return Component(
        "history_context",
        _status(issues, begun=current is not None),
        None if current is None else current.created_at,
        issues,
        () if planned is None else (("waiting", counted(planned.waiting, "message")),),
        0 if current is None else current.messages,
        None if planned is None else planned.waiting,
    )


def _status(issues: tuple[str, ...], *, begun: bool) -> ComponentStatus:
    return "failing" if issues else "active" if begun else "initializing"
