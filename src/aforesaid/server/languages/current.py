"""Texts in the language of the request that is being answered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from markupsafe import Markup, escape

from aforesaid.server.languages.catalogue import ENGLISH, Language

_current: Final[ContextVar[Language]] = ContextVar("aforesaid_language", default=ENGLISH)


def current() -> Language:
    """Return the language of the request; English outside of one."""
    return _current.get()


@contextmanager
def using(language: Language) -> Iterator[None]:
    """Use a language inside the block."""
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
