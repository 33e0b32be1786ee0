"""Embedders: the contract, and one for tests."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, runtime_checkable

from aforesaid.extras import np
from aforesaid.models.embed.token_vectors import TokenVectors
from aforesaid.models.reader import Reading

if TYPE_CHECKING:
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
class ReadingEmbedder(Embedder, Protocol):
    """An embedder that also reads what messages want and tell."""

    async def read(self, texts: Sequence[str]) -> list[Reading]:
        """Return what each text wants and tells. For texts that were read a moment ago this takes no time."""


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


_DIMENSIONS: Final = 256
_GRAM: Final = 4

_CACHED: Final = 4_096
"""Directions that are kept, in 4 MB: a text has few runs of letters that no other has, and making one takes long."""


class DeterministicEmbedder:
    """Adds up a fixed random direction for every run of four letters: texts that share spellings are similar."""

    name = f"deterministic-{_DIMENSIONS}"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        rows = np.zeros((len(texts), _DIMENSIONS), dtype=np.float32)
        for number, text in enumerate(texts):
            padded = f"  {text.casefold()}  "
            for gram, count in Counter(padded[at : at + _GRAM] for at in range(len(padded) - _GRAM + 1)).items():
                rows[number] += count * _direction(gram)
            rows[number] /= np.linalg.norm(rows[number]) or 1.0
        return rows

    async def close(self) -> None:
        """Do nothing."""


@lru_cache(_CACHED)
def _direction(gram: str) -> Vectors:
    """Return the direction of a run of letters. Nobody may change it."""
    seed = int.from_bytes(blake2b(gram.encode(errors="replace"), digest_size=8).digest(), "big")
    direction: Vectors = np.random.default_rng(seed).standard_normal(_DIMENSIONS, dtype=np.float32)
    direction.setflags(write=False)
    return direction
