"""Dates and times of day in what somebody says, seen from when it is said. Rules only; what is open stays open."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from typing import Final, NamedTuple

from aforesaid.models.offline.text.language import guess_language
from aforesaid.models.offline.times.days import DAY, Days, Direction
from aforesaid.models.offline.times.eastern import EAST_ASIAN, east_asian_number
from aforesaid.models.offline.times.moments import short_while
from aforesaid.models.offline.times.western import western
from aforesaid.models.offline.times.words import AFTERNOON, CALENDARS, EAST_ASIAN_CLOCK
from aforesaid.store.terms import fold

_HOUR: Final = timedelta(hours=1)
_NOON: Final = 12
_LAST_HOUR: Final = 23
_LAST_MINUTE: Final = 59
_HALF_AN_HOUR: Final = 30
_UNREAD: Final = "\0"
_HALVES: Final = frozenset({"am", "a.m", "pm", "p.m"})
_EAST_ASIAN: Final = frozenset({"chinese", "japanese"})


class When(NamedTuple):
    """A stretch of time, its end not included: a day, a week, a month, a year, or the hour that begins at a moment."""

    start: datetime
    end: datetime
    timed: bool = False
    """Whether the time of day was said."""


class PlacedDays(NamedTuple):
    """Days, and where in the text they are named."""

    place: int
    days: Days


def find_times(text: str, said: datetime, towards: Direction = "nearest", language: str | None = None) -> list[When]:
    """Return the times that a text names, in its order.

    `said` is when it was said, in the time zone whose days count. `towards` decides what leaves it open: a weekday, or
    a day of a month without a year. A time of day belongs to the day that is named last before it, else to the first.
    Dates like 05/08/2026 and times like "at 7", which can be read in two ways, are not read.
    """
    language = language or guess_language(text)
    folded = fold(text).replace("’", "'")
    soon = short_while(folded, said)
    if soon is not None:
        return [When(soon, soon + _HOUR, timed=True)]
    named, rest = find_days(folded, said.date(), towards, language)
    clocks = _clocks(rest, language)
    if not named:
        return [_at(said, said.date(), clock) for _, clock in clocks[:1]]
    found = []
    for number, (place, days) in enumerate(named):
        following = named[number + 1].place if number + 1 < len(named) else len(folded) + 1
        mine = [clock for where, clock in clocks if where < following and (where > place or number == 0)]
        found.append(_at(said, days.first, mine[0]) if mine and days.length == DAY else _whole(said, days))
    return found


def find_days(text: str, today: date, towards: Direction, language: str) -> tuple[list[PlacedDays], str]:
    """Return the days that a folded text names, in its order, and the text with what was read blanked out.

    The surest patterns come first, and no part of the text is read twice.
    """
    found: list[PlacedDays] = []
    for pattern, resolve in EAST_ASIAN if language in _EAST_ASIAN else western(language):
        for match in pattern.finditer(text):
            days = resolve(match, today, towards)
            if days is not None:
                found.append(PlacedDays(match.start(), days))
            # A day that does not exist, such as 30 February, is not read as something else either.
            text = text[: match.start()] + _UNREAD * len(match[0]) + text[match.end() :]
    return sorted(found), text


def _clocks(text: str, language: str) -> list[tuple[int, time]]:
    patterns: Iterable[re.Pattern[str]] = [EAST_ASIAN_CLOCK]
    if language not in _EAST_ASIAN:
        patterns = map(re.compile, CALENDARS.get(language, CALENDARS["english"]).clock)
    found = ((match.start(), _clock(match.groupdict())) for pattern in patterns for match in pattern.finditer(text))
    return sorted((place, clock) for place, clock in found if clock is not None)


def _clock(groups: dict[str, str | None]) -> time | None:
    """Return a time of day; None when there is none like it."""
    half = groups.get("half") or ""
    if groups.get("h") is None:
        return time(_NOON) if half == "noon" else time()
    hour = east_asian_number(groups["h"] or "")
    minute = _HALF_AN_HOUR if groups.get("m") == "半" else int(groups.get("m") or 0)
    if hour > _NOON and half in _HALVES:
        return None
    if half in AFTERNOON and hour < _NOON:
        hour += _NOON
    elif half in {"am", "a.m"} and hour == _NOON:
        hour = 0
    return time(hour, minute) if hour <= _LAST_HOUR and minute <= _LAST_MINUTE else None


def _at(said: datetime, day: date, clock: time) -> When:
    start = datetime.combine(day, clock, said.tzinfo)
    try:
        return When(start, start + _HOUR, timed=True)
    except OverflowError:  # the last hour of the calendar
        return When(start, start, timed=True)


def _whole(said: datetime, days: Days) -> When:
    try:
        end = days.first + days.length
    except OverflowError:  # the last day of the calendar
        end = days.first
    return When(datetime.combine(days.first, time(), said.tzinfo), datetime.combine(end, time(), said.tzinfo))
