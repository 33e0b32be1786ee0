"""Which model does what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from aforesaid.errors import InvalidInput
from aforesaid.settings.layered_values import DEFAULT, LayeredValues
from aforesaid.settings.value_types import Chain
from aforesaid.settings.values import OPERATIONS, Choice, Operation, Route

DEFAULT_ROUTES: Final[Mapping[Operation, Route]] = {
    # An answer may be as long and as lively as the model makes it.
    "chat": Route(),
    # Small models repeat themselves at 0.
    "summarize": Route(temperature=0.2, max_tokens=1024),
    # One call for everybody who spoke that day.
    "day": Route(temperature=0.0, max_tokens=8192, timeout=180.0),
    # Merging, remembering and forgetting follow their instructions to the letter.
    "merge": Route(temperature=0.0, max_tokens=2048),
    "extract": Route(temperature=0.3, max_tokens=2048),
    # Somebody waits for the answer behind it, and rules can do it too.
    "route": Route(temperature=0.0, max_tokens=512, timeout=20.0),
    "embed": Route(timeout=30.0),
}
"""How each operation is done when nothing else is said, once a model is named."""

_WITHOUT_A_MODEL: Final = Chain((), without=True)


def read_routes(sources: LayeredValues) -> dict[Operation, Route]:
    """Return how each operation is done."""
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
    # A model that talks does not embed: that one has to be named.
    given = own or (sources.given("models", "default") if operation != "embed" else None)
    sources.origins[f"models.{operation}.chain"] = given.origin if given else DEFAULT
    chain: Chain = given.value if given else _WITHOUT_A_MODEL
    if operation == "embed" and len(chain.choices) > 1:
        where = sources.where("models", operation, "chain")
        raise InvalidInput(f"{where}: only one model can embed, for the vectors of two cannot be compared")
    return chain


def _timeout(sources: LayeredValues, operation: Operation, default: float) -> float:
    general = sources.given("models", "timeout")
    if general is None or sources.given("models", operation, "timeout") is not None:
        own: float = sources.take("models", operation, "timeout", default=default)
        return own
    sources.origins[f"models.{operation}.timeout"] = general.origin
    return float(general.value)
