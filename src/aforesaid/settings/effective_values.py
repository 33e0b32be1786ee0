"""List the effective configuration, with secrets masked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import NamedTuple, TypeAlias

from aforesaid.settings.keys import is_key
from aforesaid.settings.layered_values import DEFAULT
from aforesaid.settings.secrets import mask, mask_url
from aforesaid.settings.values import OPERATIONS, WITHOUT, Route, Secret, Settings

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
    yield "store", None if settings.store is None else mask_url(settings.store)
    yield "profile", settings.profile
    yield "embedder", None if settings.embedder is None else mask_url(settings.embedder)
    yield "redo", settings.redo
    for operation in OPERATIONS:
        route = settings.route(operation)
        yield f"models.{operation}.chain", chain_of(route)
        yield f"models.{operation}.temperature", route.temperature
        yield f"models.{operation}.max_tokens", route.max_tokens
        yield f"models.{operation}.timeout", route.timeout
    for name, provider in settings.providers.items():
        yield f"providers.{name}.base_url", mask_url(provider.base_url)
        yield f"providers.{name}.api_key", None if provider.api_key is None else mask(provider.api_key)
        yield f"providers.{name}.concurrency", provider.concurrency
        yield f"providers.{name}.structured", provider.structured
        yield f"providers.{name}.api", provider.api
    yield "speech.hear", [str(choice) for choice in settings.speech.hear] or None
    yield "speech.speak", [str(choice) for choice in settings.speech.speak] or None
    yield "speech.language", settings.speech.language
    yield "speech.voice", settings.speech.voice
    yield "speech.timeout", settings.speech.timeout
    yield "bots.name", settings.bots.name
    yield "bots.system", settings.bots.system
    for bot in ("telegram", "discord", "mumble"):
        values = getattr(settings.bots, bot)
        for field in fields(values):
            value = getattr(values, field.name)
            yield f"bots.{bot}.{field.name}", mask(value) if isinstance(value, Secret) else value
    for kind in fields(settings.retention):
        for name in ("archive_days", "purge_days"):
            if is_key("retention", kind.name, name):
                yield f"retention.{kind.name}.{name}", getattr(getattr(settings.retention, kind.name), name)
    for table in ("resilience", "spending", "alerts", "server"):
        values = getattr(settings, table)
        for field in fields(values):
            value = getattr(values, field.name)
            yield f"{table}.{field.name}", list(value) if isinstance(value, tuple) else value
