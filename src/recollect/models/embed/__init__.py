"""Turning text into vectors."""

from recollect.models.embed.choose import choose_embedder
from recollect.models.embed.contract import Embedder, Vectors
from recollect.models.embed.deterministic import DeterministicEmbedder
from recollect.models.embed.lately import LatelyEmbedder
from recollect.models.embed.local import LocalEmbedder
from recollect.models.embed.remote import RemoteEmbedder

__all__ = [
    "DeterministicEmbedder",
    "Embedder",
    "LatelyEmbedder",
    "LocalEmbedder",
    "RemoteEmbedder",
    "Vectors",
    "choose_embedder",
]
