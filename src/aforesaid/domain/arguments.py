"""Checks of the arguments of public methods, derived from their annotations.

Every public method has such a check, whatever calls it: Python code, the REST API, MCP, the command line, the panel or
a bot. So no store is given a value of a wrong type, a time without a time zone, a number that another store cannot
hold, or text that is not valid Unicode, and ids that look the same are the same (`KnownIds`). What one method alone
requires (ranges, lengths) is checked in that method.
"""

from __future__ import annotations

import os
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from functools import cache
from inspect import signature
from typing import Any, Final, Literal, NamedTuple, TypeAlias, Union, get_args, get_origin

from aforesaid.domain import checks
from aforesaid.domain.details import KnownIds
from aforesaid.domain.message import Message
from aforesaid.errors import InvalidInput, TooLarge, quoted

ValueCheck: TypeAlias = Callable[[Any], Any]
ArgumentCheck: TypeAlias = Callable[[Any, KnownIds], Any]
Check: TypeAlias = Callable[[KnownIds, tuple[Any, ...], dict[str, Any]], tuple[Any, ...]]
"""Takes the positional and the named arguments of a call, and returns the positional ones."""

_IDS: Final = frozenset({"user", "space", "thread", "chat", "session", "author", "by"})
"""Arguments that are ids of users, spaces, threads, chats and sessions."""
_ITEM: Final = "an item of "
_MOST_ITEMS: Final = 10_000
"""Maximum number of items of a list argument."""
_LISTS: Final = (Sequence, Collection, Iterable)
_WORDS: Final[Mapping[Any, str]] = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    datetime: "a datetime",
    date: "a date",
    Message: "a message",
    os.PathLike: "a path",
    Callable: "a function",
    Mapping: "a mapping",
}


class _Kind(NamedTuple):
    """One type that an argument may have: how it is recognised, checked and described."""

    fits: Callable[[object], bool]
    check: ValueCheck
    words: str


def argument_check(method: Callable[..., Any], *loose: str) -> Check:
    """Return a function that checks the arguments of a method against their annotations before it runs.

    It returns the positional arguments and changes the others in place. Of the parameters in `loose` only the type is
    checked: search texts may hold any characters, some times may come without a time zone, and a method that takes
    very many items checks them one by one itself. Raises InvalidInput.
    """

    @cache
    def compiled() -> tuple[tuple[ArgumentCheck, ...], dict[str, ArgumentCheck]]:
        # On first use: some annotations name what the module defines further below.
        named = {
            name: _naming(name, _check_for(eval(each.annotation, method.__globals__), name, loose=name in loose))  # noqa: S307
            for name, each in signature(method).parameters.items()
            if name != "self"
        }
        return tuple(named.values()), named

    def check(known: KnownIds, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        by_place, by_name = compiled()
        for name, value in kwargs.items():
            if name in by_name:  # otherwise Python's own error names it
                kwargs[name] = by_name[name](value, known)
        if not args:
            return args
        return (*[each(value, known) for each, value in zip(by_place, args, strict=False)], *args[len(by_place) :])

    return check


def _naming(argument: str, check: ValueCheck) -> ArgumentCheck:
    """Return the check of an argument. Its errors have the name of the argument; ids get one spelling."""
    is_id = argument in _IDS

    def named(value: Any, known: KnownIds) -> Any:  # noqa: ANN401
        try:
            found = check(value)
        except InvalidInput as error:
            error.field = argument
            raise
        return known.spelled(found) if is_id else found

    return named


def _check_for(annotation: Any, name: str, *, loose: bool) -> ValueCheck:  # noqa: ANN401 - any annotation
    optional, members = _members(annotation)
    # Ids are checked where it is known what they name; paths may hold bytes that are not valid Unicode.
    names_something = {str, int} <= set(members) and float not in members
    is_path = any(get_origin(each) is os.PathLike for each in members)
    kinds = [_kind(each, name, loose=loose or names_something or is_path) for each in members]
    if kinds[0].fits is _anything and not optional:
        return kinds[0].check

    def check(value: Any) -> Any:  # noqa: ANN401
        if value is None and optional:
            return None
        for kind in kinds:
            if kind.fits(value):
                return kind.check(value)
        words = " or ".join(dict.fromkeys(kind.words for kind in kinds))
        raise InvalidInput(f"{name} must be {words}, not {type(value).__name__[:80]}")

    return check


def _members(annotation: Any) -> tuple[bool, tuple[Any, ...]]:  # noqa: ANN401
    """Return whether None is allowed, and the other types of a union. True and False come before whole numbers."""
    union = get_origin(annotation) in (Union, types.UnionType)
    members = get_args(annotation) if union else (annotation,)
    wanted = [each for each in members if each is not type(None)]
    return len(wanted) < len(members), tuple(sorted(wanted, key=lambda each: each is not bool))


def _kind(member: Any, name: str, *, loose: bool) -> _Kind:  # noqa: ANN401
    origin = get_origin(member) or member
    if origin is Literal:
        allowed = get_args(member)
        return _Kind(_anything, lambda value: _one_of(value, allowed, name), "")
    if origin in _LISTS and loose:
        return _Kind(_is_list, _unchanged, "a list")
    if origin in _LISTS:
        each = _check_for(get_args(member)[0], f"{_ITEM}{name}", loose=loose)
        return _Kind(_is_list, lambda value: _items(value, each, name), "a list")
    if origin is Callable:
        return _Kind(callable, _unchanged, _WORDS[Callable])
    return _Kind(_recognised(origin), _exact(origin, name, loose=loose), _WORDS.get(origin, f"a {origin.__name__}"))


def _recognised(kind: Any) -> Callable[[object], bool]:  # noqa: ANN401
    if kind is int:
        return lambda value: isinstance(value, int) and not isinstance(value, bool)
    if kind is float:
        return lambda value: isinstance(value, int | float) and not isinstance(value, bool)
    if kind is date:
        return lambda value: isinstance(value, date) and not isinstance(value, datetime)
    return lambda value: isinstance(value, kind)


def _exact(kind: Any, name: str, *, loose: bool) -> ValueCheck:  # noqa: ANN401
    """Return the check of a value whose type is right."""
    if kind is int:
        return lambda value: _bounded(value, f"the {name}")
    if kind is Message:
        return _stored
    if loose:
        return _unchanged
    if kind is str:
        return lambda value: checks.storable(value, f"the {name}")
    if kind is float:
        return lambda value: checks.number(value, f"the {name}")
    if kind is datetime:
        return lambda value: _moment(value, name)
    return _unchanged


def _anything(_: object) -> bool:
    return True


def _unchanged(value: Any) -> Any:  # noqa: ANN401
    return value


def _bounded(value: int, what: str) -> int:
    if not -checks.LARGEST <= value <= checks.LARGEST:
        raise TooLarge(f"{what} must be at most {checks.LARGEST:,}, not {quoted(value)}")
    return int(value)


def _moment(value: datetime, what: str) -> datetime:
    checks.microseconds(value, what)
    return value


def _stored(value: Message) -> Message:
    checks.at_least(value.seq, 1, "the number of the message")
    return value


def _one_of(value: object, allowed: tuple[str, ...], name: str) -> str:
    if type(value) is str and value in allowed:
        return value
    if not isinstance(value, str) or value not in allowed:
        what = name.removeprefix(_ITEM)
        raise InvalidInput(f"unknown {what} {quoted(value)}; use one of {', '.join(allowed)}")
    return str.__str__(value)


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | bytearray | Mapping)


def _items(value: Iterable[object], check: ValueCheck, name: str) -> tuple[Any, ...]:
    found: list[Any] = []
    for each in value:
        if len(found) == _MOST_ITEMS:
            raise TooLarge(f"{name} has more than {_MOST_ITEMS:,} items")
        found.append(check(each))
    return tuple(found)
