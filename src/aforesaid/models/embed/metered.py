"""Count the calls of an embedder in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import perf_counter

from aforesaid.errors import ModelError
from aforesaid.models.embed.contract import Beginning, Embedder, Forgetting, TokenEmbedder, Vectors
from aforesaid.models.embed.token_vectors import TokenVectors
from aforesaid.telemetry import Metrics, kind_of


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
        """The name of the wrapped embedder."""
        return self._inner.name

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text."""
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
        """That of the wrapped embedder."""
        return None if self._with_tokens is None else self._with_tokens.token_name

    async def tokens(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Return the token vectors of each text. Not counted: the texts were embedded before."""
        if self._with_tokens is None:
            raise ModelError(f"{self.name} has no token vectors")
        return await self._with_tokens.tokens(texts)

    def forget_all(self) -> None:
        """Empty the caches of the wrapped embedder, because somebody was erased."""
        if isinstance(self._inner, Forgetting):
            self._inner.forget_all()

    async def close(self) -> None:
        """Close the wrapped embedder."""
        await self._inner.close()

    def _count(self, began: float, error: BaseException | None) -> None:
        failure = None if error is None else kind_of(error)
        self._metrics.called("embed", self.name, perf_counter() - began, failure=failure)
