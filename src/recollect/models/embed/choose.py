"""From the name of an embedder, as people write it, to the embedder."""

from __future__ import annotations

import os
from typing import Final

from recollect.errors import InvalidInput
from recollect.models.embed.contract import Embedder
from recollect.models.embed.deterministic import DeterministicEmbedder
from recollect.models.embed.local import LocalEmbedder
from recollect.models.embed.remote import RemoteEmbedder

LOCAL: Final = "local"
NONE: Final = "none"


def choose_embedder(wanted: str | Embedder | None) -> Embedder | None:
    """Return the embedder of a name; `none` for keyword search alone.

    `local` (the default), `deterministic`, `none`, or `MODEL@BASE_URL` for any server that speaks OpenAI's API. Without
    a name, RECOLLECT_EMBEDDER decides.
    """
    if wanted is None:
        wanted = os.environ.get("RECOLLECT_EMBEDDER") or LOCAL
    if not isinstance(wanted, str):
        return wanted
    if wanted == NONE:
        return None
    if wanted == LOCAL:
        return LocalEmbedder()
    if wanted == "deterministic":
        return DeterministicEmbedder()
    model, separator, url = wanted.partition("@")
    if not separator or not model or not url.startswith(("http://", "https://")):
        raise InvalidInput(f"unknown embedder {wanted!r}; use local, deterministic, none or MODEL@BASE_URL")
    return RemoteEmbedder(model, url, os.environ.get("OPENAI_API_KEY"))
