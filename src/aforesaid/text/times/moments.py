"""Moments that are named by minutes or hours from now: in twenty minutes, in zwei Stunden, через час, 两小时后."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from aforesaid.text.times.number_words import CHINESE_NUMBER, NUMBERS, east_asian_number

_WORDS: Final = {word: number for numbers in NUMBERS.values() for word, number in numbers.items()} | {
    **dict.fromkeys(("half an", "half a", "einer halben", "media", "une demi", "mezz'", "полчаса"), 0.5),
    **dict.fromkeys(("a", "an", ""), 1),
}
"""Numbers in all languages: a few words do not show their language."""
_MINUTES: Final = r"minutes?|mins?|minuten?|minutos?|minuti|минут[уы]?"
_HOURS: Final = r"hours?|hrs?|stunden?|horas?|heures?|or[ae]|uur|час(?:а|ов)?"
_WRITTEN: Final = "|".join(sorted(map(re.escape, filter(None, _WORDS)), key=len, reverse=True))
_NUMBER: Final = rf"(?P<number>\d{{1,3}}|{_WRITTEN})"
_UNITS: Final = rf"(?:(?P<minutes>{_MINUTES})|(?P<hours>{_HOURS}))"
_SPACED: Final = re.compile(rf"(?<!\w)(?:in|en|dans|tra|fra|em|daqui a|over|через) {_NUMBER} {_UNITS}(?!\w)")
_ONE: Final = re.compile(r"(?<!\w)через (?P<number>)(?:(?P<minutes>минуту)|(?P<hours>час))(?!\w)")
_UNSPACED: Final = re.compile(
    rf"(?P<number>\d{{1,3}}|{CHINESE_NUMBER})(?:个)?(?:(?P<minutes>分钟|分)|(?P<hours>小时|時間))(?:后|後|以后)"
)
_HOUR: Final = timedelta(hours=1)


class Distance(NamedTuple):
    """A moment named by its distance from now, and its position in the text."""

    start: int
    end: int
    at: datetime


def moment_from_now(folded: str, said: datetime) -> Distance | None:
    """Return the moment that a folded text names by minutes or hours from `said`; None if there is none."""
    match = _SPACED.search(folded) or _ONE.search(folded) or _UNSPACED.search(folded)
    if match is None:
        return None
    written = match["number"] or ""
    count = _WORDS[written] if written in _WORDS else east_asian_number(written)
    try:
        # Counted in UTC: on the days when the clocks change, two hours later is not two hours further on the clock.
        at = said.astimezone(UTC) + count * (_HOUR / 60 if match["minutes"] else _HOUR)
        return Distance(match.start(), match.end(), at.astimezone(said.tzinfo))
    except OverflowError:
        return None
