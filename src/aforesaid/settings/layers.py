"""Read each configuration layer: file, environment variables, arguments."""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from aforesaid.domain import checks
from aforesaid.errors import InvalidInput, quoted
from aforesaid.extras import re
from aforesaid.settings import (
    CHAIN,
    FROM_FILE,
    NO_KEY,
    OPERATIONS,
    TEXT,
    URL,
    VALUE_TYPE,
    WITHOUT,
    Provider,
    Route,
    Settings,
    ValueType,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


FILE: Final = "aforesaid.toml"
VARIABLE: Final = "AFORESAID_CONFIG"


def find_file(path: str | os.PathLike[str] | None, env: Mapping[str, str]) -> Path | None:
    """Return the configuration file: the named one, or one in the current folder or the platform's folder."""
    if path is not None:
        return _named(checks.file_path(path, "the configuration file"), "")
    if chosen := env.get(VARIABLE):
        return _named(checks.file_path(chosen, VARIABLE), f" ({VARIABLE})")
    here = Path.cwd() / FILE
    if here.is_file():
        # Reject a file of another user in the current folder: it could send messages to that user's server.
        if not hasattr(os, "geteuid") or os.geteuid() == 0:
            return here
        if here.stat().st_uid not in (0, os.geteuid()):
            raise InvalidInput(f"{here} belongs to another user; if you trust it, set {VARIABLE}={here}")
        return here
    usual = usual_place(env)
    return usual if usual.is_file() else None


def usual_place(env: Mapping[str, str]) -> Path:
    if sys.platform == "win32":
        base = Path(env.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(env.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return base / "aforesaid" / FILE


def _named(path: Path, by: str) -> Path:
    path = path.expanduser().absolute()
    if not path.is_file():
        raise InvalidInput(f"there is no configuration file at {path}{by}")
    return path


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
                keys[f"{each.name}_file"] = TEXT
        elif is_dataclass(each.default) and not isinstance(each.default, type):
            table = _keys_of(type(each.default))
            table.pop(each.metadata.get(NO_KEY, ""), None)
            keys[each.name] = table
    return keys


TREE: Final[Table] = {
    **_keys_of(Settings),
    "models": {
        "default": CHAIN,
        "timeout": _keys_of(Route)["timeout"],
        **dict.fromkeys(OPERATIONS, _keys_of(Route)),
    },
    "providers": Each({"base_url": URL, "api_key_env": TEXT, **_keys_of(Provider)}),
}


def dotted(key: Key) -> str:
    return ".".join(key)


def entry(key: Key, where: str) -> ValueType | Table | Each:
    """Return the value type of a key. Raises InvalidInput, which suggests the nearest key."""
    node: ValueType | Table | Each = TREE
    for depth, name in enumerate(key):
        if isinstance(node, Each):
            if not _PROVIDER.fullmatch(name) or name == WITHOUT:
                raise InvalidInput(
                    f"{where}: {dotted(key[: depth + 1])} is not a valid provider name; use letters, digits, '-', '_', "
                    "'.', and not 'none'"
                )
            node = node.table
            continue
        if isinstance(node, ValueType):
            raise InvalidInput(f"{where}: {dotted(key[:depth])} is a value, not a table; it must be {node.allowed}")
        if name not in node:
            above, wrong, close = key[:depth], dotted(key[: depth + 1]), get_close_matches(name, list(node), n=1)
            meant = f"; did you mean {dotted((*above, close[0]))!r}?" if close else ";"
            inside = f" in [{dotted(above)}]" if above else ""
            raise InvalidInput(f"{where} has the unknown key {wrong!r}{meant} allowed{inside}: {', '.join(node)}")
        node = node[name]
    return node


def is_key(*path: str) -> bool:
    node: object = TREE
    for name in path:
        if not isinstance(node, Mapping) or name not in node:
            return False
        node = node[name]
    return isinstance(node, ValueType)


PREFIX: Final = "AFORESAID_"
MODEL: Final = "AFORESAID_MODEL"
"""A short variable for `models.default`."""

_ALSO: Final = (VARIABLE, "AFORESAID_USER", "AFORESAID_KEY", "AFORESAID_KEY_FILE")
"""Variables that other modules read."""
_ALIKE: Final = 0.75

ARGUMENT: Final = "argument"


class GivenValue(NamedTuple):
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
            parts = variable.removeprefix(PREFIX).lower().split("__")
            if len(parts) > 1 and parts[0] == "providers":
                parts[1] = providers.get(parts[1], parts[1])
            key = tuple(parts)
            if len(key) == 1 and key[0] not in TREE:
                # Other programs may set such names: Kubernetes sets AFORESAID_PORT for a service named aforesaid.
                short = [each.removeprefix(PREFIX).lower() for each in (MODEL, *_ALSO)]
                short += [name for name, node in TREE.items() if isinstance(node, ValueType)]
                if close := get_close_matches(key[0], short, n=1, cutoff=_ALIKE):
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


DEFAULT: Final = "default"


class LayeredValues:
    """Returns each value from its strongest layer, and records its origin."""

    def __init__(self, layer: Layer, file: Path | None, env: Mapping[str, str], warnings: list[str]) -> None:
        self.layer: Final = layer
        self.file: Final = file
        self.env: Final = env
        self.warnings: Final = warnings
        self.origins: Final[dict[str, str]] = {}

    def given(self, *key: str) -> GivenValue | None:
        return self.layer.get(key)

    def take(self, *key: str, default: object) -> Any:  # noqa: ANN401 - each key has its own type
        """Return the value of a key, or its default, and record its origin."""
        given = self.layer.get(key)
        self.origins[dotted(key)] = given.origin if given else DEFAULT
        return given.value if given else default

    def where(self, *key: str) -> str:
        """Return the origin of a key for error messages: the file and key, or the variable."""
        given = self.layer[key]
        return (
            given.origin if given.rank in (ENVIRONMENT_RANK, KNOWN_PROVIDER_RANK) else f"{given.origin}: {dotted(key)}"
        )

    def providers(self) -> set[str]:
        return {key[1] for key in self.layer if key[0] == "providers"}
