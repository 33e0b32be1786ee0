"""Types of configuration values: validation, and parsing of environment variables."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Final
from urllib.parse import urlsplit

from aforesaid.settings.basic_values import WITHOUT, Choice, Secret
from aforesaid.settings.secrets import as_key

UNSET: Final = "default"
"""The value that leaves a number to the provider's default."""

LARGEST: Final = 10**12
"""The largest whole number of most settings."""
_YES: Final = ("true", "1", "yes", "on")
_NO: Final = ("false", "0", "no", "off")


@dataclass(frozen=True, slots=True)
class ValueType:
    """The type of a configuration value."""

    allowed: str
    """A description that completes the sentence "must be …"."""
    read: Callable[[object], object]
    """Validates a value and returns it, or raises ValueError."""
    parse: Callable[[str], object] = str
    """Parses the text of an environment variable into a value."""
    secret: bool = False


@dataclass(frozen=True, slots=True)
class Chain:
    """Models in the order in which they are tried, and whether to continue without a model if all fail."""

    choices: tuple[Choice, ...]
    without: bool


def text() -> ValueType:
    """Return the type of non-empty strings."""
    return ValueType("a text", _text)


def texts() -> ValueType:
    """Return the type of lists of strings; a single string needs no list."""
    return ValueType("a text or a list of texts", _texts, lambda given: given.split(","))


def networks() -> ValueType:
    """Return the type of IP addresses and networks; a single one needs no list."""
    words = "an IP address, a network such as 10.0.0.0/8, or a list of them"
    return ValueType(words, _networks, lambda given: given.split(","))


def secret() -> ValueType:
    """Return the type of API keys."""
    return ValueType("a key: printable characters without spaces", _secret, secret=True)


def password() -> ValueType:
    """Return the type of passwords."""
    return ValueType("a text", lambda value: Secret(_text(value)), secret=True)


def url() -> ValueType:
    """Return the type of server URLs."""
    return ValueType("an address such as http://localhost:11434/v1", _url)


def whole(least: int, most: int, *, unset: bool = False) -> ValueType:
    """Return the type of integers in a range."""
    words = f"a whole number from {least:,} to {most:,}{_or_unset(unset)}"

    def read(value: object) -> object:
        if unset and value == UNSET:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(words)
        return value

    return ValueType(words, read, lambda given: given if unset and given == UNSET else int(given))


def number(least: float, most: float, *, unset: bool = False) -> ValueType:
    """Return the type of numbers in a range."""
    words = f"a number from {least:g} to {most:g}{_or_unset(unset)}"

    def read(value: object) -> object:
        if unset and value == UNSET:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(words)
        if not least <= value <= most:
            raise ValueError(words)
        return float(value)

    return ValueType(words, read, lambda given: given if unset and given == UNSET else float(given))


def boolean() -> ValueType:
    """Return the type of booleans."""
    return ValueType("true or false", _boolean, _parse_boolean)


def one_of(*words: str) -> ValueType:
    """Return the type of one of a few words."""

    def read(value: object) -> object:
        if value not in words:
            raise ValueError(value)
        return value

    return ValueType(f"one of {', '.join(words)}", read)


def chain() -> ValueType:
    """Return the type of model chains; a single model needs no list."""
    return ValueType(
        f'"provider:model" or a list of them, where {WITHOUT!r} may stand last', _chain, lambda given: given.split(",")
    )


def model() -> ValueType:
    """Return the type of a single model, or none."""
    return ValueType(f'"provider:model", or {WITHOUT!r}', _model)


def _model(value: object) -> Choice | None:
    name = _text(value)
    return None if name == WITHOUT else _choice(name)


def choices() -> ValueType:
    """Return the type of lists of `provider:model`; a single one needs no list."""
    words = '"provider:model" or a list of them, where the model may be a pattern such as claude-*'
    return ValueType(words, lambda value: tuple(map(_choice, _texts(value))), lambda given: given.split(","))


def origins() -> ValueType:
    """Return the type of lists of origins of web pages; a single one needs no list."""
    words = 'an origin such as https://app.example.com, a list of them, or "*" for every page'
    return ValueType(words, _origins, lambda given: given.split(","))


def _networks(value: object) -> tuple[str, ...]:
    found = _texts(value)
    for each in found:
        ip_network(each)
    return found


def _origins(value: object) -> tuple[str, ...]:
    found = _texts(value)
    for each in found:
        parts = urlsplit(each)
        if each != "*" and (not parts.scheme or not parts.netloc or f"{parts.scheme}://{parts.netloc}" != each):
            raise ValueError(each)
    return tuple(each.lower() for each in found)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise ValueError(value)
    return value.strip()


def _texts(value: object) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple):
        raise ValueError(value)  # noqa: TRY004 - callers expect ValueError for every invalid value
    return tuple(_text(item) for item in items)


def _secret(value: object) -> Secret:
    key = as_key(_text(value))
    if key is None:
        raise ValueError("not a key")
    return key


def _url(value: object) -> str:
    address = _text(value)
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or any(map(str.isspace, address)):
        raise ValueError(address)
    _ = parts.port  # raises ValueError if it is invalid
    return address


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(value)  # noqa: TRY004 - callers expect ValueError for every invalid value
    return value


def _parse_boolean(given: str) -> object:
    word = given.lower()
    return True if word in _YES else False if word in _NO else given


def _chain(value: object) -> Chain:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not items:
        raise ValueError(value)
    names = [_text(item) for item in items]
    without = names[-1] == WITHOUT
    return Chain(tuple(map(_choice, names[:-1] if without else names)), without)


def _choice(name: str) -> Choice:
    provider, separator, model = name.partition(":")
    if not separator or not provider.strip() or not model.strip():
        raise ValueError(name)
    return Choice(provider.strip(), model.strip())


def _or_unset(unset: bool) -> str:  # noqa: FBT001 - of this file alone
    return f', or "{UNSET}" to leave it to the provider' if unset else ""
