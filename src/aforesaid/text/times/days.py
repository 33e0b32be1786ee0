"""Days in Western and Eastern scripts."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from datetime import date, timedelta
from functools import cache
from typing import Final, Literal, NamedTuple

from aforesaid.extras import re
from aforesaid.text.times.time_words import (
    CALENDARS,
    CHINESE_NUMBER,
    CHINESE_WEEKDAYS,
    EAST_ASIAN_DAYS,
    JAPANESE_WEEKDAYS,
    CalendarWords,
    east_asian_number,
)

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


def weekday(today: date, number: int, which: Which, towards: Direction) -> Days | None:
    """Return a day of the week, counted from Monday.

    "Next Friday" is in the next week, "last Friday" is the last one before today, "this Friday" is in this week. A bare
    "Friday" is the first one after today, or in a story about the past, the last one before it.
    """
    try:
        if which in {"next", "this"}:
            return Days(today + (number - today.weekday()) * DAY + _STEP[which] * _WEEK)
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
    first = _date(year, month, 1)
    return None if first is None else Days(first, timedelta(days=monthrange(year, month)[1]), any_year)


def a_year_before(days: Days) -> Days | None:
    first = _date(days.first.year - 1, days.first.month, days.first.day)
    return None if first is None else days._replace(first=first)


def _with_day(month: Days | None, day: int) -> Days | None:
    """Set the exact day of a month; a 31st is the last day of a shorter month."""
    return None if month is None else month._replace(exact=month.first + min(day - 1, month.length.days - 1) * DAY)


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


Resolve = Callable[[re.Match[str], date, Direction], Days | None]
Rules = tuple[tuple[re.Pattern[str], Resolve], ...]

_ISO: Final = re.compile(r"(?<![\d/-])(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?![\d/-])")
_OF: Final = r"(?:of |de |di |d')?"
_OF_YEAR: Final = r"(?:of |del? |del? l'|dell'|im |the )?"
_YEARS: Final = {"yearnext": 1, "yearlast": -1, "yearthis": 0}


@cache
def western(language: str) -> Rules:
    """Return the rules of a language, the most certain first. Languages without a calendar use the English rules."""
    words = CALENDARS.get(language, CALENDARS["english"])
    months = _numbered("month", words.months)
    day = r"(?<![\d.])(?P<day>\d{1,2})(?:st|nd|rd|th|er|º|°|\.)? " + _OF
    relative_year = _relative_year(words)
    year = rf"(?:\.?,? {_OF_YEAR}(?:(?P<year>\d{{4}})(?!\d)|{relative_year}))?"
    which = _which(words)
    weekdays, units = _numbered("weekday", words.weekdays), _units(words)
    return (
        (
            _ISO,
            lambda match, today, towards: day_of_month(today, int(match[3]), int(match[4]), int(match[1]), towards),
        ),
        (_word(rf"{day}{months}{year}"), _dated),
        (_word(rf"{months}\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th|일(?:에|까지)?)?(?![\d:]){year}"), _dated),
        *((_word(phrase), _counted(days)) for phrase, days in words.days.items()),
        *((_word(_amount(form, words)), _amounts(words, -1)) for form in words.ago),
        *((_word(_amount(form, words)), _amounts(words, 1)) for form in words.ahead),
        (
            _word(rf"(?:{which('before')} )?{weekdays}(?: {which('after')})?"),
            lambda match, today, towards: weekday(today, _number(match, "weekday"), _which_one(match), towards),
        ),
        (
            _word(rf"{months},? {_OF_YEAR}{relative_year}"),  # "June next year"
            lambda match, today, towards: month_named(
                today, _number(match, "month") + 1, _year(match, today), "any", towards
            ),
        ),
        (_word(rf"{which('before')} {units}|{units.replace('unit_', 'other_')} {which('after')}"), _unit),
        (
            _word(rf"(?:(?P<in>{words.before_month})(?:[ -]|(?<=')))?(?:{which('before')} )?(?P<name>{months}){year}"),
            _months(words),
        ),
    )


def _next_numbered(match: re.Match[str], today: date, _towards: Direction) -> Days | None:
    """Return the next day with this number, today or later: for "on the 12th"."""
    for count in range(_MONTHS):
        month = today.year * _MONTHS + today.month - 1 + count
        found = _date(month // _MONTHS, month % _MONTHS + 1, int(match["day"]))
        if found is not None and found >= today:
            return Days(found)
    return None


REQUESTED: Final[Rules] = (
    (
        re.compile(
            r"(?<!\w)(?:on|by|to|for|until) the (?P<day>\d{1,2})(?:st|nd|rd|th)(?! (?:floor|time|street|avenue))(?!\w)"
        ),
        _next_numbered,
    ),
    (re.compile(r"(?<!\w)(?:am|auf den|bis zum|zum) (?P<day>\d{1,2})\.(?! ?\d)"), _next_numbered),
    (
        re.compile(
            r"(?<!\w)(?:el(?: dia)?|al|le|il(?: giorno)?|(?:no |o )?dia) (?P<day>\d{1,2})"
            r"(?= (?:a las|a la|alle|as|a \d)|\W*$)"
        ),
        _next_numbered,
    ),
    (re.compile(r"(?<!\w)op de (?P<day>\d{1,2})(?:e|ste|de)(?!\w)"), _next_numbered),
    (re.compile(r"(?<!\w)(?P<day>\d{1,2})(?:-?го(?: числа)?| числа)(?!\w)"), _next_numbered),
    (re.compile(r"(?<!\w)ay[iı]n (?P<day>\d{1,2})'?\w*"), _next_numbered),
    (re.compile(r"(?<![\d月])(?P<day>\d{1,2})(?:号|號|日(?![間间前後后目])|일(?![간전후째]))"), _next_numbered),
)
"""Rules for requests alone."""


def _word(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{pattern})(?!\w)")


def _numbered(name: str, alternatives: tuple[str, ...]) -> str:
    return "(?:" + "|".join(f"(?P<{name}_{number}>{words})" for number, words in enumerate(alternatives)) + ")"


def _units(words: CalendarWords) -> str:
    return "(?:" + "|".join(f"(?P<unit_{unit}>{names})" for unit, names in words.units.items()) + ")"


def _which(words: CalendarWords) -> Callable[[str], str]:
    def which(side: str) -> str:
        return f"(?:(?P<next_{side}>{words.upcoming})|(?P<last_{side}>{words.past})|(?P<this_{side}>{words.present}))"

    return which


def _relative_year(words: CalendarWords) -> str:
    """Return the pattern of "next year" after a day or a month, with the words in either order."""

    def which(side: str) -> str:
        said = zip(_YEARS, (words.upcoming, words.past, words.present), strict=True)
        return "(?:" + "|".join(f"(?P<{name}_{side}>{pattern})" for name, pattern in said) + ")"

    unit = f"(?:{words.units['year']})"
    return f"(?:{which('before')} {unit}|{unit} {which('after')})(?!\\w)"


def _year(match: re.Match[str], today: date) -> int | None:
    """Return the year that was said, as a number or from today; None if none was."""
    if match.groupdict().get("year"):
        return int(match["year"])
    said = (group.partition("_")[0] for group, text in match.groupdict().items() if text)
    return next((today.year + _YEARS[name] for name in said if name in _YEARS), None)


def _amount(form: str, words: CalendarWords) -> str:
    numbers = "|".join([r"\d{1,3}", *sorted(filter(None, words.numbers), key=len, reverse=True)])
    number = rf"(?P<number>{numbers})"
    with_number = form.replace("N U", f"{number} {_units(words)}")
    if "" not in words.numbers:
        return with_number
    return f"{with_number}|" + form.replace("N U", _units(words).replace("unit_", "other_"))


def _dated(match: re.Match[str], today: date, towards: Direction) -> Days | None:
    return day_of_month(today, _number(match, "month") + 1, int(match["day"]), _year(match, today), towards)


def _counted(count: int) -> Resolve:
    def resolve(_match: re.Match[str], today: date, _towards: Direction) -> Days | None:
        return shifted(today, count, "day")

    return resolve


def _amounts(words: CalendarWords, sign: int) -> Resolve:
    def resolve(match: re.Match[str], today: date, _towards: Direction) -> Days | None:
        written = match["number"] or ""
        count = int(written) if written.isdecimal() else words.numbers[written]
        return shifted(today, sign * count, _name_of_unit(match))

    return resolve


def _unit(match: re.Match[str], today: date, _towards: Direction) -> Days | None:
    days = shifted(today, _STEP[_which_one(match)], _name_of_unit(match))
    return None if days is None else days._replace(exact=None)


def _months(words: CalendarWords) -> Resolve:
    """Read whole months. A name with another meaning ("may", "Julio") needs a year or a word that shows the month."""

    def resolve(match: re.Match[str], today: date, towards: Direction) -> Days | None:
        year, which = _year(match, today), _which_one(match)
        if match["name"] in words.ambiguous and not (year or match["in"] or which != "any"):
            return None
        return month_named(today, _number(match, "month") + 1, year, which, towards)

    return resolve


def _which_one(match: re.Match[str]) -> Which:
    """Return which one was said: next, last, this, or any if none of these."""
    groups = {name.partition("_")[0] for name, text in match.groupdict().items() if text}
    return "next" if "next" in groups else "last" if "last" in groups else "this" if "this" in groups else "any"


def _number(match: re.Match[str], name: str) -> int:
    found = (group for group, text in match.groupdict().items() if text and group.startswith(f"{name}_"))
    return int(next(found).rpartition("_")[2])


def _name_of_unit(match: re.Match[str]) -> str:
    found = (group for group, text in match.groupdict().items() if text and group.startswith(("unit_", "other_")))
    return next(found).rpartition("_")[2]


_NUMBER: Final = rf"\d{{1,3}}|{CHINESE_NUMBER}"
_WHICH: Final[dict[str, Which]] = {
    "下": "next", "上": "last", "这": "this", "本": "this", "来": "next", "先": "last", "今": "this",
    "明": "next", "去": "last", "昨": "last",
}  # fmt: skip
_DAYS: Final = EAST_ASIAN_DAYS["chinese"] | EAST_ASIAN_DAYS["japanese"]
_UNITS: Final = {
    "天": "day", "日": "day", "周": "week", "星期": "week", "週間": "week", "个月": "month", "か月": "month",
    "ヶ月": "month", "年": "year",
}  # fmt: skip


def _full(match: re.Match[str], today: date, towards: Direction) -> Days | None:
    year = int(match["year"]) if match["year"] else None
    month = east_asian_number(match["month"])
    if match["day"]:
        return day_of_month(today, month, east_asian_number(match["day"]), year, towards)
    return month_named(today, month, year, "any", towards)


def _eastern_amounts(match: re.Match[str], today: date, _towards: Direction) -> Days | None:
    sign = -1 if match["side"] == "前" else 1
    return shifted(today, sign * east_asian_number(match["number"]), _UNITS[match["unit"]])


def _weekdays(names: str) -> Resolve:
    def resolve(match: re.Match[str], today: date, towards: Direction) -> Days | None:
        which: Which = _WHICH[match["which"]] if match["which"] else "any"
        return weekday(today, names.index(match["weekday"].replace("天", "日")), which, towards)

    return resolve


def _whole(match: re.Match[str], today: date, _towards: Direction) -> Days | None:
    which = _WHICH[match["which"]]
    unit = "month" if match["unit"].endswith("月") else "year" if match["unit"] == "年" else "week"
    days = shifted(today, _STEP[which], "weekend" if match["end"] else unit)
    return None if days is None else days._replace(exact=None)


_FULL: Final = re.compile(
    rf"(?:(?P<year>\d{{4}})年)?(?P<month>\d{{1,2}}|{CHINESE_NUMBER})月(?:(?P<day>{_NUMBER})[日号號])?"
)
_EASTERN_ISO: Final = re.compile(r"(?<!\d)(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})(?!\d)")
EAST_ASIAN: Final[Rules] = (
    (_EASTERN_ISO, _full),
    (
        re.compile(rf"(?P<number>{_NUMBER})个?(?P<unit>{'|'.join(_UNITS)})(?:之|以)?(?P<side>前|后|後)"),
        _eastern_amounts,
    ),
    (
        re.compile(r"(?:(?P<which>[上下这本])个?)?(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天])"),
        _weekdays(CHINESE_WEEKDAYS),
    ),
    (re.compile(r"(?:(?P<which>[来先今])週の?)?(?P<weekday>[月火水木金土日])曜日?"), _weekdays(JAPANESE_WEEKDAYS)),
    (_FULL, _full),
    (re.compile("|".join(_DAYS)), lambda match, today, _: shifted(today, _DAYS[match[0]], "day")),
    (re.compile(r"(?P<which>[上下这本])个?(?P<unit>周|星期|礼拜|月)(?P<end>末)?"), _whole),
    (re.compile(r"(?P<which>[来先今])(?P<unit>週|月)(?P<end>末)?"), _whole),
    (re.compile(r"(?P<which>[去昨今明来])(?P<unit>年)(?P<end>(?!))?"), _whole),
)
"""Both languages at once: a few characters do not tell which it is, and they do not contradict each other."""
