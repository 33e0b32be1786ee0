"""What a message is like, whatever the question is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from aforesaid.recall.candidates import Candidates
from aforesaid.text.times.time_words import AMBIGUOUS_MONTHS, plain_calendar_words
from aforesaid.text.words import words_of

if TYPE_CHECKING:
    from aforesaid.recall.candidates import Numbers

_TIME_WORDS: Final = plain_calendar_words().union(
    ["ago", "last", "next", "week", "weeks", "month", "months", "year", "years", "weekend", "recently"]
    + ["letzte", "letzten", "letzter", "letztes", "pasado", "pasada", "неделю", "недели", "неделе"]
    + ["昨天", "今天", "明天", "上周", "下周", "昨日", "今日", "明日"]
)
_BEFORE_MONTH: Final = frozenset(
    {"in", "im", "en", "em", "a", "since", "until", "by", "seit", "bis", "desde", "в", "с"}
)
_YEAR: Final = 4
_MONTH: Final = re.compile(r"\d月")
_TYPICAL_LENGTH: Final = 2.5
"""The logarithm of the number of words of a usual chat turn."""
_MANY_MESSAGES: Final = 100
"""With this many messages, age counts half: in a short chat the first and the last message are equally old."""


def asked_in_return(candidates: Candidates) -> Numbers:
    """Return 1 for a question: it asks, and does not tell."""
    import numpy as np  # noqa: PLC0415

    return np.array([float(text.rstrip().endswith(("?", "？", "؟"))) for text in candidates.texts])


def asks_when_and_tells_when(candidates: Candidates) -> Numbers:
    """Return 1 for a message that mentions a time, if the question asks when."""
    import numpy as np  # noqa: PLC0415

    if not candidates.question.asks_when:
        return np.zeros(len(candidates.rows))
    return np.array([float(_speaks_of_time(text)) for text in candidates.texts])


def length(candidates: Candidates) -> Numbers:
    """Return how much longer than usual it is: "Thanks!" is rarely the answer."""
    import numpy as np  # noqa: PLC0415

    return np.log1p([_words(text) for text in candidates.texts]) - _TYPICAL_LENGTH


def recency(candidates: Candidates) -> Numbers:
    """Return its place between the oldest message and the newest, 0 to 1; less where there are few messages."""
    messages = len(candidates.columns)
    return candidates.rows / max(messages - 1, 1) * (messages / (messages + _MANY_MESSAGES))


def own_words(candidates: Candidates) -> Numbers:
    """Return 1 for what people said, 0 for what the assistant said."""
    return (~candidates.columns.assistant[candidates.rows]).astype(float)


def _speaks_of_time(text: str) -> bool:
    words = words_of(text)
    if not _TIME_WORDS.isdisjoint(words) or any(len(word) == _YEAR and word.isdecimal() for word in words):
        return True
    if not AMBIGUOUS_MONTHS.isdisjoint(words):
        return any(month in AMBIGUOUS_MONTHS and _shows_month(words, place) for place, month in enumerate(words))
    return not text.isascii() and _MONTH.search(text) is not None


def _shows_month(words: list[str], place: int) -> bool:
    """Tell whether a number or a preposition beside a word shows that it is a month: "in May", "8 May"."""
    before, after = words[max(place - 1, 0) : place], words[place + 1 : place + 2]
    return any(word[0].isdecimal() for word in before + after) or not _BEFORE_MONTH.isdisjoint(before)


def _words(text: str) -> float:
    # Scripts without spaces pack about one word into two characters.
    return len(text.split()) if text.isascii() else max(len(text.split()), len(text) / 6)
