"""Selects scheduled memories by time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from aforesaid.domain.memory import Event, MemoryRecord
from aforesaid.text.times.find import When, find_times

_DAY: Final = timedelta(days=1)
_SCHEDULED: Final = frozenset({"schedule", "task", "reminder"})


def happening(memories: Sequence[MemoryRecord], asked: datetime, when: str | None) -> list[MemoryRecord]:
    """Return the memories with an event in the times that `when` names, soonest first; by default, all future ones."""
    dated = [
        (memory.event, memory) for memory in memories if memory.event is not None and memory.category in _SCHEDULED
    ]
    times = _times(when, asked) if when else []
    if times:
        found = [(event, memory) for event, memory in dated if any(_overlap(event, each) for each in times)]
    else:
        found = [(event, memory) for event, memory in dated if event.end > asked]
    return [memory for _, memory in sorted(found, key=lambda each: (each[0].start, each[1].id))]


def _times(when: str, asked: datetime) -> list[When]:
    """Return the times that a question names. "Monday", asked on a Monday, means both today and a week from now."""
    found = find_times(when, asked, "future")
    try:
        yesterday = find_times(when, asked - _DAY, "future")
    except OverflowError:  # the first day of the calendar
        return found
    if len(yesterday) == len(found):
        found += [old for old, new in zip(yesterday, found, strict=True) if new.start - old.start == 7 * _DAY]
    return found


def _overlap(event: Event, when: When) -> bool:
    return event.start < when.end and event.end > when.start
