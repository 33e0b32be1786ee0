"""Reads the configuration: files, environment and arguments, in layers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from aforesaid.settings.basic_values import WITHOUT, Choice, Secret, mask, mask_url
from aforesaid.settings.layers import (
    DEFAULT,
    FILE_RANK,
    LayeredValues,
    dotted,
    find_file,
    from_arguments,
    from_environment,
    from_file,
    is_key,
    spelled_in_variables,
)
from aforesaid.settings.providers import (
    choose_embedding,
    from_known_variables,
    read_bots,
    read_providers,
    read_routes,
    read_speech,
)
from aforesaid.settings.values import (
    OPERATIONS,
    Alerts,
    Keep,
    Receipts,
    Reranking,
    Resilience,
    Retention,
    Route,
    Serving,
    Settings,
    Spending,
    TracingSettings,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


_PLAIN: Final = Settings()
_ON_DISK: Final = re.compile(r"sqlite:|json:|files:|")
_ELSEWHERE: Final = re.compile(r"[a-z][a-z0-9+]+:|:memory:\Z|~", re.IGNORECASE)

T = TypeVar("T", Alerts, Keep, Receipts, Reranking, Resilience, Spending, Serving, TracingSettings)


def load_settings(
    path: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
) -> Settings:
    """Return the configuration. A value set in several places is taken from the first of these layers.

    `overrides` (dotted keys, as `{"models.default": "ollama:llama3.2"}`), variables AFORESAID_…, the file, variables of
    other programs (OPENAI_API_KEY, OPENAI_BASE_URL, OLLAMA_HOST, ANTHROPIC_API_KEY, GEMINI_API_KEY),
    defaults.

    The file is `path`, or the one that AFORESAID_CONFIG names, or `aforesaid.toml` in the current folder or in the
    platform's folder for configuration. Without any, defaults hold. Raises InvalidInput, which says what to change.
    """
    env = os.environ if env is None else env
    file = find_file(path, env)
    layer, doubts = from_known_variables(env)
    if file is not None:
        layer |= from_file(file)
    names = {spelled_in_variables(key[1]): key[1] for key in layer if key[0] == "providers"}
    variables, more = from_environment(env, names)
    layer |= variables | from_arguments(overrides or {})
    return _assemble(LayeredValues(layer, file, env, [*doubts, *more]))


def as_settings(given: Settings | Mapping[str, object] | str | os.PathLike[str] | None) -> Settings:
    """Return settings from any accepted form: `Settings`, a mapping of dotted keys, a file, or None."""
    if isinstance(given, Settings):
        return given
    if isinstance(given, Mapping):
        return load_settings(overrides=given)
    return load_settings(given)


def _assemble(sources: LayeredValues) -> Settings:
    routes = read_routes(sources)
    speech = read_speech(sources)
    rerank = _table(sources, Reranking, "rerank")
    embedder = choose_embedding(sources, routes)
    store: str | None = sources.take("store", default=None)
    fallback: str = sources.take("fallback", default=_PLAIN.fallback)
    attachments: str | None = sources.take("attachments", default=None)
    profile: str = sources.take("profile", default=_PLAIN.profile)
    return Settings(
        store=None if store is None else _seen_from_the_file(sources, store, "store"),
        fallback=_seen_from_the_file(sources, fallback, "fallback") if ":" in fallback else fallback,
        attachments=None if attachments is None else _seen_from_the_file(sources, attachments, "attachments"),
        profile=_seen_from_the_file(sources, profile, "profile") if profile.endswith(".toml") else profile,
        embedder=embedder,
        ranker=sources.take("ranker", default=_PLAIN.ranker),
        rerank=rerank,
        providers=read_providers(sources, routes, speech, rerank),
        routes=routes,
        resilience=_table(sources, Resilience, "resilience"),
        spending=_table(sources, Spending, "spending"),
        alerts=_table(sources, Alerts, "alerts"),
        retention=Retention(
            **{
                field.name: _table(sources, Keep, "retention", field.name)
                for field in fields(Retention)
                if field.default is not None
            }
        ),
        receipts=_table(sources, Receipts, "receipts"),
        tracing=_table(sources, TracingSettings, "tracing"),
        server=_serving(sources),
        speech=speech,
        bots=read_bots(sources),
        redo=sources.take("redo", default=_PLAIN.redo),
        background=sources.take("background", default=_PLAIN.background),
        origins=sources.origins,
        warnings=tuple(sources.warnings),
    )


def _table(sources: LayeredValues, table: type[T], *path: str) -> T:
    plain = table()
    names = [field.name for field in fields(table) if is_key(*path, field.name)]
    return table(**{key: sources.take(*path, key, default=getattr(plain, key)) for key in names})


def _serving(sources: LayeredValues) -> Serving:
    server = _table(sources, Serving, "server")
    if server.keys is None:
        return server
    return replace(server, keys=_seen_from_the_file(sources, server.keys, "server", "keys"))


def _seen_from_the_file(sources: LayeredValues, location: str, *key: str) -> str:
    """Return a store location. A relative path in a configuration file is relative to that file."""
    given = sources.given(*key)
    if given is None or given.rank != FILE_RANK or sources.file is None:
        return location
    scheme = _ON_DISK.match(location)
    start = scheme.end() if scheme else 0
    path = location[start:]
    return location if _ELSEWHERE.match(path) else location[:start] + str(sources.file.parent / Path(path))


Shown: TypeAlias = "str | int | float | bool | list[str] | None"


class EffectiveValue(NamedTuple):
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
    yield from _effective_table(settings)
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


def _effective_table(values: DataclassInstance, *above: str) -> Iterator[tuple[str, Shown]]:
    """Return the values of a table and of the tables in it, as far as they can be configured."""
    for field in fields(values):
        key, value = (*above, field.name), getattr(values, field.name)
        if is_key(*key):
            yield dotted(key), _shown(value)
        elif is_dataclass(value) and not isinstance(value, type):
            yield from _effective_table(value, *key)


def _shown(value: Any) -> Shown:  # noqa: ANN401 - each setting has its own type
    if isinstance(value, Secret):
        return mask(value)
    if isinstance(value, Choice):
        return str(value)
    if isinstance(value, str):
        return mask_url(value)
    return [str(each) for each in value] if isinstance(value, tuple) else value
