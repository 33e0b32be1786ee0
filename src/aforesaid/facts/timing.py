"""When a memory reminds, and when it is over."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, time, timedelta, tzinfo
from typing import Final, NamedTuple

from aforesaid.domain.memory import Event
from aforesaid.domain.words import Category

_MORNING: Final = time(9)
"""Somebody who wants to be reminded on a day is reminded then."""


class Timing(NamedTuple):
    """The times of a memory."""

    remind_at: datetime | None
    expires_at: datetime | None


def timing(
    category: Category, said: datetime, event: Event | None, keep_days: Mapping[str, int], zone: tzinfo
) -> Timing:
    """Return the times of something that was said at a moment.

    What has a number of days in `keep_days` is over so many days after its event, or after it was said where it has
    none. A task without a date is never over by itself: nobody said until when it has to be done.
    """
    remind = _reminder(event, zone) if category == "reminder" and event is not None else None
    days = keep_days.get(category)
    if days is None or (category == "task" and event is None):
        return Timing(remind, None)
    try:
        over = (said if event is None else max(event.end, said)) + timedelta(days=days)
    except OverflowError:
        return Timing(remind, None)
    return Timing(remind, over)


def _reminder(event: Event, zone: tzinfo) -> datetime:
    if event.timed:
        return event.start
    return datetime.combine(event.start.astimezone(zone).date(), _MORNING, zone)
