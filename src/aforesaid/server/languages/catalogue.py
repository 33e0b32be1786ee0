"""One language: its texts, its plural forms, and how it writes numbers and dates."""

from __future__ import annotations

import string
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from aforesaid.errors import InvalidInput

Text = str | tuple[str, ...]
"""A text; one with a number has a text for each plural form."""

_SLAVIC_TENS: Final = range(12, 15)


def _one_or_other(number: int) -> int:
    return 0 if number == 1 else 1


def _up_to_one(number: int) -> int:
    return 0 if number in {0, 1} else 1


def _single(_: int) -> int:
    return 0


def _czech(number: int) -> int:
    return 0 if number == 1 else 1 if number in {2, 3, 4} else 2


def _polish(number: int) -> int:
    if number == 1:
        return 0
    return 1 if number % 10 in {2, 3, 4} and number % 100 not in _SLAVIC_TENS else 2


def _russian(number: int) -> int:
    if number % 10 == 1 and number % 100 != 11:  # noqa: PLR2004
        return 0
    return 1 if number % 10 in {2, 3, 4} and number % 100 not in _SLAVIC_TENS else 2


PLURALS: Final[Mapping[str, tuple[int, Callable[[int], int]]]] = {
    "one-other": (2, _one_or_other),
    "french": (2, _up_to_one),
    "single": (1, _single),
    "czech": (3, _czech),
    "polish": (3, _polish),
    "russian": (3, _russian),
}
"""Plural rules by name: how many forms there are, and the form for a number."""


@dataclass(frozen=True, slots=True)
class Language:
    code: str
    """A tag such as `de` or `pt-BR`, as in the `lang` attribute of a page."""
    name: str
    """Its name in the language itself."""
    texts: Mapping[str, Text] = field(default_factory=dict)
    """Texts by their English texts."""
    plural: str = "one-other"
    thousands: str = ","
    decimal: str = "."
    months: Sequence[str] = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    day: str = "{day} {month} {year}"
    moment: str = "{day} {month} {year}, {hour}:{minute}"

    def text(self, english: str) -> str:
        """Return a text in this language; in English if it is missing."""
        found = self.texts.get(english, english)
        return found if isinstance(found, str) else found[-1]

    def counted(self, singular: str, plural: str, count: int) -> str:
        """Return the form of a text that goes with a number. `singular` is its key."""
        found = self.texts.get(singular)
        if isinstance(found, tuple):
            return found[PLURALS[self.plural][1](abs(count))]
        return singular if count == 1 else plural

    def number(self, value: float, decimals: int = 0) -> str:
        """Write a number with separators between thousands."""
        whole, _, rest = f"{value:,.{decimals}f}".partition(".")
        whole = whole.replace(",", self.thousands)
        return f"{whole}{self.decimal}{rest}" if rest else whole

    def date(self, value: date) -> str:
        return self.day.format(day=value.day, month=self.months[value.month - 1], year=value.year)

    def time(self, value: datetime) -> str:
        """Write a moment in UTC. A script replaces it by the reader's local time."""
        at = value.astimezone(UTC)
        month = self.months[at.month - 1]
        written = self.moment.format(
            day=at.day, month=month, year=at.year, hour=f"{at.hour:02}", minute=f"{at.minute:02}"
        )
        return f"{written} UTC"


ENGLISH: Final = Language("en", "English")


def read_language(path: Path) -> Language:
    """Read the catalogue of a language. The name of the file is its code, as in `de.toml`.

    Raises `InvalidInput` for a file that is not one.
    """
    try:
        with path.open("rb") as file:
            data = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the language {path} cannot be read: {error}") from None
    texts: dict[str, Text] = {}
    numbers, dates = data.get("numbers", {}), data.get("dates", {})
    language = Language(
        path.stem,
        _string(path, data, "name"),
        texts,
        plural=_string(path, data, "plural", ENGLISH.plural),
        thousands=_string(path, numbers, "thousands", ENGLISH.thousands),
        decimal=_string(path, numbers, "decimal", ENGLISH.decimal),
        months=_months(path, dates),
        day=_string(path, dates, "day", ENGLISH.day),
        moment=_string(path, dates, "moment", ENGLISH.moment),
    )
    if language.plural not in PLURALS:
        raise InvalidInput(f"{path}: plural is {language.plural!r}; it must be one of {', '.join(PLURALS)}")
    for english, text in data.get("texts", {}).items():
        texts[english] = _text(path, english, text, PLURALS[language.plural][0])
    return language


def placeholders(text: str) -> set[str]:
    """Return the names in braces of a text."""
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def _string(path: Path, table: Mapping[str, object], key: str, default: str | None = None) -> str:
    value = table.get(key, default)
    if not isinstance(value, str):
        raise InvalidInput(f"{path}: {key} must be a text")
    return value


def _months(path: Path, dates: Mapping[str, object]) -> Sequence[str]:
    months = dates.get("months", list(ENGLISH.months))
    if (
        not isinstance(months, list)
        or len(months) != len(ENGLISH.months)
        or not all(isinstance(m, str) for m in months)
    ):
        raise InvalidInput(f"{path}: months must be a list of 12 texts")
    return tuple(months)


def _text(path: Path, english: str, text: object, forms: int) -> Text:
    """Return a text of a catalogue. A wrong one would break a page only when that page is opened."""
    texts: list[object] = text if isinstance(text, list) else [text]
    forms_of_text = [each for each in texts if isinstance(each, str)]
    if len(forms_of_text) != len(texts) or len(texts) not in {1, forms}:
        raise InvalidInput(f"{path}: the text for {english!r} must be a text, or a list of {forms} texts")
    allowed = placeholders(english)
    for each in forms_of_text:
        try:
            unknown = placeholders(each) - allowed
        except ValueError as error:
            raise InvalidInput(f"{path}: the text for {english!r} has unpaired braces: {error}") from None
        if unknown:
            names = ", ".join(sorted(unknown))
            raise InvalidInput(f"{path}: the text for {english!r} has unknown placeholders: {names}")
    return tuple(forms_of_text) if isinstance(text, list) else forms_of_text[0]
