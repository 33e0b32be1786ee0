"""Recognises questions about the course of events: what came first, what happened in May, how something went."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from aforesaid.text.folding import fold
from aforesaid.text.languages import guess_language
from aforesaid.text.stop_words import stop_words
from aforesaid.text.times.time_words import calendar_words, plain_calendar_words
from aforesaid.text.vocabulary import vocabulary
from aforesaid.text.words import words_of

_EAST_ASIAN_DATE: Final = re.compile("(?:[0-9]+|[一二三四五六七八九十]+)[年月日号월일년]|[上下先来今]个?[周月年週]")
_YEAR_DIGITS: Final = 4
_MOST_CHARACTERS: Final = 1_000
"""Longer questions are cut off: the time that the patterns take grows with the square of the length."""


def asks_for_order(question: str) -> bool:
    """Return whether a question is about the course of events."""
    return _words().pattern.search(_folded(question)) is not None


def topic_words(question: str) -> str:
    """Return the words of a question about the course of events that say what it is about; empty for everything."""
    language = guess_language(question)
    dates = plain_calendar_words() | calendar_words(language)
    dull = stop_words(language) | vocabulary(language).dull | dates | _words().fillers
    words = words_of(_EAST_ASIAN_DATE.sub(" ", _words().pattern.sub(" ", _folded(question))))
    telling = [word for word in words if word not in dull and not _is_year(word)]
    return " ".join([word for word in telling if word not in _words().undertakings] or telling)


class _Words(NamedTuple):
    """What order_questions.toml holds."""

    pattern: re.Pattern[str]
    fillers: frozenset[str]
    undertakings: frozenset[str]


@cache
def _words() -> _Words:
    table = tomllib.loads((files("aforesaid.text") / "order_questions.toml").read_text(encoding="utf-8"))
    patterns = "|".join(f"(?:{pattern})" for patterns in table["patterns"].values() for pattern in patterns)
    return _Words(re.compile(patterns), *(frozenset(table[name].split()) for name in ("fillers", "undertakings")))


def _folded(question: str) -> str:
    return fold(question[:_MOST_CHARACTERS]).replace("’", "'")


def _is_year(word: str) -> bool:
    return len(word) == _YEAR_DIGITS and word.isdecimal()
