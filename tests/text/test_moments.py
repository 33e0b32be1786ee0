"""A short while from now, in several languages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from aforesaid.text.times.find import find_times

SAID = datetime(2026, 5, 10, 23, 50, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("remind me in 20 minutes to stretch", 20),
        ("Please remind me to buy milk in 2 hours", 120),
        ("call me in an hour", 60),
        ("wake me in half an hour", 30),
        ("erinnere mich in zwei Stunden", 120),
        ("recuérdame en 15 minutos", 15),
        ("rappelle-moi dans 10 minutes", 10),
        ("напомни через 30 минут", 30),
        ("напомни через час", 60),
        ("2小时后提醒我", 120),
        ("十分钟后叫我", 10),
    ],
)
def test_a_distance_is_a_moment(text: str, minutes: int) -> None:
    (found,) = find_times(text, SAID, "future")
    assert (found.start, found.timed) == (SAID + timedelta(minutes=minutes), True)


@pytest.mark.parametrize("text", ["I ran for 20 minutes", "in minutes of the meeting it says", "the hours are long"])
def test_what_names_no_moment_is_left_alone(text: str) -> None:
    assert not [when for when in find_times(text, SAID, "future") if when.start != SAID and when.timed]
