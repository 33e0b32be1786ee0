"""Calendar arithmetic: the days that "next Monday", "last month" or "8 May" mean on a given day."""

from __future__ import annotations

from calendar import monthrange
from datetime import date, timedelta
from typing import Final, Literal, NamedTuple

Direction = Literal["past", "future", "nearest"]
Which = Literal["next", "last", "this", "any"]

DAY: Final = timedelta(days=1)
_WEEK: Final = timedelta(days=7)
_SATURDAY: Final = 5
_MONTHS: Final = 12
_STEP: Final = {"next": 1, "last": -1, "this": 0, "any": 0}


class Days(NamedTuple):
    """A period of whole days."""

    first: date
    length: timedelta = DAY
    any_year: bool = False
    """Whether the text names no year ("in June", "on 8 May")."""
    exact: date | None = None
    """The day exactly the named number of weeks, months or years away, for "in two weeks"."""


def shifted(today: date, count: int, unit: str) -> Days | None:
    """Return the day, week, month or year that is `count` of them ahead, or behind if negative."""
    try:
        if unit == "day":
            return Days(today + count * DAY)
        if unit == "week":
            return Days(today - today.weekday() * DAY + count * _WEEK, _WEEK, exact=today + count * _WEEK)
        if unit == "weekend":
            return Days(today + (_SATURDAY - today.weekday()) * DAY + count * _WEEK, 2 * DAY)
        if unit == "month":
            month = today.year * _MONTHS + today.month - 1 + count
            return _with_day(whole_month(month // _MONTHS, month % _MONTHS + 1), today.day)
        year = today.year + count
        exact = _with_day(whole_month(year, today.month), today.day)
        length = date(year, 12, 31) - date(year, 1, 1) + DAY
        return Days(date(year, 1, 1), length, exact=None if exact is None else exact.exact)
    except (OverflowError, ValueError):
        return None


def step(which: Which) -> int:
    """Return the offset of "next" (1), "last" (-1) and "this" (0)."""
    return _STEP[which]


def weekday(today: date, number: int, which: Which, towards: Direction) -> Days | None:
    """Return a day of the week, counted from Monday.

    "Next Friday" is in the next week, "last Friday" is the last one before today, "this Friday" is in this week. A bare
    "Friday" is the first one after today, or in a story about the past, the last one before it.
    """
    try:
        if which in {"next", "this"}:
            return Days(today + (number - today.weekday()) * DAY + step(which) * _WEEK)
        if which == "last" or towards == "past":
            return Days(today - ((today.weekday() - number - 1) % 7 + 1) * DAY)
        return Days(today + ((number - today.weekday() - 1) % 7 + 1) * DAY)
    except OverflowError:
        return None


def day_of_month(today: date, month: int, day: int, year: int | None, towards: Direction) -> Days | None:
    """Return a day of a month; without a year, the nearest one, or the nearest in this direction."""
    if year is not None:
        found = _date(year, month, day)
        return None if found is None else Days(found)
    near = [found for year in (today.year - 1, today.year, today.year + 1) if (found := _date(year, month, day))]
    if not near:
        # The 29th of February may be further away.
        return None
    if towards == "future":
        return next((Days(found, any_year=True) for found in near if found >= today), None)
    if towards == "past":
        return next((Days(found, any_year=True) for found in reversed(near) if found <= today), None)
    return Days(min(near, key=lambda found: abs(found - today)), any_year=True)


def month_named(today: date, month: int, year: int | None, which: Which, towards: Direction) -> Days | None:
    """Return a whole month, such as "in June" or "last March"."""
    any_year = year is None and which == "any"
    if year is None:
        year = today.year
        if which == "last" or (which == "any" and towards == "past"):
            year -= month > today.month or (which == "last" and month == today.month)
        elif which == "next" or (which == "any" and towards == "future"):
            year += month < today.month or (which == "next" and month == today.month)
        elif which == "any":
            ahead = (month - today.month + _MONTHS // 2) % _MONTHS - _MONTHS // 2
            year = (today.year * _MONTHS + today.month - 1 + ahead) // _MONTHS
    return whole_month(year, month, any_year=any_year)


def whole_month(year: int, month: int, *, any_year: bool = False) -> Days | None:
    """Return a month."""
    first = _date(year, month, 1)
    return None if first is None else Days(first, timedelta(days=monthrange(year, month)[1]), any_year)


def a_year_before(days: Days) -> Days | None:
    """Return the same days of the year before."""
    first = _date(days.first.year - 1, days.first.month, days.first.day)
    return None if first is None else days._replace(first=first)


def next_day_of_month(today: date, day: int) -> Days | None:
    """Return the next day with this number, today or later: for "on the 12th"."""
    for count in range(_MONTHS):
        month = today.year * _MONTHS + today.month - 1 + count
        found = _date(month // _MONTHS, month % _MONTHS + 1, day)
        if found is not None and found >= today:
            return Days(found)
    return None


def _with_day(month: Days | None, day: int) -> Days | None:
    """Set the exact day of a month; a 31st is the last day of a shorter month."""
    return None if month is None else month._replace(exact=month.first + min(day - 1, month.length.days - 1) * DAY)


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
