"""Dates and periods in a question, relative to when it is asked. Rules only; what they do not know is not guessed.

What people state is read by `models.offline.times`, which decides on one day and one hour. A question is read more
loosely, since a period only makes what lies in it likelier: a month without a year is that of both last years, a year
alone is one too, and words of several languages may be mixed. The weights of recall were fitted to these periods.
"""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple

_MONTHS: Final = (
    ("january", "januar", "enero", "janvier", "gennaio", "janeiro", "januari", "январ", "1月"),
    ("february", "februar", "febrero", "fevrier", "febbraio", "fevereiro", "februari", "феврал", "2月"),
    ("march", "marz", "marzo", "mars", "marco", "maart", "март", "3月"),
    ("april", "abril", "avril", "aprile", "апрел", "4月"),
    ("may", "mai", "mayo", "maggio", "maio", "mei", "мая", "май", "мае", "5月"),
    ("june", "juni", "junio", "juin", "giugno", "junho", "июн", "6月"),
    ("july", "juli", "julio", "juillet", "luglio", "julho", "июл", "7月"),
    ("august", "agosto", "aout", "augustus", "август", "8月"),
    ("september", "septiembre", "septembre", "settembre", "setembro", "сентябр", "9月"),
    ("october", "oktober", "octubre", "octobre", "ottobre", "outubro", "октябр", "10月"),
    ("november", "noviembre", "novembre", "novembro", "ноябр", "11月"),
    ("december", "dezember", "diciembre", "decembre", "dicembre", "dezembro", "декабр", "12月"),
)
_MONTH_OF: Final = {name: number for number, names in enumerate(_MONTHS, 1) for name in names}
_NAMES: Final = "|".join(sorted((re.escape(name) for name in _MONTH_OF), key=len, reverse=True))
_DATE: Final = re.compile(
    rf"(?:(?<!\d)(\d{{1,2}})(?:st|nd|rd|th|\.)?\s+(?:of\s+|de\s+)?)?(?<!\w)({_NAMES})(?:(?<=[а-я])[а-я]{{1,2}})?(?!\w)(?:\s+(\d{{1,2}})(?:st|nd|rd|th)?(?!\d))?"
    r"(?:,?\s+(?:de\s+)?(\d{4}))?"
)
_ISO: Final = re.compile(r"(?<!\d)(\d{4})[-/年](\d{1,2})(?:[-/月](\d{1,2}))?(?!\d)")
_YEAR: Final = re.compile(r"(?<![\d-])(19|20)(\d{2})(?![\d-])")
_AGO: Final = re.compile(r"(\d+|a|an|one|two|three|four|five|six)\s+(day|week|month|year)s?\s+ago")
_NUMBERS: Final = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_DAYS: Final = {"day": 1, "week": 7, "month": 30, "year": 365}
_WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_RELATIVE: Final = (
    (re.compile(r"\b(yesterday|gestern|ayer|hier|ieri|ontem|gisteren|вчера)\b|昨天|昨日|أمس"), 1, 1),
    (re.compile(r"\b(today|heute|hoy|oggi|hoje|vandaag|сегодня)\b|今天|今日|اليوم"), 0, 1),
    (re.compile(r"\b(last week|letzte woche|la semana pasada|на прошлой неделе)\b|上周|先週"), 7, 7),
    (re.compile(r"\b(last month|letzten monat|el mes pasado|в прошлом месяце)\b|上个月|先月"), 30, 30),
    (re.compile(r"\b(last year|letztes jahr|el ano pasado|в прошлом году)\b|去年"), 365, 365),
)


class Period(NamedTuple):
    """A stretch of time, its end not included."""

    start: datetime
    end: datetime


def periods(folded: str, asked: datetime) -> list[Period]:
    """Return the periods that a question (folded as for the index) names."""
    found = [period for match in _DATE.finditer(folded) for period in _named(match, asked)]
    for match in _ISO.finditer(folded):
        found += _days(int(match[1]), int(match[2]), int(match[3]) if match[3] else None)
    if not found:
        found += [_year(int(match[0])) for match in _YEAR.finditer(folded)]
    for match in _AGO.finditer(folded):
        length = _DAYS[match[2]]
        distance = length * (_NUMBERS.get(match[1]) or int(match[1]))
        found += _around(asked, distance + length / 2, length)
    for pattern, back, length in _RELATIVE:
        if pattern.search(folded):
            found += _around(asked, back, length)
    for number, name in enumerate(_WEEKDAYS):
        if re.search(rf"\blast {name}\b", folded):
            found += _around(asked, (asked.weekday() - number - 1) % 7 + 1, 1)
    return found


def _named(match: re.Match[str], asked: datetime) -> list[Period]:
    month = _MONTH_OF[match[2]]
    day = int(match[1] or match[3] or 0) or None
    if match[4]:
        return _days(int(match[4]), month, day)
    # Without a year, the last time that this came round before the question is meant.
    year = asked.year if month <= asked.month else asked.year - 1
    return [*_days(year, month, day), *_days(year - 1, month, day)]


def _days(year: int, month: int, day: int | None) -> list[Period]:
    try:
        first = date(year, month, day or 1)
    except ValueError:
        return []
    length = 1 if day else monthrange(year, month)[1]
    start = datetime(first.year, first.month, first.day, tzinfo=UTC)
    return _period(start, timedelta(days=length))


def _year(year: int) -> Period:
    return Period(datetime(year, 1, 1, tzinfo=UTC), datetime(year, 12, 31, 23, 59, tzinfo=UTC))


def _around(asked: datetime, days_back: float, length: int) -> list[Period]:
    midnight = asked.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        return _period(midnight - timedelta(days=int(days_back)), timedelta(days=length))
    except OverflowError:
        return []


def _period(start: datetime, length: timedelta) -> list[Period]:
    try:
        return [Period(start, start + length)]
    except OverflowError:
        return []
