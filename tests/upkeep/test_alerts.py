"""Alerts come at their limits, stay until they are clearly over, and are told once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from aforesaid.domain.checks import ComponentStatus
from aforesaid.domain.report import Alert, Component, Storage
from aforesaid.settings import Alerts
from aforesaid.telemetry import OWN, Key, Metrics, OperationMetrics
from aforesaid.upkeep.watch import Alarm, Measurement, performance, room, waiting

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LIMITS = Alerts(failing_seconds=60, least_calls=10)


def part(name: str, status: ComponentStatus = "active", *issues: str, behind: int | None = None) -> Component:
    return Component(name, status, None, issues, (), waiting=behind)


@pytest.mark.req("C17")
def test_an_alert_stays_until_its_value_is_clearly_below_the_limit(caplog: pytest.LogCaptureFixture) -> None:
    alarm = Alarm(Alerts(clear=0.8))
    standing = []
    for minute, ratio in enumerate((0.9, 1.0, 0.99, 0.81, 1.3, 0.79, 0.99, 1.0)):
        at = NOON + timedelta(minutes=minute)
        found = alarm.judge([Measurement("capacity", "disk", ratio, f"ratio {ratio}")], at)
        standing.append([alert.since.minute for alert in found])
    assert standing == [[], [1], [1], [1], [1], [], [], [7]]
    assert [record.getMessage() for record in caplog.records] == [
        "alert (capacity): ratio 1.0",
        "cleared (capacity): ratio 1.0",
        "alert (capacity): ratio 1.0",
    ]
    assert {record.name for record in caplog.records} == {"aforesaid.health"}


def test_an_alert_of_an_earlier_process_goes_on_until_it_is_clearly_over(caplog: pytest.LogCaptureFixture) -> None:
    alarm, before = Alarm(Alerts(clear=0.8)), Alert("capacity", "disk", "full", NOON - timedelta(days=1))
    alarm.restore([before], NOON)
    assert alarm.judge([Measurement("capacity", "disk", 0.9, "nearly full")], NOON) == (before,)
    assert not caplog.records, "it is not raised anew"
    assert alarm.judge([Measurement("capacity", "disk", 0.7, "half full")], NOON) == ()
    assert alarm.cleared == [before]


def test_an_alert_of_an_earlier_process_that_is_not_measured_again_is_over_after_a_while() -> None:
    alarm, before = Alarm(Alerts(interval_seconds=60)), Alert("errors", "embed", "bad", NOON - timedelta(days=1))
    alarm.restore([before], NOON)
    assert alarm.judge([], NOON + timedelta(seconds=119)) == (before,)
    assert alarm.judge([], NOON + timedelta(seconds=120)) == ()
    assert alarm.cleared == [], "another process may still measure it"


def test_a_part_that_failed_in_an_earlier_process_is_over_when_it_has_worked_for_long() -> None:
    alarm, before = Alarm(LIMITS), Alert("failure", "store", "store is failing", NOON - timedelta(days=1))
    alarm.restore([before], NOON)
    found = [alarm.judge(alarm.failures([part("store")], second), NOON) for second in (0, 59, 60)]
    assert found == [(before,), (before,), ()]
    assert alarm.cleared == [before]


def test_an_alert_that_nothing_is_known_about_any_more_is_over() -> None:
    alarm = Alarm(Alerts())
    assert alarm.judge([Measurement("errors", "add", 2.0, "bad")], NOON)
    assert alarm.judge([], NOON) == ()


@pytest.mark.req("C17")
def test_a_part_that_fails_for_long_is_an_alert_until_it_has_worked_for_as_long() -> None:
    alarm = Alarm(LIMITS)
    seen = []
    for second, status in (
        (0, "active"),
        (10, "failing"),
        (69, "failing"),
        (70, "failing"),
        (80, "active"),
        (90, "failing"),
        (100, "active"),
        (159, "active"),
        (160, "active"),
        (170, "failing"),
    ):
        component = part("store", status, *(["the disk is gone"] if status == "failing" else []))  # type: ignore[arg-type]
        found = alarm.judge(alarm.failures([component], second), NOON)
        seen.append((second, [alert.text for alert in found]))
    raised = [second for second, texts in seen if texts]
    assert raised == [70, 80, 90, 100, 159]
    assert dict(seen)[70] == ["store is failing: the disk is gone"]


@pytest.mark.req("C17")
def test_readings_of_backlog_room_errors_and_slowness() -> None:
    limits = Alerts(backlog_messages=100, storage_bytes=1_000, free_disk=0.1, least_calls=10, error_rate=0.2)
    assert [reading.ratio for reading in waiting([part("embedder", behind=50), part("models")], limits)] == [0.5]
    store, disk = room(Storage(bytes=500, messages=1, free=50), 1_000, limits)
    assert (store.ratio, disk.ratio) == (0.5, 2.0)
    assert list(room(Storage(5, 1), None, Alerts())) == []
    full = next(iter(room(Storage(5, 1, free=0), 10, Alerts())))
    assert full.ratio == float("inf")
    metrics = Metrics()
    for number in range(20):
        metrics.called("search", OWN, 60.0 if number < 2 else 0.01, failure="store" if number % 4 == 0 else None)
        metrics.called("verify", OWN, 60.0)
    metrics.called("add", OWN, 60.0, failure="store")
    found = {(reading.kind, reading.about): reading.ratio for reading in performance(metrics.snapshot(), limits)}
    assert found == {
        ("errors", "search"): pytest.approx(0.25 / 0.2),
        ("slowness", "search"): pytest.approx(0.1 / 0.05),
        ("errors", "verify"): 0.0,
    }, "one call says nothing, and nobody minds how long verify takes"


def test_what_callers_do_wrong_is_no_alert() -> None:
    counts = {Key("add", OWN): OperationMetrics(100, {"invalid": 99})}
    assert [reading.ratio for reading in performance(counts, LIMITS) if reading.kind == "errors"] == [0.0]
