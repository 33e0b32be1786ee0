"""Turning text into vectors."""

from aforesaid.models.embed.apart import ApartEmbedder
from aforesaid.models.embed.choose import choose_embedder, embedder_of_a_server
from aforesaid.models.embed.contract import Embedder, Vectors
from aforesaid.models.embed.deterministic import DeterministicEmbedder
from aforesaid.models.embed.lately import LatelyEmbedder
from aforesaid.models.embed.local import LocalEmbedder
from aforesaid.models.embed.remote import RemoteEmbedder

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
