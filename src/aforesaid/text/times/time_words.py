"""The words for days, weeks, months and hours in several languages, folded as in the keyword index."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, NamedTuple

from aforesaid.extras import re
from aforesaid.text.words import SIGNS, by_language

_COUNTED: Final = (*range(1, 13), 15, 20, 30)
_FORMS: Final = {
    language: [
        (form, number, place == 0)
        for number, forms in zip(_COUNTED, table["numbers"].split(), strict=True)
        for place, form in enumerate(forms.split("|"))
    ]
    for language, table in by_language().items()
    if "numbers" in table
}
"""Words for the counted numbers, in order. The first of several forms is the one for counting."""
NUMBERS: Final = {language: {form: number for form, number, _ in forms} for language, forms in _FORMS.items()}
"""The value of each number word, in all its forms, by language."""
HOURS: Final = {
    language: {form: number for form, number, first in forms if first and number <= 12}  # noqa: PLR2004 - of a clock
    | by_language()[language].get("hours", {}).get("words", {})
    for language, forms in _FORMS.items()
}
"""The value of each number word that names an hour: "um eins", but not "um eine"."""

_CHINESE_DIGITS: Final = {
    "一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9,
}  # fmt: skip
_TEN: Final = 10
CHINESE_NUMBER: Final = "[一二两三四五六七八九]?十[一二三四五六七八九]?|[一二两三四五六七八九]"
"""The pattern of a number below 100 in Chinese characters, which Japanese uses too."""


def east_asian_number(written: str) -> int:
    """Return a number that is written in digits, or one below 100 in Chinese characters."""
    if written.isdecimal():
        return int(written)
    tens, ten, ones = written.rpartition("十")
    if not ten:
        return _CHINESE_DIGITS[written]
    return (_CHINESE_DIGITS[tens] if tens else 1) * _TEN + (_CHINESE_DIGITS[ones] if ones else 0)


class CalendarWords(NamedTuple):
    """How a language names times. Words are alternatives of a pattern, separated by bars."""

    days: dict[str, int]
    """Days counted from today."""
    weekdays: tuple[str, ...]
    """From Monday."""
    months: tuple[str, ...]
    units: dict[str, str]
    """Of weekend, day, week, month and year."""
    upcoming: str
    past: str
    present: str
    ago: tuple[str, ...]
    """Forms in which N stands for a number and U for a unit."""
    ahead: tuple[str, ...]
    numbers: dict[str, int]
    clock: tuple[str, ...]
    """Patterns of a time of day, with the groups h, and if need be m and half.

    With am or pm, or in the form of 24 hours: what leaves the half of the day open is not read."""
    before_month: str
    """What comes before the name of a month and shows that it is one: "in May", "the end of May"."""
    ambiguous: frozenset[str] = frozenset()
    """Names of months that are also other words or people's names: "may", "julio". Alone, they are not months."""


_COLON: Final = r"(?<![\d:.])(?P<h>\d{1,2})[:h](?P<m>\d{2})(?![\d:])"


def _calendar(language: str, table: dict[str, Any]) -> CalendarWords:
    found = {name: value.replace("\n", "") if isinstance(value, str) else value for name, value in table.items()}
    return CalendarWords(
        **found
        | {name: tuple(table[name]) for name in ("weekdays", "months", "ago", "ahead")}
        | {
            "numbers": NUMBERS.get(language, {}) | table.get("numbers", {}),
            "clock": tuple(pattern.replace("{COLON}", _COLON) for pattern in table["clock"]),
            "ambiguous": frozenset(table.get("ambiguous", "").split()),
        }
    )


CALENDARS: Final = {
    language: _calendar(language, table["calendar"]) for language, table in by_language().items() if "calendar" in table
}

AFTERNOON: Final = frozenset({"pm", "p.m", "tarde", "noche", "noite", "дня", "вечера", "下午", "晚上", "午後", "夜"})

EAST_ASIAN_DAYS: Final = {
    "chinese": {
        "大后天": 3, "后天": 2, "明天": 1, "明晚": 1, "今天": 0, "今晚": 0, "昨天": -1, "昨晚": -1, "前天": -2,
    },
    "japanese": {
        "明後日": 2, "あさって": 2, "明日": 1, "今日": 0, "今晩": 0, "昨日": -1, "昨夜": -1, "一昨日": -2,
        "おととい": -2,
    },
}  # fmt: skip
"""Days counted from today, in languages without spaces, whose times are read by these tables and not by `CALENDARS`."""
EAST_ASIAN_LANGUAGES: Final = frozenset(EAST_ASIAN_DAYS)
CHINESE_WEEKDAYS: Final = "一二三四五六日"
JAPANESE_WEEKDAYS: Final = "月火水木金土日"
EAST_ASIAN_CLOCK: Final = re.compile(
    r"(?P<half>上午|早上|凌晨|中午|下午|晚上|今晚|午前|午後|朝|夜)の?"
    rf"(?P<h>\d{{1,2}}|{CHINESE_NUMBER})(?:[点點时時]|:)(?P<m>\d{{2}}|半)?"
)
SHORT_WEEKDAYS: Final = tuple(name[:3].capitalize() for name in CALENDARS["english"].weekdays)
"""Mon to Sun, whatever the locale is."""
SHORT_MONTHS: Final = tuple(name[:3].capitalize() for name in CALENDARS["english"].months)
"""Jan to Dec."""
AMBIGUOUS_MONTHS: Final = frozenset().union(*(calendar.ambiguous for calendar in CALENDARS.values()))
_OTHER_MEANINGS: Final = AMBIGUOUS_MONTHS | {"hier", "morgen", "segunda", "terca", "quarta", "quinta", "sexta"}
"""Words that name a day or a month in one language and something else in the same one or another."""
_ENDING: Final = re.compile(r"\[(\w+)\](\??)")
_OPEN_ENDING: Final = re.compile(r"\(\?:[^)]*\)\?|\[а-я\]\*")
"""Parts of a pattern that may match nothing. The word is listed without them."""

_IS_WORD: Final = re.compile(rf"[\w{SIGNS}]+")


@cache
def month_words(language: str) -> frozenset[str]:
    """Return the words that name months in a language, with their abbreviations and cases."""
    return _words(*CALENDARS[language].months) if language in CALENDARS else frozenset()


@cache
def calendar_words(language: str) -> frozenset[str]:
    """Return the single words that name days and months in a language, such as "monday", "june" and "yesterday"."""
    if language not in CALENDARS:
        return frozenset(EAST_ASIAN_DAYS.get(language, ()))
    calendar = CALENDARS[language]
    return month_words(language) | _words(*calendar.weekdays, *calendar.days)


@cache
def full_calendar_words(language: str) -> frozenset[str]:
    """Return the single words that name days and months in a language, without abbreviations such as "jan"."""
    words = calendar_words(language)
    return frozenset(
        word
        for word in words
        if not (word.isascii() and any(other != word and other.startswith(word) for other in words))
    )


@cache
def plain_calendar_words() -> frozenset[str]:
    """Return the single words of all languages that name days and months and mean nothing else."""
    return frozenset().union(*map(calendar_words, CALENDARS)) - _OTHER_MEANINGS


def _words(*patterns: str) -> frozenset[str]:
    """Return the single words that patterns match, each with every ending."""
    found: set[str] = set()
    for pattern in patterns:
        listed = _OPEN_ENDING.sub("", pattern)
        for word in listed.split("|") if "(" not in listed else ():
            ending = _ENDING.search(word)
            stem = word[: ending.start()] if ending else word
            endings = [] if ending is None else [*ending[1]]
            if ending is None or ending[2]:
                endings.append("")
            found.update(stem + letters for letters in endings if _IS_WORD.fullmatch(stem))
    return frozenset(found)
