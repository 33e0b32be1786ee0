"""Counting what an embedder in this process takes."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

from recollect.models.embed.contract import Embedder, Vectors
from recollect.telemetry import Metrics, kind_of


class MeteredEmbedder:
    """An embedder whose calls are counted, like those of a model behind an address."""

    def __init__(self, inner: Embedder, metrics: Metrics) -> None:
        self._inner = inner
        self._metrics = metrics

    @property
    def name(self) -> str:
        """The name of the one inside."""
        return self._inner.name

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text."""
        began, failure = perf_counter(), None
        try:
            return await self._inner.embed(texts)
        except BaseException as error:
            failure = kind_of(error)
            raise
        finally:
            self._metrics.called("embed", self.name, perf_counter() - began, failure=failure)

    async def close(self) -> None:
        """Close the one inside."""
        await self._inner.close()
