"""Embedding questions, without waiting for an embedder that does not answer."""

from __future__ import annotations

import asyncio
import logging
from time import perf_counter
from typing import Final

from aforesaid.background import begin
from aforesaid.errors import ModelError, ModelUnavailable
from aforesaid.models.embed import CachingEmbedder, Embedder, Vectors
from aforesaid.models.resilience import Breaker, BreakerOpen
from aforesaid.settings import Resilience
from aforesaid.telemetry import OWN, SEARCH_VECTOR, Metrics, kind_of

_log: Final = logging.getLogger("aforesaid.recall")

LEAST_WAIT_SECONDS: Final = 1.0
"""A search that is cancelled sooner says nothing about the embedder."""
_BREAKER: Final = Resilience(failures=2, probe_seconds=30.0)
"""Two searches in a row that were given up open the breaker: one can be a coincidence, such as a model that is still
being loaded."""


class QuestionVectors:
    """Embeds the questions of searches. A question without a vector is searched for by its words alone.

    There is no time limit: a caller that must not wait cancels its search. After two such cancellations in a row a
    circuit breaker opens, and questions get no vector at once. Every 30 seconds one question is embedded in the
    background, and the breaker closes if that takes less time than the callers had waited.
    """

    def __init__(self, embedder: Embedder | None, metrics: Metrics | None = None) -> None:
        self._embedder = embedder
        self._metrics = metrics
        self._breaker = Breaker("the embedder", _BREAKER)
        self._given_up_after = float("inf")
        """Seconds that the last caller that gave up had waited."""
        self._probe: asyncio.Future[None] | None = None

    @property
    def name(self) -> str | None:
        """The name of the embedder, if there is one."""
        return None if self._embedder is None else self._embedder.name

    def expect(self, text: str) -> None:
        """Begin to embed a question that will be asked for in a moment."""
        is_open = self._breaker.state().state != "closed"
        if text.strip() and isinstance(self._embedder, CachingEmbedder) and not is_open:
            self._embedder.expect(text)

    async def embed(self, text: str) -> Vectors | None:
        """Return the vector of a question, or None if there is no embedder or it cannot answer."""
        if self._embedder is None or not text.strip():
            return None
        try:
            probe = self._breaker.admit()
        except BreakerOpen as error:
            self._note_failure(error)
            return None
        if not probe:
            return await self._embed(self._embedder, text)
        self._probe = begin(self._try_again(self._embedder, text))
        self._note_failure(ModelUnavailable("the embedder is tried again in the background"))
        return None

    async def _embed(self, embedder: Embedder, text: str) -> Vectors | None:
        began = perf_counter()
        try:
            vectors = await embedder.embed([text])
        except asyncio.CancelledError:
            if (waited := perf_counter() - began) >= LEAST_WAIT_SECONDS:
                self._given_up_after = waited
                self._breaker.failed(ModelUnavailable(f"a search was given up after {waited:.1f} s"))
                self._count(waited, "timeout")
            raise
        except ModelError as error:
            self._note_failure(error, perf_counter() - began)
            return None
        seconds = perf_counter() - began
        if seconds < self._given_up_after:
            self._breaker.answered()
        self._count(seconds)
        first: Vectors = vectors[0]
        return first

    async def _try_again(self, embedder: Embedder, text: str) -> None:
        """Embed a text that nobody waits for, and close the breaker if that is quick enough."""
        try:
            async with asyncio.timeout(self._given_up_after):
                await embedder.embed([text])
        except (TimeoutError, ModelError) as error:
            _log.warning("the embedder does not answer yet: %s %s", type(error).__name__, error)
        else:
            self._breaker.answered()
        finally:
            self._breaker.done(probe=True)

    def _note_failure(self, error: ModelError, seconds: float = 0.0) -> None:
        _log.warning("searching by words alone: %s", error)
        self._count(seconds, kind_of(error))

    def _count(self, seconds: float, failure: str | None = None) -> None:
        if self._metrics is not None:
            self._metrics.called(SEARCH_VECTOR, OWN, seconds, failure=failure)
