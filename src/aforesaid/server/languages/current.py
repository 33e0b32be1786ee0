"""The language of a request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from aforesaid.errors import InvalidInput
from aforesaid.server.languages.catalogue import ENGLISH, Language, read_language

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


_OWN: Final = Path(__file__).parent
_MOST_PREFERENCES: Final = 20


class OfferedLanguages:
    def __init__(self, default: str | None = None, folder: str | None = None) -> None:
        """Read the catalogues. A file of the folder replaces one of the package with the same name.

        `default` is the language of browsers that have not chosen one; None uses their Accept-Language header.
        Raises `InvalidInput` for an unknown default, a missing folder, or a file that is not a catalogue.
        """
        self.by_code: Mapping[str, Language] = {ENGLISH.code: ENGLISH, **_own(), **_of_folder(folder)}
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


@cache
def _own() -> Mapping[str, Language]:
    return {path.stem: read_language(path) for path in sorted(_OWN.glob("*.toml"))}


def _of_folder(folder: str | None) -> Mapping[str, Language]:
    if folder is None:
        return {}
    place = Path(folder).expanduser()
    if not place.is_dir():
        raise InvalidInput(f"server.languages is {folder}, which is not a folder")
    return {path.stem: read_language(path) for path in sorted(place.glob("*.toml"))}


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
