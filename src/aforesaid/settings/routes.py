"""Read the models and limits of each operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from aforesaid.errors import InvalidInput
from aforesaid.settings.basic_values import Choice
from aforesaid.settings.layered_values import DEFAULT, LayeredValues
from aforesaid.settings.value_types import Chain
from aforesaid.settings.values import OPERATIONS, Operation, Route

DEFAULT_ROUTES: Final[Mapping[Operation, Route]] = {
    # No limit: the provider's defaults decide the length and temperature of a reply.
    "chat": Route(),
    # Small models repeat themselves at temperature 0.
    # A small model at home writes a few tokens a second, and nobody waits for background work.
    "summarize": Route(temperature=0.2, max_tokens=1024, timeout=180.0),
    # One call for everybody who spoke that day.
    "day": Route(temperature=0.0, max_tokens=8192, timeout=180.0),
    # Merging, remembering and forgetting follow their instructions to the letter.
    "merge": Route(temperature=0.0, max_tokens=2048),
    "extract": Route(temperature=0.3, max_tokens=1024, timeout=300.0),
    # A short timeout: a user waits for the reply, and rules can do it as well.
    "route": Route(temperature=0.0, max_tokens=512, timeout=20.0),
    "embed": Route(timeout=30.0),
}
"""The defaults of each operation, once a model is configured."""

_WITHOUT_A_MODEL: Final = Chain((), without=True)


def read_routes(sources: LayeredValues) -> dict[Operation, Route]:
    """Return the route of each operation."""
    return {operation: _route(sources, operation) for operation in OPERATIONS}


def choose_embedding(sources: LayeredValues, routes: dict[Operation, Route]) -> str | None:
    """Return `embedder`, unless a model of a provider is to embed: that is a route.

    The model can be named by `embedder`, too. Where both are set, the stronger layer has its way.
    """
    embedder, model = sources.given("embedder"), sources.given("models", "embed", "chain")
    if embedder is not None and model is not None and embedder.rank == model.rank:
        raise InvalidInput(
            f"{embedder.origin} sets embedder, and {model.origin} sets models.embed.chain, which is the same; "
            "remove one of them"
        )
    if embedder is None or (model is not None and model.rank > embedder.rank):
        sources.origins["embedder"] = model.origin if model else DEFAULT
        return None
    provider, colon, name = embedder.value.partition(":")
    of_provider = bool(colon and provider and name) and "@" not in embedder.value
    sources.origins["embedder"] = sources.origins["models.embed.chain"] = embedder.origin
    routes["embed"] = replace(
        routes["embed"], chain=(Choice(provider, name),) if of_provider else (), without=not of_provider
    )
    return None if of_provider else str(embedder.value)


def _route(sources: LayeredValues, operation: Operation) -> Route:
    default = DEFAULT_ROUTES[operation]
    return Route(
        chain=(chain := _chain(sources, operation)).choices,
        without=chain.without,
        temperature=sources.take("models", operation, "temperature", default=default.temperature),
        max_tokens=sources.take("models", operation, "max_tokens", default=default.max_tokens),
        timeout=_timeout(sources, operation, default.timeout),
    )


def _chain(sources: LayeredValues, operation: Operation) -> Chain:
    own = sources.given("models", operation, "chain")
    # Chat models do not embed, so an embedding model must be named explicitly.
    given = own or (sources.given("models", "default") if operation != "embed" else None)
    sources.origins[f"models.{operation}.chain"] = given.origin if given else DEFAULT
    chain: Chain = given.value if given else _WITHOUT_A_MODEL
    if operation == "embed" and len(chain.choices) > 1:
        where = sources.where("models", operation, "chain")
        raise InvalidInput(f"{where}: only one model can embed, because vectors of different models are not comparable")
    return chain


def _timeout(sources: LayeredValues, operation: Operation, default: float) -> float:
    general = sources.given("models", "timeout")
    if general is None or sources.given("models", operation, "timeout") is not None:
        own: float = sources.take("models", operation, "timeout", default=default)
        return own
    sources.origins[f"models.{operation}.timeout"] = general.origin
    return float(general.value)
