"""Every key that can be configured."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, TypeAlias

from aforesaid.errors import InvalidInput
from aforesaid.settings import kinds
from aforesaid.settings.kinds import Kind
from aforesaid.settings.values import OPERATIONS, WITHOUT

Key: TypeAlias = tuple[str, ...]
"""The names of the tables and of the key itself: ("models", "chat", "timeout")."""

Table: TypeAlias = "Mapping[str, Kind | Table | Each]"

_LARGEST: Final = 10**12
_LEAST_BUDGET: Final = 256
"""No context can have less."""
_DAY: Final = 24 * 60 * 60
_PROVIDER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Each:
    """A table for each name that people choose."""

    table: Mapping[str, Kind]


_ROUTE: Final = {
    "chain": kinds.chain(),
    "temperature": kinds.number(0, 2, unset=True),
    "max_tokens": kinds.whole(1, 10_000_000, unset=True),
    "timeout": kinds.number(0.001, _DAY),
}

_DAYS: Final = kinds.whole(1, 365_000)

TREE: Final[Table] = {
    "store": kinds.text(),
    "fallback": kinds.text(),
    "profile": kinds.text(),
    "embedder": kinds.text(),
    "redo": kinds.boolean(),
    "background": kinds.boolean(),
    "models": {
        "default": kinds.chain(),
        "timeout": kinds.number(0.001, _DAY),
        **dict.fromkeys(OPERATIONS, _ROUTE),
    },
    "providers": Each(
        {
            "base_url": kinds.url(),
            "api_key": kinds.secret(),
            "api_key_env": kinds.text(),
            "api_key_file": kinds.text(),
            "concurrency": kinds.whole(1, 10_000),
            "structured": kinds.one_of("auto", "schema", "instructed"),
            "api": kinds.one_of("openai", "piper"),
        }
    ),
    "resilience": {
        "attempts": kinds.whole(1, 100),
        "failures": kinds.whole(1, 1_000_000),
        "probe_seconds": kinds.number(0.001, _DAY),
        "stall_seconds": kinds.number(0.001, _DAY),
    },
    "speech": {
        "hear": kinds.chain(),
        "speak": kinds.chain(),
        "language": kinds.text(),
        "voice": kinds.text(),
        "timeout": kinds.number(0.001, _DAY),
    },
    "retention": {
        "messages": {"archive_days": _DAYS, "purge_days": _DAYS},
        "memories": {"archive_days": _DAYS, "purge_days": _DAYS},
        **{kind: {"purge_days": _DAYS} for kind in ("summaries", "versions", "derived", "audit", "spending")},
    },
    "alerts": {
        "interval_seconds": kinds.number(0.1, _DAY),
        "failing_seconds": kinds.number(0, _DAY),
        "slow_seconds": kinds.number(0.001, _DAY),
        "error_rate": kinds.number(0.0001, 1),
        "least_calls": kinds.whole(1, 1_000_000),
        "backlog_messages": kinds.whole(1, _LARGEST),
        "free_disk": kinds.number(0, 1),
        "storage_bytes": kinds.whole(1, _LARGEST * 1_000),
        "clear": kinds.number(0.01, 1),
    },
    "spending": {
        "tokens_per_user_and_day": kinds.whole(1, _LARGEST),
        "tokens_per_day": kinds.whole(1, _LARGEST),
    },
    "bots": {
        "name": kinds.text(),
        "system": kinds.text(),
        "telegram": {
            "token": kinds.secret(),
            "token_file": kinds.text(),
            "api": kinds.url(),
            "webhook": kinds.url(),
            "webhook_secret": kinds.secret(),
            "listen": kinds.text(),
        },
        "discord": {"token": kinds.secret(), "token_file": kinds.text()},
        "mumble": {
            "host": kinds.text(),
            "port": kinds.whole(1, 65_535),
            "name": kinds.text(),
            "password": kinds.password(),
            "password_file": kinds.text(),
            "channel": kinds.text(),
            "answer": kinds.one_of("called", "always"),
            "certificate": kinds.text(),
            "fingerprint": kinds.text(),
        },
    },
    "server": {
        "host": kinds.text(),
        "port": kinds.whole(0, 65_535),
        "hosts": kinds.texts(),
        "keys": kinds.text(),
        "upstream": kinds.text(),
        "requests_per_second": kinds.number(0.01, 1_000_000),
        "burst": kinds.whole(1, 1_000_000),
        "body_bytes": kinds.whole(1_000, _LARGEST),
        "header_seconds": kinds.number(0.1, 3_600),
        "body_seconds": kinds.number(0.1, 3_600),
        "connections": kinds.whole(1, 1_000_000),
        "trusted_proxies": kinds.networks(),
        "budget": kinds.whole(_LEAST_BUDGET, _LARGEST),
        "window": kinds.whole(0, _LARGEST),
    },
}


def dotted(key: Key) -> str:
    """Write a key as in a file."""
    return ".".join(key)


def entry(key: Key, where: str) -> Kind | Table | Each:
    """Return the value of a key, or raise with the key that was probably meant."""
    node: Kind | Table | Each = TREE
    for depth, name in enumerate(key):
        if isinstance(node, Each):
            node = _each(node, name, key[: depth + 1], where)
            continue
        if isinstance(node, Kind):
            raise InvalidInput(f"{where}: {dotted(key[:depth])} is a value, not a table; it must be {node.allowed}")
        if name not in node:
            wrong = dotted(key[: depth + 1])
            raise InvalidInput(f"{where} has the unknown key {wrong!r}{_help(key[:depth], name, node)}")
        node = node[name]
    return node


def is_key(*path: str) -> bool:
    """Tell whether there is such a key."""
    node: object = TREE
    for name in path:
        if not isinstance(node, Mapping) or name not in node:
            return False
        node = node[name]
    return isinstance(node, Kind)


def nearest(wrong: str, known: Sequence[str]) -> str:
    """Return a hint at the name that was probably meant, or nothing."""
    close = get_close_matches(wrong, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def all_keys() -> Iterator[str]:
    """Return every key as it is documented; NAME stands for the name of a provider."""

    def walk(table: Table, above: Key) -> Iterator[str]:
        for name, node in table.items():
            if isinstance(node, Kind):
                yield dotted((*above, name))
            elif isinstance(node, Each):
                yield from walk(node.table, (*above, name, "NAME"))
            else:
                yield from walk(node, (*above, name))

    yield from walk(TREE, ())


def _each(node: Each, name: str, key: Key, where: str) -> Table:
    if not _PROVIDER.fullmatch(name) or name == WITHOUT:
        raise InvalidInput(
            f"{where}: {dotted(key)} is no name for a provider; use letters, digits, '-', '_' and '.', and not 'none'"
        )
    return node.table


def _help(above: Key, name: str, table: Table) -> str:
    inside = f" in [{dotted(above)}]" if above else ""
    close = get_close_matches(name, list(table), n=1)
    meant = f"; did you mean {dotted((*above, close[0]))!r}?" if close else ";"
    return f"{meant} allowed{inside}: {', '.join(table)}"
