"""List the effective configuration, with secrets masked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from aforesaid.settings.basic_values import WITHOUT, Choice, Secret
from aforesaid.settings.keys import dotted, is_key
from aforesaid.settings.layered_values import DEFAULT
from aforesaid.settings.secrets import mask, mask_url
from aforesaid.settings.values import OPERATIONS, Route, Settings

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Shown: TypeAlias = "str | int | float | bool | list[str] | None"


class EffectiveValue(NamedTuple):
    """An effective value and its origin."""

    key: str
    value: Shown
    origin: str


def effective(settings: Settings) -> list[EffectiveValue]:
    """Return every effective value, with secrets masked."""
    return [EffectiveValue(key, value, settings.origins.get(key, DEFAULT)) for key, value in _values(settings)]


def chain_of(route: Route) -> list[str]:
    """Return a chain in the notation of the configuration file."""
    return [*map(str, route.chain), *([WITHOUT] if route.without or not route.chain else [])]


def _values(settings: Settings) -> Iterator[tuple[str, Shown]]:
    yield from _table(settings)
    for operation in OPERATIONS:
        route = settings.route(operation)
        yield f"models.{operation}.chain", chain_of(route)
        yield f"models.{operation}.temperature", route.temperature
        yield f"models.{operation}.max_tokens", route.max_tokens
        yield f"models.{operation}.timeout", route.timeout
    for name, provider in settings.providers.items():
        for field in fields(provider):
            if field.name != "name":
                yield f"providers.{name}.{field.name}", _shown(getattr(provider, field.name))


def _table(values: DataclassInstance, *above: str) -> Iterator[tuple[str, Shown]]:
    """Return the values of a table and of the tables in it, as far as they can be configured."""
    for field in fields(values):
        key, value = (*above, field.name), getattr(values, field.name)
        if is_key(*key):
            yield dotted(key), _shown(value)
        elif is_dataclass(value) and not isinstance(value, type):
            yield from _table(value, *key)


def _shown(value: Any) -> Shown:  # noqa: ANN401 - each setting has its own type
    if isinstance(value, Secret):
        return mask(value)
    if isinstance(value, Choice):
        return str(value)
    if isinstance(value, str):
        return mask_url(value)
    return [str(each) for each in value] if isinstance(value, tuple) else value
