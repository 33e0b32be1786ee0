"""Figures for charts, counted from what is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import accumulate
from typing import Any, Final, NamedTuple

from aforesaid.domain.memory import CATEGORIES, band
from aforesaid.domain.report import Activity, MemoryCount
from aforesaid.server.languages import translate
from aforesaid.telemetry import OWN, Key, OperationMetrics

_HALF: Final = 0.5
_MOST: Final = 0.95
Chart = dict[str, Any]


class Latency(NamedTuple):
    """What an operation took since the process started."""

    name: str
    model: str
    measured: OperationMetrics
    median: float
    """Half of the calls took at most so long."""
    slow: float
    """95 of 100 did."""
    shape: tuple[float, ...]
    """How many calls fell into each class of latency, up to 1."""


def latencies(snapshot: Mapping[Key, OperationMetrics]) -> list[Latency]:
    """Return what operations took, the memory's own first, most often called first."""
    found = [
        Latency(
            key.operation,
            key.model,
            measured,
            measured.within(_HALF),
            measured.within(_MOST),
            tuple(count / max(measured.latencies) for count in measured.latencies),
        )
        for key, measured in snapshot.items()
        if measured.calls
    ]
    return sorted(found, key=lambda each: (each.model != OWN, -each.measured.calls, each.name))


def per_day(activity: Sequence[Activity]) -> Chart:
    """Return a chart of what was said on each day, by people and by assistants."""
    return {
        "kind": "stacked",
        "x": [_noon(each.day) for each in activity],
        "series": [
            {"label": translate("people"), "colour": "--chart-1", "values": [each.turns for each in activity]},
            {
                "label": translate("assistant"),
                "colour": "--chart-2",
                "values": [each.messages - each.turns for each in activity],
            },
        ],
    }


def growth(activity: Sequence[Activity], messages: int, memories: Iterable[MemoryCount]) -> Chart:
    """Return a chart of how much had been said by the end of each day: messages, and the memories of them.

    Its last values are the totals of what is passed.
    """
    days = [each.day for each in activity]
    before = messages - sum(each.messages for each in activity)
    made: Counter[date] = Counter()
    for memory in memories:
        # What is said to be of tomorrow, because clocks differ, counts today: the end of the chart is the total.
        made[min(memory.day, days[-1]) if days else memory.day] += memory.number
    earlier = sum(number for day, number in made.items() if days and day < days[0])
    return {
        "kind": "lines",
        "x": [_noon(day) for day in days],
        "series": [
            {
                "label": translate("messages"),
                "colour": "--chart-1",
                "values": list(accumulate((each.messages for each in activity), initial=before))[1:],
            },
            {
                "label": translate("memories"),
                "colour": "--chart-3",
                "scale": "right",
                "values": list(accumulate((made[day] for day in days), initial=earlier))[1:],
            },
        ],
    }


def by_category(memories: Iterable[MemoryCount]) -> list[tuple[str, int]]:
    """Return how many memories each category has."""
    counted: Counter[str] = Counter()
    for memory in memories:
        counted[memory.category] += memory.number
    return [(category, counted[category]) for category in CATEGORIES]


def by_importance(memories: Iterable[MemoryCount]) -> list[tuple[int, str, int]]:
    """Return how many memories have each importance, with the name of its band."""
    counted: Counter[int] = Counter()
    for memory in memories:
        counted[memory.importance] += memory.number
    return [(value, band(value).name, counted[value]) for value in range(1, 11)]


def longest_quiet(activity: Sequence[Activity]) -> list[Activity]:
    """Leave out the days before anything was said, but not the last week."""
    first = next((place for place, each in enumerate(activity) if each.messages), len(activity))
    return list(activity[min(first, max(len(activity) - 7, 0)) :])


def _noon(day: date) -> int:
    """Return the middle of a day, which is on the same day nearly everywhere."""
    return int((datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(hours=12)).timestamp())
