"""Hours, parts of a day, periods and what recurs."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import cache
from typing import Any, Final, Literal, NamedTuple

from aforesaid.extras import re
from aforesaid.text.times.time_words import CHINESE_NUMBER, EAST_ASIAN_LANGUAGES, HOURS
from aforesaid.text.words import by_language, fold

PartOfDay = Literal["morning", "noon", "afternoon", "evening", "night"]

STARTS: Final[dict[PartOfDay, time]] = {
    "morning": time(9),
    "noon": time(12),
    "afternoon": time(15),
    "evening": time(19),
    "night": time(21),
}
"""The usual hour of each part of a day."""
_ENDS: Final[dict[PartOfDay, int]] = {"morning": 12, "noon": 15, "afternoon": 18, "evening": 24, "night": 28}
"""The hour at which a part of a day ends, counted from the midnight before it."""
_NOON: Final = 12
_EARLIEST_MORNING: Final = 6
"""A bare hour from 1 to 5 means the afternoon: few people want to be reminded at night."""
_LATEST_NIGHT: Final = 5
_DAY: Final = timedelta(days=1)
_QUARTER: Final = timedelta(minutes=15)
_SOON: Final = timedelta(hours=1)

_H: Final = r"(?P<h>\d{1,2})(?:[:.](?P<m>\d{2}))?(?![\d:]|[./]\d| ?%)"
_EITHER: Final = r"(?:(?P<word>H)|(?P<h>\d{1,2}))"
_NO_HOURS: Final = "percent|minutes?|hours?|days?|weeks?|months?|years?|people|times|euros?|dollars?|pounds?|km|miles?"
"""A number before one of these words is not an hour."""
_PLACES: Final = {"{EITHER}": _EITHER, "{H}": _H, "{NO_HOURS}": _NO_HOURS, "{NUMBER}": CHINESE_NUMBER}
"""What stands for these names in the files of languages."""

_HALF: Final = frozenset(
    {"half", "media", "mezza", "mezzo", "meia", "demie", "bucuk", "نصف", "نص", "साढे", "साढ़े", "半", "반"}
)
"""Words for the half of an hour after an hour, folded."""


class OpenHour(NamedTuple):
    """An hour without "am" or "pm", and its position."""

    start: int
    end: int
    groups: dict[str, str | None]


class NamedPart(NamedTuple):
    """A part of a day, and where it is named."""

    start: int
    end: int
    part: PartOfDay


def open_hours(text: str, language: str) -> list[OpenHour]:
    """Return the bare hours in a folded text, in order; of two that overlap, the first."""
    found: list[OpenHour] = []
    for pattern in _hour_patterns(language):
        for match in pattern.finditer(text):
            if all(match.end() <= other.start or match.start() >= other.end for other in found):
                found.append(OpenHour(match.start(), match.end(), match.groupdict()))
    return sorted(found, key=lambda hour: hour.start)


def parts_of_day(text: str, language: str) -> list[NamedPart]:
    """Return the parts of a day that a folded text names, in order."""
    found = [
        NamedPart(match.start(), match.end(), part)
        for part, pattern in _part_patterns(language)
        for match in pattern.finditer(text)
    ]
    return sorted(found)


def clock_of(hour: OpenHour, language: str, number: int) -> time | None:
    """Return a bare hour as a time of day; None if it does not exist. `number` is the hour if written in digits."""
    groups = hour.groups
    if groups.get("word"):
        number = HOURS[language][groups["word"] or ""]
    written = groups.get("m")
    minute = 30 if written in _HALF else int(written or 0)
    if groups.get("past"):
        minute = 30 if groups["past"] in _HALF else 15
    elif groups.get("to"):
        number, minute = number - 1, 45
    elif groups.get("before"):
        number, minute = number - 1, 30
    return time(number % 24, minute) if 0 <= number <= 24 and minute < 60 else None  # noqa: PLR2004 - of a clock


def likely(clock: time, part: PartOfDay | None) -> tuple[time, int, bool]:
    """Return the time of day that a bare hour probably means, the days to add, and whether it is assumed.

    "7" with "evening" is 19:00; "2" with "night" is 2:00 on the next day. Without a part of the day 6 to 11 are in the
    morning and 1 to 5 in the afternoon.
    """
    if clock.hour > _NOON or clock.hour == 0:
        return clock, 0, False
    if part == "night" and (clock.hour <= _LATEST_NIGHT or clock.hour == _NOON):
        return clock.replace(hour=clock.hour % _NOON), 1, False
    if part in {"afternoon", "evening", "night"} and clock.hour < _NOON:
        return clock.replace(hour=clock.hour + _NOON), 0, False
    if part is not None or clock.hour == _NOON:
        return clock, 0, False
    return (clock if clock.hour >= _EARLIEST_MORNING else clock.replace(hour=clock.hour + _NOON)), 0, True


def next_one(clock: time, said: datetime) -> datetime | None:
    """Return the next time after `said` that a clock of twelve hours shows a bare hour, not between 0:00 and 6:00."""
    hours = [clock.hour] if clock.hour > _NOON or clock.hour == 0 else [clock.hour % _NOON, clock.hour % _NOON + _NOON]
    for later in (0, 1):
        for hour in hours:
            if hour < _EARLIEST_MORNING and len(hours) > 1:
                continue
            try:
                moment = on(said.date() + later * _DAY, clock.replace(hour=hour), said.tzinfo)
            except OverflowError:
                return None
            if moment.timestamp() > said.timestamp():
                return moment
    return None


def within(part: PartOfDay, day: date, said: datetime) -> datetime:
    """Return the usual hour of a part of a day, or an hour from now if that hour is over and the part is not."""
    usual = on(day, STARTS[part], said.tzinfo)
    if usual.timestamp() > said.timestamp():
        return usual
    soon = in_an_hour(said)
    end = on(day, time(), said.tzinfo).timestamp() + _ENDS[part] * 3600
    return soon if soon.timestamp() <= end else usual


def in_an_hour(said: datetime) -> datetime:
    """Return the next full quarter of an hour that is at least an hour away."""
    # Counted in UTC: on the days when the clocks change, an hour of the clock is not an hour.
    soon = (said.astimezone(UTC) + _SOON).astimezone(said.tzinfo)
    past = timedelta(minutes=soon.minute % 15, seconds=soon.second, microseconds=soon.microsecond)
    return soon - past + (_QUARTER if past else timedelta())


def on(day: date, clock: time, zone: tzinfo | None) -> datetime:
    """Return a time on a day. A time that is skipped in spring is moved forward by the clock change."""
    moment = datetime.combine(day, clock, zone)
    try:
        return datetime.fromtimestamp(moment.timestamp(), zone) if zone is not None else moment
    except (OverflowError, ValueError):  # the first and the last day of the calendar
        return moment


@cache
def _hour_patterns(language: str) -> tuple[re.Pattern[str], ...]:
    meant = {**_PLACES, "(?P<word>H)": f"(?P<word>{'|'.join(sorted(HOURS.get(language, ()), key=len, reverse=True))})"}
    written = "\n".join(_hours(language)["open"])
    for name, pattern in meant.items():
        written = written.replace(name, pattern)
    return tuple(map(re.compile, written.split("\n")))


@cache
def _part_patterns(language: str) -> tuple[tuple[PartOfDay, re.Pattern[str]], ...]:
    edge = "{}" if language in EAST_ASIAN_LANGUAGES else r"(?<!\w)(?:{})(?!\w)"
    return tuple((part, re.compile(edge.format(words))) for part, words in _hours(language)["parts"].items())


def _hours(language: str) -> dict[str, Any]:
    tables = by_language()
    found: dict[str, Any] = tables.get(language, {}).get("hours") or tables["english"]["hours"]
    return found


_SPANISH_DAYS: Final = "lunes|martes|miercoles|jueves|viernes|sabados|domingos"
_FRENCH_DAYS: Final = "lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche"
_ITALIAN_DAYS: Final = "lunedi|martedi|mercoledi|giovedi|venerdi|sabato"
_PORTUGUESE_DAYS: Final = "segunda|terca|quarta|quinta|sexta"
_RECURRING: Final = re.compile(
    r"\b(?:every|each (?:\w+day|day|week|month|year|morning|evening)|daily|weekly|monthly|yearly|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days|"
    r"jede[mnrs]?|immer (?:am|um)|taglich|wochentlich|monatlich|jahrlich|"
    r"(?:mon|diens|donners|frei|sams|sonn)tags|mittwochs|"
    rf"cada|tod[oa]s l[oa]s|los (?:{_SPANISH_DAYS})|"
    rf"chaque|tous les|toutes les|le (?:{_FRENCH_DAYS})(?! \d| prochain| dernier)|"
    rf"ogni|tutt[ei] (?:i|le|gli)|(?:il|di) (?:{_ITALIAN_DAYS})(?! \d| prossimo| scorso)|"
    r"(?:la|di) domenica(?! \d| prossima| scorsa)|"
    rf"aos? (?:sabado|domingo)s?|as? (?:{_PORTUGUESE_DAYS})s?(?:-feiras?)?(?! \d)|"
    rf"tod[oa]s? (?:[ao]s? )?(?:{_PORTUGUESE_DAYS}|sabado|domingo|dia|semana|mes|ano)s?|"
    r"elke?|iedere?|dagelijks|wekelijks|maandelijks|"
    r"кажд\w+|по (?:понедельникам|вторникам|средам|четвергам|пятницам|субботам|воскресеньям)|еженедельно|ежедневно|"
    r"kazd\w+|co (?:tydzien|miesiac|rok|dzien|poniedzialek|wtorek|srode|czwartek|piatek|sobote|niedziele)|"
    r"her (?:gun|hafta|ay|y[iı]l|pazartesi|sal[iı]|carsamba|persembe|cuma|cumartesi|pazar)"
    r")\b|\bكل (?:يوم|اسبوع|شهر|سنة)|\bहर\b|每[个週周天日月年逢]|毎[週日月年朝晩]|매(?:주|일|월|달|년)"
)


def recurs(text: str) -> bool:
    """Return whether a text names a time that comes back, so that one date for it would be wrong."""
    return _RECURRING.search(fold(text).replace("’", "'")) is not None
