"""Days in languages whose words are spaced, from their calendar words."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from functools import cache
from typing import Final

from aforesaid.text.times.days import (
    Days,
    Direction,
    Which,
    day_of_month,
    month_named,
    next_day_of_month,
    shifted,
    step,
    weekday,
)
from aforesaid.text.times.time_words import CALENDARS, CalendarWords

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
        (_ISO, _iso),
        (_word(rf"{day}{months}{year}"), _dated),
        (_word(rf"{months}\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:]){year}"), _dated),
        *((_word(phrase), _counted(days)) for phrase, days in words.days.items()),
        *((_word(_amount(form, words)), _amounts(words, -1)) for form in words.ago),
        *((_word(_amount(form, words)), _amounts(words, 1)) for form in words.ahead),
        (_word(rf"(?:{which('before')} )?{weekdays}(?: {which('after')})?"), _weekday),
        (_word(rf"{months},? {_OF_YEAR}{relative_year}"), _month_of_year),
        (_word(rf"{which('before')} {units}|{units.replace('unit_', 'other_')} {which('after')}"), _unit),
        (
            _word(rf"(?:(?P<in>{words.before_month})(?:[ -]|(?<=')))?(?:{which('before')} )?(?P<name>{months}){year}"),
            _months(words),
        ),
    )


def _numbered_day(match: re.Match[str], today: date, _towards: Direction) -> Days | None:
    return next_day_of_month(today, int(match["day"]))


REQUESTED: Final[Rules] = (
    (
        re.compile(r"(?<!\w)(?:on|by) the (?P<day>\d{1,2})(?:st|nd|rd|th)(?! (?:floor|time|street|avenue))(?!\w)"),
        _numbered_day,
    ),
    (re.compile(r"(?<!\w)am (?P<day>\d{1,2})\.(?! ?\d)"), _numbered_day),
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


def _iso(match: re.Match[str], today: date, towards: Direction) -> Days | None:
    return day_of_month(today, int(match[3]), int(match[4]), int(match[1]), towards)


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


def _weekday(match: re.Match[str], today: date, towards: Direction) -> Days | None:
    return weekday(today, _number(match, "weekday"), _which_one(match), towards)


def _unit(match: re.Match[str], today: date, _towards: Direction) -> Days | None:
    days = shifted(today, step(_which_one(match)), _name_of_unit(match))
    return None if days is None else days._replace(exact=None)


def _months(words: CalendarWords) -> Resolve:
    """Read whole months. A name with another meaning ("may", "Julio") needs a year or a word that shows the month."""

    def resolve(match: re.Match[str], today: date, towards: Direction) -> Days | None:
        year, which = _year(match, today), _which_one(match)
        if match["name"] in words.ambiguous and not (year or match["in"] or which != "any"):
            return None
        return month_named(today, _number(match, "month") + 1, year, which, towards)

    return resolve


def _month_of_year(match: re.Match[str], today: date, towards: Direction) -> Days | None:
    """Read a month of a year that is counted from today: "June next year"."""
    return month_named(today, _number(match, "month") + 1, _year(match, today), "any", towards)


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
