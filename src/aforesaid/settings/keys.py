"""All configuration keys and the types of their values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, TypeAlias, get_args

from aforesaid.errors import InvalidInput
from aforesaid.settings import value_types
from aforesaid.settings.value_types import ValueType
from aforesaid.settings.values import OPERATIONS, WITHOUT, Answering, ProviderApi, Structured

Key: TypeAlias = tuple[str, ...]
"""The names of the tables and of the key itself: ("models", "chat", "timeout")."""

Table: TypeAlias = "Mapping[str, ValueType | Table | Each]"

_LARGEST: Final = 10**12
_LEAST_BUDGET: Final = 256
"""Minimum tokens of a context."""
_DAY: Final = 24 * 60 * 60
_PROVIDER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Each:
    """A table per user-chosen name, such as a provider's."""

    table: Mapping[str, ValueType]


_ROUTE: Final = {
    "chain": value_types.chain(),
    "temperature": value_types.number(0, 2, unset=True),
    "max_tokens": value_types.whole(1, 10_000_000, unset=True),
    "timeout": value_types.number(0.001, _DAY),
}

_DAYS: Final = value_types.whole(1, 365_000)

TREE: Final[Table] = {
    "store": value_types.text(),
    "fallback": value_types.text(),
    "profile": value_types.text(),
    "embedder": value_types.text(),
    "ranker": value_types.boolean(),
    "redo": value_types.boolean(),
    "background": value_types.boolean(),
    "models": {
        "default": value_types.chain(),
        "timeout": value_types.number(0.001, _DAY),
        **dict.fromkeys(OPERATIONS, _ROUTE),
    },
    "providers": Each(
        {
            "base_url": value_types.url(),
            "api_key": value_types.secret(),
            "api_key_env": value_types.text(),
            "api_key_file": value_types.text(),
            "concurrency": value_types.whole(1, 10_000),
            "structured": value_types.one_of(*get_args(Structured)),
            "api": value_types.one_of(*get_args(ProviderApi)),
        }
    ),
    "resilience": {
        "attempts": value_types.whole(1, 100),
        "failures": value_types.whole(1, 1_000_000),
        "probe_seconds": value_types.number(0.001, _DAY),
        "stall_seconds": value_types.number(0.001, _DAY),
    },
    "speech": {
        "hear": value_types.chain(),
        "speak": value_types.chain(),
        "language": value_types.text(),
        "voice": value_types.text(),
        "timeout": value_types.number(0.001, _DAY),
    },
    "retention": {
        "messages": {"archive_days": _DAYS, "purge_days": _DAYS},
        "memories": {"archive_days": _DAYS, "purge_days": _DAYS},
        **{kind: {"purge_days": _DAYS} for kind in ("summaries", "versions", "derived", "audit", "spending")},
    },
    "alerts": {
        "interval_seconds": value_types.number(0.1, _DAY),
        "failing_seconds": value_types.number(0, _DAY),
        "slow_seconds": value_types.number(0.001, _DAY),
        "error_rate": value_types.number(0.0001, 1),
        "least_calls": value_types.whole(1, 1_000_000),
        "backlog_messages": value_types.whole(1, _LARGEST),
        "free_disk": value_types.number(0, 1),
        "storage_bytes": value_types.whole(1, _LARGEST * 1_000),
        "clear": value_types.number(0.01, 1),
    },
    "spending": {
        "tokens_per_user_and_day": value_types.whole(1, _LARGEST),
        "tokens_per_day": value_types.whole(1, _LARGEST),
    },
    "bots": {
        "name": value_types.text(),
        "system": value_types.text(),
        "telegram": {
            "token": value_types.secret(),
            "token_file": value_types.text(),
            "api": value_types.url(),
            "webhook": value_types.url(),
            "webhook_secret": value_types.secret(),
            "listen": value_types.text(),
        },
        "discord": {"token": value_types.secret(), "token_file": value_types.text()},
        "mumble": {
            "host": value_types.text(),
            "port": value_types.whole(1, 65_535),
            "name": value_types.text(),
            "password": value_types.password(),
            "password_file": value_types.text(),
            "channel": value_types.text(),
            "answer": value_types.one_of(*get_args(Answering)),
            "certificate": value_types.text(),
            "fingerprint": value_types.text(),
        },
    },
    "server": {
        "host": value_types.text(),
        "port": value_types.whole(0, 65_535),
        "hosts": value_types.texts(),
        "keys": value_types.text(),
        "upstream": value_types.text(),
        "requests_per_second": value_types.number(0.01, 1_000_000),
        "burst": value_types.whole(1, 1_000_000),
        "body_bytes": value_types.whole(1_000, _LARGEST),
        "header_seconds": value_types.number(0.1, 3_600),
        "body_seconds": value_types.number(0.1, 3_600),
        "connections": value_types.whole(1, 1_000_000),
        "trusted_proxies": value_types.networks(),
        "budget": value_types.whole(_LEAST_BUDGET, _LARGEST),
        "window": value_types.whole(0, _LARGEST),
    },
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
