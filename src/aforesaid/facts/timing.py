"""When a memory reminds, and when it expires."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import Final, NamedTuple

from aforesaid.domain.checks import Category, to_zone
from aforesaid.domain.memory import Event
from aforesaid.text.times.find import When, direction_of, find_times, read_numbered_day
from aforesaid.text.times.hours import in_an_hour, recurs

_MORNING: Final = time(9)
"""Time of day of a reminder for a day without a time."""
_DAY: Final = timedelta(days=1)
_MONTH: Final = timedelta(days=28)
_NEAR: Final = timedelta(days=120)
"""How far away a month or year may be that is named without its number."""

_LONG_AGO: Final = timedelta(days=270)


class Timing(NamedTuple):
    """When a memory reminds and expires; None for never."""

    remind_at: datetime | None
    expires_at: datetime | None


def timing(
    category: Category, said: datetime, event: Event | None, keep_days: Mapping[str, int], zone: tzinfo
) -> Timing:
    """Return when a memory that was said at `said` reminds and expires.

    A memory expires `keep_days[category]` days after its event, or after it was said where it has none. A task without
    a date never expires.
    """
    remind = None
    if category == "reminder" and event is not None:
        remind = _reminder(event, to_zone(said, zone)).astimezone(UTC)
    days = keep_days.get(category)
    if days is None or (category == "task" and event is None):
        return Timing(remind, None)
    try:
        over = (said if event is None else max(event.end, said)) + timedelta(days=days)
    except OverflowError:
        return Timing(remind, None)
    return Timing(remind, over)


def _reminder(event: Event, said: datetime) -> datetime:
    """Return when a reminder is due: at its time, or on the first morning of its days that is in the future.

    For "today" that is an hour from now. Only an event that is completely over gives a moment in the past.
    """
    if event.timed:
        return event.start
    first, last = (each.astimezone(said.tzinfo).date() for each in (event.start, event.end - _DAY))
    day = first if first > said.date() else min(max(first, said.date()), last)
    morning = datetime.combine(day, _MORNING, said.tzinfo)
    if morning.timestamp() > said.timestamp() or day < said.date():
        return morning
    return datetime.combine(day + _DAY, _MORNING, said.tzinfo) if day < last else in_an_hour(said)


def told_time(words: str, said: datetime) -> When | None:
    """Return the time that words name; None if they name several, or one that is not certain.

    What comes back ("every Tuesday") has no single date. An hour of the same day may be any day's ("open until 5"). A
    month or year without its number may be another one if it is far away: "in January", said in June, or "twice in 30
    years". The next one is meant where the words say that it is still to come: "is getting married in January".
    """
    times = find_times(words, said, by_words=True)
    if not times and direction_of(words) != "past" and (day := read_numbered_day(words, said)) is not None:
        # As in: on the 26th at 9:15.
        times = [day]
    if len(times) != 1 or (times[0].timed and times[0].start.date() == said.date()) or recurs(words):
        return None
    found = times[0]
    if said - found.start > _LONG_AGO and str(found.start.year) not in words:
        # "They gave her a date, 11 March": what lies nearly a year behind would be told with its year.
        found = next(iter(find_times(words, said)), found)
    long = found.end - found.start >= _MONTH and str(found.start.year) not in words
    return (
        None if long and direction_of(words) != "future" and not said - _NEAR <= found.start <= said + _NEAR else found
    )
