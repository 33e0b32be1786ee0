"""Cache the vectors of recent texts.

What somebody asks is embedded to search by it, and once more when it is stored as a message. And a search may say early
what it is going to need.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from cachetools import LRUCache

from aforesaid.errors import ModelError
from aforesaid.models.embed.contract import Beginning, Embedder, TokenEmbedder, Vectors
from aforesaid.models.embed.token_vectors import TokenVectors

_KEPT: Final = 256


class CachingEmbedder:
    """An embedder with a cache of recent texts."""

    def __init__(self, inner: Embedder) -> None:
        self.inner: Final = inner
        # Looked up once: checking against a protocol takes longer than embedding a word.
        self._begin_inner: Final = inner.begin if isinstance(inner, Beginning) else None
        self._kept: LRUCache[str, Vectors] = LRUCache(_KEPT)
        self._coming: dict[tuple[asyncio.AbstractEventLoop, str], asyncio.Future[Vectors]] = {}

    @property
    def name(self) -> str:
        """The name of the wrapped embedder."""
        return self.inner.name

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text."""
        import numpy as np  # noqa: PLC0415 - loaded with the first text

        if len(texts) == 1:
            return await self._one(texts[0])
        new = [text for text in dict.fromkeys(texts) if text not in self._kept]
        if len(new) == len(texts):
            return await self.inner.embed(texts)
        known = {text: self._kept[text][0] for text in texts if text in self._kept}
        if new:
            known |= zip(new, await self.inner.embed(new), strict=True)
        return np.stack([known[text] for text in texts])

    @property
    def token_name(self) -> str | None:
        """That of the wrapped embedder."""
        return self.inner.token_name if isinstance(self.inner, TokenEmbedder) else None

    async def tokens(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Return the token vectors of each text."""
        if not isinstance(self.inner, TokenEmbedder):
            raise ModelError(f"{self.name} has no token vectors")
        return await self.inner.tokens(texts)

    async def close(self) -> None:
        """Close the wrapped embedder."""
        await self.inner.close()

    def expect(self, text: str) -> None:
        """Start embedding a text that will be requested soon."""
        if text not in self._kept:
            self._begin(text)

    async def _one(self, text: str) -> Vectors:
        kept = self._kept.get(text)
        # A cancelled caller must not cancel the call of others.
        return kept if kept is not None else await asyncio.shield(self._begin(text))

    def _begin(self, text: str) -> asyncio.Future[Vectors]:
        key = asyncio.get_running_loop(), text
        coming = self._coming.get(key)
        if coming is None:
            begin = self._begin_inner
            coming = asyncio.ensure_future(self.inner.embed([text])) if begin is None else begin(text)
            self._coming[key] = coming
            coming.add_done_callback(lambda ended: self._arrived(key, ended))
        return coming

    def _arrived(self, key: tuple[asyncio.AbstractEventLoop, str], ended: asyncio.Future[Vectors]) -> None:
        del self._coming[key]
        # Callers get the exception; without a caller it is ignored.
        if not ended.cancelled() and ended.exception() is None:
            self._kept[key[1]] = ended.result()
