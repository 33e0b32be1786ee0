"""Embedders: the contract, the choice of one, and the small ones for tests and metrics."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from time import perf_counter
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, runtime_checkable

from aforesaid.errors import ModelError
from aforesaid.extras import np
from aforesaid.models.embed.token_vectors import TokenVectors
from aforesaid.telemetry import Metrics, kind_of

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


class MeteredEmbedder:
    """An embedder whose calls are counted, like those of a remote model."""

    def __init__(self, inner: Embedder, metrics: Metrics) -> None:
        self._inner = inner
        # Looked up once: checking against a protocol takes longer than embedding a word.
        self._begin_inner = inner.begin if isinstance(inner, Beginning) else None
        self._with_tokens = inner if isinstance(inner, TokenEmbedder) else None
        self._metrics = metrics

    @property
    def name(self) -> str:
        return self._inner.name

    async def embed(self, texts: Sequence[str]) -> Vectors:
        began = perf_counter()
        try:
            vectors = await self._inner.embed(texts)
        except BaseException as error:
            self._count(began, error)
            raise
        self._count(began, None)
        return vectors

    def begin(self, text: str) -> asyncio.Future[Vectors]:
        """Start embedding a text, immediately if the wrapped embedder can."""
        if self._begin_inner is None:
            return asyncio.ensure_future(self.embed([text]))
        began, begun = perf_counter(), self._begin_inner(text)
        begun.add_done_callback(lambda ended: self._count(began, None if ended.cancelled() else ended.exception()))
        return begun

    @property
    def token_name(self) -> str | None:
        return None if self._with_tokens is None else self._with_tokens.token_name

    async def tokens(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Return the token vectors of each text. Not counted: the texts were embedded before."""
        if self._with_tokens is None:
            raise ModelError(f"{self.name} has no token vectors")
        return await self._with_tokens.tokens(texts)

    def forget_all(self) -> None:
        if isinstance(self._inner, Forgetting):
            self._inner.forget_all()

    async def close(self) -> None:
        await self._inner.close()

    def _count(self, began: float, error: BaseException | None) -> None:
        failure = None if error is None else kind_of(error)
        self._metrics.called("embed", self.name, perf_counter() - began, failure=failure)
