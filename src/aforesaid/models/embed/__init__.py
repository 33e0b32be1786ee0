"""Turning text into vectors."""

from aforesaid.models.embed.caching import CachingEmbedder, read_messages
from aforesaid.models.embed.contract import (
    DeterministicEmbedder,
    Embedder,
    Forgetting,
    ReadingEmbedder,
    TokenEmbedder,
    Vectors,
)
from aforesaid.models.embed.local import LocalEmbedder
from aforesaid.models.embed.remote import (
    RemoteEmbedder,
    SubprocessEmbedder,
    built_in_encoder,
    choose_embedder,
    embedder_of_a_server,
)
from aforesaid.models.embed.token_vectors import TokenVectors

__all__ = [
    "CachingEmbedder",
    "DeterministicEmbedder",
    "Embedder",
    "Forgetting",
    "LocalEmbedder",
    "ReadingEmbedder",
    "RemoteEmbedder",
    "SubprocessEmbedder",
    "TokenEmbedder",
    "TokenVectors",
    "Vectors",
    "built_in_encoder",
    "choose_embedder",
    "embedder_of_a_server",
    "read_messages",
]
