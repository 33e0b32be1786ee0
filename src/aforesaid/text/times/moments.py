"""Moments a short while from now: in twenty minutes, in zwei Stunden, через час, 两小时后."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

_WORDS: Final = {
    **dict.fromkeys(("a", "an", "one", "einer", "eine", "un", "una", "une", "um", "uma", "een", "", "一"), 1),
    **dict.fromkeys(("two", "zwei", "dos", "deux", "due", "dois", "duas", "twee", "два", "две", "两", "二"), 2),
    **dict.fromkeys(("three", "drei", "tres", "trois", "tre", "drie", "три", "三"), 3),
    **dict.fromkeys(("four", "vier", "cuatro", "quatre", "quattro", "quatro", "четыре", "四"), 4),
    **dict.fromkeys(("five", "funf", "cinco", "cinq", "cinque", "vijf", "пять", "五"), 5),
    **dict.fromkeys(("fifteen", "funfzehn", "quince", "quinze", "quindici", "vijftien", "пятнадцать", "十五"), 15),
    **dict.fromkeys(
        ("thirty", "dreissig", "dreisig", "treinta", "trente", "trenta", "trinta", "dertig", "тридцать"), 30
    ),
    **dict.fromkeys(("half an", "half a", "einer halben", "media", "une demi", "mezz'", "полчаса"), 0.5),
    **dict.fromkeys(("ten", "zehn", "diez", "dix", "dieci", "dez", "tien", "десять", "十"), 10),
    **dict.fromkeys(("twenty", "zwanzig", "veinte", "vingt", "venti", "vinte", "twintig", "двадцать", "二十"), 20),
}
_MINUTES: Final = r"minutes?|mins?|minuten?|minutos?|minuti|минут[уы]?"
_HOURS: Final = r"hours?|hrs?|stunden?|horas?|heures?|or[ae]|uur|час(?:а|ов)?"
_WRITTEN: Final = "|".join(sorted(map(re.escape, filter(None, _WORDS)), key=len, reverse=True))
_NUMBER: Final = rf"(?P<number>\d{{1,3}}|{_WRITTEN})"
_UNITS: Final = rf"(?:(?P<minutes>{_MINUTES})|(?P<hours>{_HOURS}))"
_SPACED: Final = re.compile(rf"(?<!\w)(?:in|en|dans|tra|fra|em|daqui a|over|через) {_NUMBER} {_UNITS}(?!\w)")
_ONE: Final = re.compile(r"(?<!\w)через (?P<number>)(?:(?P<minutes>минуту)|(?P<hours>час))(?!\w)")
_UNSPACED: Final = re.compile(
    r"(?P<number>\d{1,3}|[一二两三四五十]+)(?:个)?(?:(?P<minutes>分钟|分)|(?P<hours>小时|時間))(?:后|後|以后)"
)
_HOUR: Final = timedelta(hours=1)


class Distance(NamedTuple):
    """A moment that is named by its distance from now, and where."""

    start: int
    end: int
    at: datetime


def short_while(folded: str, said: datetime) -> Distance | None:
    """Return the moment that a folded text names by its distance from when it was said; None where it names none."""
    match = _SPACED.search(folded) or _ONE.search(folded) or _UNSPACED.search(folded)
    if match is None:
        return None
    written = match["number"] or ""
    count = float(written) if written.isdecimal() else _WORDS.get(written)
    if count is None:
        return None
    try:
        # Counted in UTC: on the days when the clocks change, two hours later is not two hours further on the clock.
        at = said.astimezone(UTC) + count * (_HOUR / 60 if match["minutes"] else _HOUR)
        return Distance(match.start(), match.end(), at.astimezone(said.tzinfo))
    except OverflowError:
        return None
