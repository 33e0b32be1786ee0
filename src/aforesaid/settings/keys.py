"""All configuration keys and the types of their values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, TypeAlias

from aforesaid.errors import InvalidInput
from aforesaid.settings import value_types
from aforesaid.settings.basic_values import WITHOUT
from aforesaid.settings.value_types import ValueType
from aforesaid.settings.values import FROM_FILE, NO_KEY, OPERATIONS, VALUE_TYPE, Provider, Route, Settings

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Key: TypeAlias = tuple[str, ...]
"""The names of the tables and of the key itself: ("models", "chat", "timeout")."""

Table: TypeAlias = "Mapping[str, ValueType | Table | Each]"

_PROVIDER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Each:
    """A table per user-chosen name, such as a provider's."""

    table: Table


def _keys_of(kind: type[DataclassInstance]) -> dict[str, ValueType | Table | Each]:
    """Return the keys of a table: its fields that can be configured, and the tables in it."""
    keys: dict[str, ValueType | Table | Each] = {}
    for each in fields(kind):
        if VALUE_TYPE in each.metadata:
            keys[each.name] = each.metadata[VALUE_TYPE]
            if each.metadata[FROM_FILE]:
                keys[f"{each.name}_file"] = value_types.text()
        elif is_dataclass(each.default) and not isinstance(each.default, type):
            table = _keys_of(type(each.default))
            table.pop(each.metadata.get(NO_KEY, ""), None)
            keys[each.name] = table
    return keys


TREE: Final[Table] = {
    **_keys_of(Settings),
    "models": {
        "default": value_types.chain(),
        "timeout": _keys_of(Route)["timeout"],
        **dict.fromkeys(OPERATIONS, _keys_of(Route)),
    },
    "providers": Each({"base_url": value_types.url(), "api_key_env": value_types.text(), **_keys_of(Provider)}),
}


def dotted(key: Key) -> str:
    """Return a key in dotted notation."""
    return ".".join(key)


def entry(key: Key, where: str) -> ValueType | Table | Each:
    """Return the value type of a key. Raises InvalidInput, which suggests the nearest key."""
    node: ValueType | Table | Each = TREE
    for depth, name in enumerate(key):
        if isinstance(node, Each):
            node = _each(node, name, key[: depth + 1], where)
            continue
        if isinstance(node, ValueType):
            raise InvalidInput(f"{where}: {dotted(key[:depth])} is a value, not a table; it must be {node.allowed}")
        if name not in node:
            wrong = dotted(key[: depth + 1])
            raise InvalidInput(f"{where} has the unknown key {wrong!r}{_help(key[:depth], name, node)}")
        node = node[name]
    return node


def is_key(*path: str) -> bool:
    """Return whether a key exists."""
    node: object = TREE
    for name in path:
        if not isinstance(node, Mapping) or name not in node:
            return False
        node = node[name]
    return isinstance(node, ValueType)


def nearest(wrong: str, known: Sequence[str]) -> str:
    """Return a hint with the most similar name, or an empty string."""
    close = get_close_matches(wrong, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def all_keys() -> Iterator[str]:
    """Return every key in documented form; NAME is the name of a provider."""

    def walk(table: Table, above: Key) -> Iterator[str]:
        for name, node in table.items():
            if isinstance(node, ValueType):
                yield dotted((*above, name))
            elif isinstance(node, Each):
                yield from walk(node.table, (*above, name, "NAME"))
            else:
                yield from walk(node, (*above, name))

    yield from walk(TREE, ())


def _each(node: Each, name: str, key: Key, where: str) -> Table:
    if not _PROVIDER.fullmatch(name) or name == WITHOUT:
        raise InvalidInput(
            f"{where}: {dotted(key)} is not a valid provider name; use letters, digits, '-', '_', '.', and not 'none'"
        )
    return node.table


def _help(above: Key, name: str, table: Table) -> str:
    inside = f" in [{dotted(above)}]" if above else ""
    close = get_close_matches(name, list(table), n=1)
    meant = f"; did you mean {dotted((*above, close[0]))!r}?" if close else ";"
    return f"{meant} allowed{inside}: {', '.join(table)}"
