"""Whether a text mentions a time at all. Cheaper than reading the time, and independent of the language."""

from __future__ import annotations

import re
from typing import Final

from aforesaid.text.times.time_words import AMBIGUOUS_MONTHS, calendar_words, plain_calendar_words
from aforesaid.text.words import words_of

_TIME_WORDS: Final = plain_calendar_words().union(
    ["ago", "last", "next", "week", "weeks", "month", "months", "year", "years", "weekend", "recently"]
    + ["letzte", "letzten", "letzter", "letztes", "pasado", "pasada", "неделю", "недели", "неделе"]
    + ["上周", "下周", *calendar_words("chinese"), *calendar_words("japanese")]
)
_BEFORE_MONTH: Final = frozenset(
    {"in", "im", "en", "em", "a", "since", "until", "by", "seit", "bis", "desde", "в", "с"}
)
_YEAR: Final = 4
_MONTH: Final = re.compile(r"\d月")


def mentions_time(text: str) -> bool:
    """Return whether a text mentions a day, a week, a month or a year."""
    words = words_of(text)
    if not _TIME_WORDS.isdisjoint(words) or any(len(word) == _YEAR and word.isdecimal() for word in words):
        return True
    if not AMBIGUOUS_MONTHS.isdisjoint(words):
        return any(month in AMBIGUOUS_MONTHS and _shows_month(words, place) for place, month in enumerate(words))
    return not text.isascii() and _MONTH.search(text) is not None


def _shows_month(words: list[str], place: int) -> bool:
    """Return whether a number or a preposition beside a word shows that it is a month: "in May", "8 May"."""
    before, after = words[max(place - 1, 0) : place], words[place + 1 : place + 2]
    return any(word[0].isdecimal() for word in before + after) or not _BEFORE_MONTH.isdisjoint(before)
