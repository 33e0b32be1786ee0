"""Periods that a question names, relative to when it is asked: days, weeks, months and years.

Dates are read as in statements, by `find_days`, but more loosely, since a period only makes the messages in it
likelier: dates without a year mean the last two years, a year alone is a period, and a date such as 01/07/2024, which
can be read in two ways in English, means both days.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, NamedTuple

from aforesaid.text.languages import ENGLISH, guess_language
from aforesaid.text.times.days import Days, a_year_before, day_of_month, whole_month
from aforesaid.text.times.find import find_days
from aforesaid.text.words import fold

_ISO_MONTH: Final = re.compile(r"(?<![\d/-])(\d{4})[-/](\d{1,2})(?![\d/-])")
_SLASHED: Final = re.compile(r"(?<![\d/])(\d{1,2})/(\d{1,2})/(\d{4}|\d{2})(?![\d/])")
_YEAR: Final = re.compile(r"(?<![\d-])(?:19|20)\d{2}(?![\d-])")
_CENTURY: Final = 2000


class Period(NamedTuple):
    """A stretch of time, its end not included."""

    start: datetime
    end: datetime


def periods(question: str, asked: datetime) -> list[Period]:
    folded, language = fold(question).replace("’", "'"), guess_language(question)
    today = asked.astimezone(UTC).date()
    named, rest = find_days(folded, today, "past", language)
    if not named and language != ENGLISH:
        # A few words may not show their language, and English dates are understood everywhere.
        named, rest = find_days(folded, today, "past", ENGLISH)
    found = [placed.days for placed in named]
    found += [before for days in found if days.any_year and (before := a_year_before(days)) is not None]
    found += _slashed(rest, today, language)
    found += [
        month for match in _ISO_MONTH.finditer(rest) if (month := whole_month(int(match[1]), int(match[2]))) is not None
    ]
    if not found:
        found = [_year(int(match[0])) for match in _YEAR.finditer(rest)]
    return [period for days in found if (period := _period(days)) is not None]


def _slashed(text: str, today: date, language: str) -> Iterator[Days]:
    """Read 01/07/2024: the day comes first; in English, where both orders are usual, either number may be the day."""
    for match in _SLASHED.finditer(text):
        first, second, year = (int(group) for group in match.groups())
        year += _CENTURY if len(match[3]) == 2 else 0  # noqa: PLR2004 - a year of two digits
        orders = {(first, second), (second, first)} if language == ENGLISH else {(first, second)}
        for day, month in sorted(orders):
            days = day_of_month(today, month, day, year, "past")
            if days is not None:
                yield days


def _year(year: int) -> Days:
    return Days(date(year, 1, 1), date(year, 12, 31) - date(year, 1, 1) + timedelta(days=1))


def _period(days: Days) -> Period | None:
    start = datetime.combine(days.first, time(), UTC)
    try:
        return Period(start, start + days.length)
    except OverflowError:  # the last day of the calendar
        return None
