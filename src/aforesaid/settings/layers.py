"""Read each configuration layer: file, environment variables, arguments."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from aforesaid.errors import InvalidInput, quoted
from aforesaid.settings.config_file import VARIABLE
from aforesaid.settings.keys import TREE, Each, Key, Table, dotted, entry
from aforesaid.settings.value_types import ValueType

PREFIX: Final = "AFORESAID_"
MODEL: Final = "AFORESAID_MODEL"
"""A short variable for `models.default`."""

_ALSO: Final = (VARIABLE, "AFORESAID_USER", "AFORESAID_KEY", "AFORESAID_KEY_FILE")
"""Variables that other modules read."""
_ALIKE: Final = 0.75

ARGUMENT: Final = "argument"


class GivenValue(NamedTuple):
    """A configured value and its origin."""

    value: Any
    origin: str
    rank: int
    """The layer; a higher rank overrides a lower one."""


Layer: TypeAlias = dict[Key, GivenValue]

KNOWN_PROVIDER_RANK: Final = 0
FILE_RANK: Final = 1
ENVIRONMENT_RANK: Final = 2
ARGUMENT_RANK: Final = 3


def from_file(path: Path) -> Layer:
    """Return the values of a file. Raises InvalidInput, which names the key."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the configuration {path} cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"the configuration {path} is not valid TOML: {error}") from None
    where = str(path)
    return {key: GivenValue(_read(key, value, where), where, FILE_RANK) for key, value in _flat(tables, (), where)}


def from_arguments(overrides: Mapping[str, object]) -> Layer:
    """Return the values of a mapping of dotted keys. None values are ignored."""
    layer = {}
    for name, value in overrides.items():
        if value is None:
            continue
        key = tuple(name.split("."))
        layer[key] = GivenValue(_read(key, value, f"the {ARGUMENT}"), ARGUMENT, ARGUMENT_RANK)
    return layer


def from_environment(env: Mapping[str, str], providers: Mapping[str, str]) -> tuple[Layer, list[str]]:
    """Return the values of AFORESAID_… variables (`__` separates tables and keys), and warnings.

    `providers` maps the names of providers as written in variables to their names in other layers.
    """
    layer: Layer = {}
    doubts = []
    for variable in sorted(env):
        text = env[variable]
        if not variable.startswith(PREFIX) or variable in _ALSO or not text.strip():
            continue
        if variable == MODEL:
            key: Key = ("models", "default")
        else:
            key = _key_of(variable, providers)
            if len(key) == 1 and key[0] not in TREE:
                # Other programs may set such names: Kubernetes sets AFORESAID_PORT for a service named aforesaid.
                if close := get_close_matches(key[0], _short_names(), n=1, cutoff=_ALIKE):
                    doubts.append(f"{variable} is not used; did you mean {PREFIX}{close[0].upper()}?")
                continue
        if key in layer:
            raise InvalidInput(f"{layer[key].origin} and {variable} set the same thing; remove one of them")
        layer[key] = GivenValue(_read(key, text, variable, parse=True), variable, ENVIRONMENT_RANK)
    return layer, doubts


def spelled_in_variables(name: str) -> str:
    """Return a provider's name in the spelling of environment variables."""
    return name.lower().replace("-", "_").replace(".", "_")


def _flat(table: Mapping[str, object], above: Key, where: str) -> Iterator[tuple[Key, object]]:
    for name, value in table.items():
        key = (*above, name)
        node = entry(key, where)
        if isinstance(node, ValueType):
            yield key, value
        elif isinstance(value, dict):
            yield from _flat(value, key, where)
        else:
            raise InvalidInput(f"{where}: {dotted(key)} is a table: write [{dotted(key)}] and below it {_some(node)}")


def _some(node: Table | Each) -> str:
    if isinstance(node, Each):
        return "a table for each name"
    return ", ".join(name for name, below in node.items() if isinstance(below, ValueType))


def _read(key: Key, value: object, where: str, *, parse: bool = False) -> object:
    kind = entry(key, where)
    what = where if parse else f"{where}: {dotted(key)}"
    if not isinstance(kind, ValueType):
        raise InvalidInput(f"{what} is a table and cannot have a value; set a key in it: {_some(kind)}")
    try:
        return kind.read(kind.parse(str(value)) if parse else value)
    except ValueError:
        found = "" if kind.secret else f", not {quoted(value)}"
        raise InvalidInput(f"{what} must be {kind.allowed}{found}") from None


def _key_of(variable: str, providers: Mapping[str, str]) -> Key:
    parts = variable.removeprefix(PREFIX).lower().split("__")
    if len(parts) > 1 and parts[0] == "providers":
        parts[1] = providers.get(parts[1], parts[1])
    return tuple(parts)


def _short_names() -> list[str]:
    """Return the names of top-level keys that may follow the prefix."""
    names = [variable.removeprefix(PREFIX).lower() for variable in (MODEL, *_ALSO)]
    return names + [name for name, node in TREE.items() if isinstance(node, ValueType)]
