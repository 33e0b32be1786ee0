"""Values of the domain as plain JSON that people can read, and back again."""

from __future__ import annotations

import base64
import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, timedelta
from functools import cache
from inspect import signature
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

_MICROSECOND = timedelta(microseconds=1)


def encode(value: Any) -> Any:  # noqa: ANN401 - takes apart whatever it is given
    """Return a value as JSON knows it. What is missing (None) is left out of records."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, date):  # a datetime is one too
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, timedelta):
        return value // _MICROSECOND
    if is_dataclass(value) and not isinstance(value, type):
        pairs = ((each.name, getattr(value, each.name)) for each in fields(value))
        return {name: encode(item) for name, item in pairs if item is not None}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: encode(item) for name, item in value._asdict().items() if item is not None}
    if isinstance(value, Mapping):
        return {name: encode(item) for name, item in value.items()}
    return [encode(item) for item in value]


def decode(kind: Any, plain: Any) -> Any:  # noqa: ANN401 - builds a value of any kind
    """Return the value of a type that `encode` made this of. Raises ValueError, TypeError or KeyError for all else."""
    return _decoder(kind)(plain)


@cache
def _decoder(kind: Any) -> Callable[[Any], Any]:  # noqa: ANN401
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        kinds = tuple(each for each in inside if each is not type(None))
        # Of several, each is one that JSON has.
        read = _decoder(kinds[0]) if len(kinds) == 1 else lambda plain: _expect(plain, kinds)
        return lambda plain: None if plain is None else read(plain)
    if origin is tuple:  # of any length
        each = _decoder(inside[0])
        return lambda plain: tuple([each(item) for item in _expect(plain, list)])
    if origin is Literal:
        return lambda plain: _one_of(plain, inside)
    if kind is Any or origin is Mapping or kind is Mapping:
        return lambda plain: plain
    return _PLAIN[kind] if kind in _PLAIN else _record(kind)


def _record(kind: Any) -> Callable[[Any], Any]:  # noqa: ANN401
    hints = get_type_hints(kind)
    needed = {name: each.default is each.empty for name, each in signature(kind).parameters.items()}
    empty = {name: None for name in needed if needed[name] and type(None) in get_args(hints[name])}
    decoders = [(name, _decoder(hints[name]), needed[name] and name not in empty) for name in needed]

    def read(plain: Any) -> Any:  # noqa: ANN401
        known = _expect(plain, dict)
        found = {name: decoder(known[name]) for name, decoder, needed in decoders if needed or name in known}
        return kind(**(empty | found))

    return read


def _expect(plain: Any, kind: Any) -> Any:  # noqa: ANN401
    if not isinstance(plain, kind) or (isinstance(plain, bool) and kind is int):
        raise TypeError(f"expected {kind}, found {type(plain).__name__}")
    return plain


def _aware(plain: str) -> datetime:
    at = datetime.fromisoformat(plain)
    if at.utcoffset() is None:
        raise ValueError(f"the time {at} has no time zone")
    return at


def _one_of(plain: Any, allowed: tuple[Any, ...]) -> Any:  # noqa: ANN401
    if plain not in allowed:
        raise ValueError(f"{plain!r} is none of {allowed}")
    return plain


_PLAIN: dict[Any, Callable[[Any], Any]] = {
    str: lambda plain: _expect(plain, str),
    bool: lambda plain: _expect(plain, bool),
    int: lambda plain: _expect(plain, int),
    float: lambda plain: plain if isinstance(plain, float) else float(_expect(plain, int)),
    datetime: _aware,
    date: date.fromisoformat,
    bytes: lambda plain: plain if isinstance(plain, bytes) else base64.b64decode(plain, validate=True),
    timedelta: lambda plain: _expect(plain, int) * _MICROSECOND,
}
