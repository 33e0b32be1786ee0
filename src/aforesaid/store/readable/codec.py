"""Values of the domain as plain JSON that people can read, and back again."""

from __future__ import annotations

import base64
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import date, datetime, timedelta
from functools import cache
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
        decoders = [_decoder(each) for each in inside if each is not type(None)]
        return lambda plain: None if plain is None else _first_that_fits(decoders, plain)
    if origin is tuple:
        each = [_decoder(item) for item in inside if item is not Ellipsis]
        repeated = inside[-1] is Ellipsis
        return lambda plain: tuple(
            [
                read(item)
                for read, item in zip(each * len(plain) if repeated else each, _expect(plain, list), strict=True)
            ]
        )
    if origin is Literal:
        return lambda plain: _one_of(plain, inside)
    if kind is Any or origin is Mapping or kind is Mapping:
        return lambda plain: plain
    return _PLAIN[kind] if kind in _PLAIN else _record(kind)


def _record(kind: Any) -> Callable[[Any], Any]:  # noqa: ANN401
    hints = get_type_hints(kind)
    if is_dataclass(kind):
        needed = {each.name for each in fields(kind) if each.default is MISSING and each.default_factory is MISSING}
        names = [each.name for each in fields(kind)]
    else:
        needed, names = set(kind._fields) - set(kind._field_defaults), list(kind._fields)
    empty = {name: None for name in needed if type(None) in get_args(hints[name])}
    decoders = [(name, _decoder(hints[name]), name in needed and name not in empty) for name in names]

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


def _first_that_fits(decoders: list[Callable[[Any], Any]], plain: Any) -> Any:  # noqa: ANN401
    for decoder in decoders[:-1]:
        try:
            return decoder(plain)
        except (TypeError, ValueError, KeyError):
            continue
    return decoders[-1](plain)


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
