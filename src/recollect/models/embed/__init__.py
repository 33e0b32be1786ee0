"""Turning text into vectors."""

from recollect.models.embed.apart import ApartEmbedder
from recollect.models.embed.choose import choose_embedder, embedder_of_a_server
from recollect.models.embed.contract import Embedder, Vectors
from recollect.models.embed.deterministic import DeterministicEmbedder
from recollect.models.embed.lately import LatelyEmbedder
from recollect.models.embed.local import LocalEmbedder
from recollect.models.embed.remote import RemoteEmbedder

__all__ = [
    "ApartEmbedder",
    "DeterministicEmbedder",
    "Embedder",
    "LatelyEmbedder",
    "LocalEmbedder",
    "RemoteEmbedder",
    "Vectors",
    "choose_embedder",
    "embedder_of_a_server",
]
