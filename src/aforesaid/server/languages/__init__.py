"""The languages of the panel: texts, numbers and dates.

English texts are the keys of the catalogues, and what is shown where a catalogue lacks one. Templates call `_` and
`_n`, Python calls `translate` and `plural`; all of them use the language of the request that is being answered. The
texts of errors that somebody can meet in the panel stand in a table of their own in the German catalogue; a test
compares it with the sources.
"""

from __future__ import annotations

import string
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from aforesaid.errors import InvalidInput
from aforesaid.extras import re
from aforesaid.text.plurals import PLURALS

Text = str | tuple[str, ...]
"""A text; one with a number has a text for each plural form."""


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
    errors: Sequence[str] = ()
    """Those of the texts that errors have."""
    direction: str = "ltr"
    """`ltr`, or `rtl` for one that is written from right to left."""

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
        month, hour, minute = self.months[at.month - 1], f"{at.hour:02}", f"{at.minute:02}"
        return f"{self.moment.format(day=at.day, month=month, year=at.year, hour=hour, minute=minute)} UTC"


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

    def text_of(table: Mapping[str, object], key: str, default: str | None = None) -> str:
        value = table.get(key, default)
        if not isinstance(value, str):
            raise InvalidInput(f"{path}: {key} must be a text")
        return value

    texts: dict[str, Text] = {}
    numbers, dates = data.get("numbers", {}), data.get("dates", {})
    name, plural = text_of(data, "name"), text_of(data, "plural", ENGLISH.plural)
    thousands = text_of(numbers, "thousands", ENGLISH.thousands)
    decimal = text_of(numbers, "decimal", ENGLISH.decimal)
    months = dates.get("months", list(ENGLISH.months))
    if not isinstance(months, list) or len(months) != len(ENGLISH.months) or any(type(m) is not str for m in months):
        raise InvalidInput(f"{path}: months must be a list of 12 texts")
    day, moment = text_of(dates, "day", ENGLISH.day), text_of(dates, "moment", ENGLISH.moment)
    if (direction := text_of(data, "direction", ENGLISH.direction)) not in {"ltr", "rtl"}:
        raise InvalidInput(f"{path}: direction is {direction!r}; it must be ltr or rtl")
    if plural not in PLURALS:
        raise InvalidInput(f"{path}: plural is {plural!r}; it must be one of {', '.join(PLURALS)}")
    errors = data.get("errors", {})
    for english, text in (data.get("texts", {}) | errors).items():
        texts[english] = _checked_text(path, english, text, PLURALS[plural][0])
    return Language(
        path.stem, name, texts, plural, thousands, decimal, tuple(months), day, moment, tuple(errors), direction
    )


def placeholders(text: str) -> set[str]:
    """Return the names in braces of a text."""
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def _checked_text(path: Path, english: str, text: object, forms: int) -> Text:
    """Return a text of a catalogue. A wrong one would break a page only when that page is opened."""
    texts: list[object] = text if isinstance(text, list) else [text]
    forms_of_text = [each for each in texts if isinstance(each, str)]
    if len(forms_of_text) != len(texts) or len(texts) not in {1, forms}:
        raise InvalidInput(f"{path}: the text for {english!r} must be a text, or a list of {forms} texts")
    for each in forms_of_text:
        try:
            unknown = placeholders(each) - placeholders(english)
        except ValueError as error:
            raise InvalidInput(f"{path}: the text for {english!r} has unpaired braces: {error}") from None
        if unknown:
            names = ", ".join(sorted(unknown))
            raise InvalidInput(f"{path}: the text for {english!r} has unknown placeholders: {names}")
    return tuple(forms_of_text) if isinstance(text, list) else forms_of_text[0]


_current: Final[ContextVar[Language]] = ContextVar("aforesaid_language", default=ENGLISH)


def current() -> Language:
    """Return the language of the request; English outside of one."""
    return _current.get()


@contextmanager
def using(language: Language) -> Iterator[None]:
    token = _current.set(language)
    try:
        yield
    finally:
        _current.reset(token)


def N_(english: str) -> str:  # noqa: N802 - the usual name for it
    """Mark a text that is translated later, by a variable. Return it as it is."""
    return english


def translate(english: str, **values: object) -> str:
    """Return a text with its placeholders filled in. Whole numbers get separators between thousands."""
    language = _current.get()
    text = language.text(english)
    return text.format(**_written(language, values)) if values else text


def plural(singular: str, plural: str, count: int, **values: object) -> str:
    """Return a text with the number `{count}` in it: `plural("{count} message", "{count} messages", 3)`."""
    language = _current.get()
    return language.counted(singular, plural, count).format(**_written(language, {"count": count, **values}))


def translate_in_page(english: str, **values: object) -> Markup:
    """Return a text for a page: `_` in templates. It is escaped; values that are markup are not."""
    language = _current.get()
    text = escape(language.text(english))
    return text.format(**_written(language, values)) if values else text


def plural_in_page(singular: str, plural: str, count: int, **values: object) -> Markup:
    """Return a text with a number for a page: `_n` in templates."""
    language = _current.get()
    text = escape(language.counted(singular, plural, count))
    return text.format(**_written(language, {"count": count, **values}))


def _written(language: Language, values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: language.number(value) if isinstance(value, int) and not isinstance(value, bool) else value
        for name, value in values.items()
    }


_MOST_PREFERENCES: Final = 20


class OfferedLanguages:
    def __init__(self, default: str | None = None, folder: str | None = None) -> None:
        """Read the catalogues. A file of the folder replaces one of the package with the same name.

        `default` is the language of browsers that have not chosen one; None uses their Accept-Language header.
        Raises `InvalidInput` for an unknown default, a missing folder, or a file that is not a catalogue.
        """
        self.by_code: dict[str, Language] = {ENGLISH.code: ENGLISH, **_own()}
        if folder is not None:
            place = Path(folder).expanduser()
            if not place.is_dir():
                raise InvalidInput(f"server.languages is {folder}, which is not a folder")
            self.by_code |= _in_folder(place)
        self._by_tag = {code.lower(): language for code, language in self.by_code.items()}
        if default is not None and default.lower() not in self._by_tag:
            raise InvalidInput(f"server.language is {default!r}; it must be one of {', '.join(self.by_code)}")
        self._default = default

    def choose(self, chosen: str | None, accepted: str | None) -> Language:
        """Return the language of a request, from its cookie and its Accept-Language header."""
        for code in (chosen, self._default):
            if code and (found := self._by_tag.get(code.lower())):
                return found
        for tag in _preferred(accepted or ""):
            if found := self._by_tag.get(tag) or self._by_tag.get(tag.partition("-")[0]):
                return found
        return ENGLISH


def _in_folder(folder: Path) -> Mapping[str, Language]:
    return {path.stem: read_language(path) for path in sorted(folder.glob("*.toml"))}


@cache
def _own() -> Mapping[str, Language]:
    return _in_folder(Path(__file__).parent)


def _preferred(header: str) -> Iterator[str]:
    """Yield the tags of an Accept-Language header, the preferred first."""
    weighted = []
    for part in header.split(",")[:_MOST_PREFERENCES]:
        tag, _, rest = part.strip().partition(";")
        try:
            weight = float(rest.strip().removeprefix("q=") or 1)
        except ValueError:
            weight = 0.0
        if tag and weight > 0:
            weighted.append((weight, tag.strip().lower()))
    return (tag for _, tag in sorted(weighted, key=lambda each: -each[0]))


def translate_error(text: str) -> str:
    """Return the text of an error in the language of the request; as it is, if it is in no catalogue.

    Rooms below the server know no languages: they raise English sentences with their values in them.
    """
    language = current()
    if language is ENGLISH:
        return text
    for english, pattern in _error_patterns():
        if found := pattern.fullmatch(text):
            values = {name: language.text(value) for name, value in found.groupdict().items()}
            return language.text(english).format(**values)
    return language.text(text)


@cache
def _error_patterns() -> list[tuple[str, re.Pattern[str]]]:
    """Return a pattern for each text of an error, those with the most words of their own first: they say the most."""

    def own_words(english: str) -> int:
        return len(re.sub(r"\{\w+\}", "", english))

    known = {english for language in _own().values() for english in language.errors}
    return [
        (english, re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+?)", re.escape(english)), re.DOTALL))
        for english in sorted(known, key=lambda each: (-own_words(each), each))
    ]


COOKIE: Final = "aforesaid_language"
_NO_PAGES: Final = ("/api", "/v1", "/mcp", "/static")
"""Paths below these answer programs, in English."""


class Languages:
    def __init__(self, app: ASGIApp, offered: OfferedLanguages) -> None:
        self._app = app
        self._offered = offered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer in the language of the cookie, of the settings, or of the browser."""
        if scope["type"] != "http" or scope["path"].startswith(_NO_PAGES):
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        with using(self._offered.choose(request.cookies.get(COOKIE), request.headers.get("accept-language"))):
            await self._app(scope, receive, send)
