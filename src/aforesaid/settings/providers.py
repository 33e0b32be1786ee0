"""Read the configuration of providers, including their keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from aforesaid.errors import InvalidInput
from aforesaid.settings.basic_values import Secret
from aforesaid.settings.keys import Key, nearest
from aforesaid.settings.known_providers import KNOWN_PROVIDERS
from aforesaid.settings.layered_values import DEFAULT, LayeredValues
from aforesaid.settings.layers import FILE_RANK, KNOWN_PROVIDER_RANK, GivenValue
from aforesaid.settings.secrets import as_key, mask_url, open_to_others, read_key
from aforesaid.settings.values import Operation, Provider, Reranking, Route, Speech

_WAYS: Final = ("api_key", "api_key_env", "api_key_file")
_PLAIN: Final = Provider("", "")
_ADDRESS: Final = re.compile(r"(.+)@(https?://.+)")
"""A model and the address of its server, as the setting `embedder` takes them."""


def read_providers(
    sources: LayeredValues, routes: Mapping[Operation, Route], speech: Speech, rerank: Reranking
) -> dict[str, Provider]:
    """Return every configured provider, and the known providers that a model refers to. Raises InvalidInput."""
    used = {choice.provider: _asked(sources, name) for name, route in routes.items() for choice in route.chain}
    choices = {choice.provider: choice for route in routes.values() for choice in route.chain}
    writes = set(used)
    used |= {choice.provider: ("speech", "speak") for choice in speech.speak if choice.provider not in used}
    used |= {choice.provider: ("speech", "hear") for choice in speech.hear}
    if rerank.model is not None:
        used.setdefault(rerank.model.provider, ("rerank", "model"))
    if (upstreams := sources.given("server", "upstreams")) is not None:
        used |= {choice.provider: ("server", "upstreams") for choice in upstreams.value if choice.provider not in used}
    names = sources.providers() | (set(used) & set(KNOWN_PROVIDERS))
    providers = {name: _provider(sources, name) for name in sorted(names)}
    for name, key in used.items():
        if name not in providers:
            if (address := _ADDRESS.fullmatch(str(choices.get(name, "")))) is not None:
                raise InvalidInput(_address_as_model(sources, key, *address.groups()))
            raise InvalidInput(_no_such_provider(sources, key, name, [*providers, *KNOWN_PROVIDERS]))
        _check_api(sources, providers[name], key, writes=name in writes)
        known = KNOWN_PROVIDERS.get(name)
        if known and known.key_variable and providers[name] == _keyless(providers[name], known.base_url):
            sources.warnings.append(f"{name} needs a key: set {known.key_variable}, or providers.{name}.api_key")
    return providers


def _check_api(sources: LayeredValues, provider: Provider, key: Key, *, writes: bool) -> None:
    """Raise InvalidInput if the server of a provider cannot do what a key asks it for."""
    if provider.api == "piper" and (writes or key != ("speech", "speak")):
        what = "is a Piper server, which supports text to speech only"
    elif provider.api == "tei" and key != ("rerank", "model"):
        what = 'has api = "tei", which works for rerank.model only; leave it out to use its OpenAI-compatible API'
    else:
        return
    raise InvalidInput(f"{sources.where(*key)}: {provider.name!r} {what}")


def _provider(sources: LayeredValues, name: str) -> Provider:
    known = KNOWN_PROVIDERS.get(name)
    base_url = sources.take("providers", name, "base_url", default=known.base_url if known else None)
    if base_url is None:
        raise InvalidInput(
            f"{sources.where(*sources.any_key_of(name))}: the provider {name!r} has no base_url, such as "
            f"http://localhost:8000/v1{nearest(name, list(KNOWN_PROVIDERS))}"
        )
    return Provider(
        name=name,
        base_url=base_url,
        api_key=_key(sources, name),
        concurrency=sources.take("providers", name, "concurrency", default=_PLAIN.concurrency),
        structured=sources.take("providers", name, "structured", default=_PLAIN.structured),
        api=sources.take("providers", name, "api", default=_PLAIN.api),
    )


def _keyless(provider: Provider, base_url: str) -> Provider:
    return replace(provider, base_url=base_url, api_key=None)


def _asked(sources: LayeredValues, operation: Operation) -> Key:
    """Return the configuration key with the models of an operation."""
    general = ("embedder",) if operation == "embed" else ("models", "default")
    own = ("models", operation, "chain")
    return own if sources.given(*own) else general


def _no_such_provider(sources: LayeredValues, key: Key, name: str, known: list[str]) -> str:
    where = sources.where(*key)
    hint = nearest(name, known) or ";"
    return (
        f"{where}: there is no provider {name!r}{hint} {', '.join(KNOWN_PROVIDERS)} are known by name; "
        f"any other provider needs [providers.{name}] with its base_url"
    )


def _address_as_model(sources: LayeredValues, key: Key, model: str, base_url: str) -> str:
    return (
        f"{sources.where(*key)}: MODEL@BASE_URL works for embedder only; give the server a name, such as local: set "
        f'providers.local.base_url = "{mask_url(base_url)}", and write "local:{model}" here'
    )


def _key(sources: LayeredValues, name: str) -> Secret | None:
    """Return the API key of a provider: a value, a variable, or a file."""
    sources.origins[f"providers.{name}.api_key"] = DEFAULT
    ways = {way: given for way in _WAYS if (given := sources.given("providers", name, way))}
    rank = max((given.rank for given in ways.values()), default=0)
    strongest = [way for way, given in ways.items() if given.rank == rank]
    if not strongest:
        return None
    if len(strongest) > 1:
        origin = ways[strongest[0]].origin
        raise InvalidInput(f"{origin}: providers.{name} has {' and '.join(strongest)}; keep one of them")
    given = ways[strongest[0]]
    if strongest[0] == "api_key_env":
        return _key_of_variable(sources, name, given)
    if strongest[0] == "api_key_file":
        return _key_of_file(sources, name, given)
    return _key_itself(sources, name, given)


def _key_itself(sources: LayeredValues, name: str, given: GivenValue) -> Secret | None:
    if given.rank == KNOWN_PROVIDER_RANK and not _lend(sources, name, given.origin):
        return None
    if given.rank == FILE_RANK and sources.file is not None:
        warn_when_open(sources, sources.file)
    sources.origins[f"providers.{name}.api_key"] = given.origin
    return Secret(given.value)


def _lend(sources: LayeredValues, name: str, variable: str) -> bool:
    """Return whether a key from the environment may be sent to the address that a file sets for this provider.

    A file can come from anywhere, together with the folder that it is in. A key goes to the server that it was made
    for, or to one that a variable names, too. For any other the file has to ask for it by name.
    """
    address = sources.given("providers", name, "base_url")
    if address is None or address.rank != FILE_RANK:
        return True
    if urlsplit(address.value).netloc == urlsplit(KNOWN_PROVIDERS[name].base_url).netloc:
        return True
    sources.warnings.append(
        f"{variable} is not sent to {urlsplit(address.value).hostname}; if that is meant, add "
        f'api_key_env = "{variable}" to [providers.{name}] in {address.origin}'
    )
    return False


def _key_of_variable(sources: LayeredValues, name: str, given: GivenValue) -> Secret | None:
    sources.origins[f"providers.{name}.api_key"] = f"{given.value}, named by {given.origin}"
    text = sources.env.get(given.value, "").strip()
    key = as_key(text)
    if key is None:
        wrong = "does not hold a key" if text else "is not set"
        sources.warnings.append(f"{given.origin}: providers.{name}.api_key_env names {given.value}, which {wrong}")
    return key


def _key_of_file(sources: LayeredValues, name: str, given: GivenValue) -> Secret | None:
    base = sources.file.parent if sources.file is not None and given.rank == FILE_RANK else Path()
    path = (base / Path(given.value).expanduser()).absolute()
    sources.origins[f"providers.{name}.api_key"] = f"{path}, named by {given.origin}"
    key, wrong = read_key(path)
    if wrong:
        sources.warnings.append(f"{given.origin}: providers.{name}.api_key_file names {path}: {wrong}")
    else:
        warn_when_open(sources, path)
    return key


def warn_when_open(sources: LayeredValues, path: Path) -> None:
    """Add a warning if other users can read a file with a secret."""
    warning = f"{path} contains a key and is readable by other users; run: chmod 600 {path}"
    if open_to_others(path) and warning not in sources.warnings:
        sources.warnings.append(warning)
