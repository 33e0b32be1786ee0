"""The interface of embedders."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from aforesaid.models.embed.token_vectors import TokenVectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors: TypeAlias = NDArray[np.float32]
else:
    Vectors = "Vectors"


class Embedder(Protocol):
    """Gives each text a vector of length one, such that texts of similar meaning have similar vectors.

    `name` tells models apart: vectors of two names are never compared. The number of dimensions is whatever comes out.
    """

    @property
    def name(self) -> str:
        """The model, and every other setting that changes its vectors."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text, in order. Raises ModelError when the model cannot answer."""

    async def close(self) -> None:
        """Release its resources. A second call does nothing."""


@runtime_checkable
class TokenEmbedder(Embedder, Protocol):
    """An embedder that also gives a vector to each token of a text, for the ranker."""

    @property
    def token_name(self) -> str | None:
        """The name under which token vectors are stored. None: there are none."""

    async def tokens(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Return the token vectors of each text. For texts that were embedded a moment ago this takes no time."""


@runtime_checkable
class Beginning(Protocol):
    """An embedder that can start immediately, without waiting for the event loop to schedule a task."""

    def begin(self, text: str) -> asyncio.Future[Vectors]:
        """Start embedding a text. The result has one row."""


@runtime_checkable
class Forgetting(Protocol):
    """An embedder that caches texts or what it made of them."""

    def forget_all(self) -> None:
        """Empty its caches, because somebody was erased. What is being embedded now is not cached either."""
