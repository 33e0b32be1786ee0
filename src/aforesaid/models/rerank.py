"""A reranker behind an HTTP API: `/rerank` of Cohere, Jina, vLLM, llama.cpp and text-embeddings-inference (TEI).

All but TEI take `documents` and return `results` with a `relevance_score` for each `index`. TEI takes `texts` and
returns a bare list with a `score` for each `index`.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from aforesaid.domain.report import Component
from aforesaid.errors import ModelGarbled
from aforesaid.models.client import Client, Sent, component
from aforesaid.models.resilience import Ask, Breaker, ConcurrencyLimit, Result, RunningCalls, Service, only, wrapped
from aforesaid.settings import Choice, Settings
from aforesaid.telemetry import Metrics

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_Pairs: TypeAlias = tuple[str, tuple[str, ...]]
"""A question, and the documents to score for it."""


class Reranker:
    """A model that scores documents for a question, behind one server.

    A call is made once and has a timeout: somebody waits for the search. While the server is down its circuit breaker
    is open, and a call fails at once.
    """

    def __init__(self, choice: Choice, settings: Settings, metrics: Metrics) -> None:
        provider, resilience = settings.providers[choice.provider], settings.resilience
        self.candidates = settings.rerank.candidates
        self.weight = settings.rerank.weight
        self.metrics = metrics
        self._choice = choice
        self._timeout = settings.rerank.timeout
        self._client = Client(provider)
        self._calls = RunningCalls()
        self._breaker = Breaker(str(choice), resilience)
        limit = ConcurrencyLimit(provider.name, provider.concurrency)
        service: Service[_Pairs, Result[list[float]]] = Sent(self._client, choice.model, self._send)
        self._service = wrapped(service, str(choice), self._breaker, limit, resilience, metrics)

    async def scores(self, question: str, documents: Sequence[str]) -> list[float]:
        """Return a score for each document: better answers have higher ones, on any scale. Raises ModelError."""
        # Before the deadline begins: it takes a second, once.
        await self._client.open()
        end = asyncio.get_running_loop().time() + self._timeout
        ask = Ask("rerank", (question, tuple(documents)), answer_by=end, over_by=end)
        async with self._calls.running():
            return (await only(self._service, ask)).value

    def health(self) -> Component:
        return component("reranker", {str(self._choice): self._breaker.state()}, "none")

    async def close(self) -> None:
        self._calls.close()
        await self._client.close()

    async def _send(self, opened: AsyncOpenAI, pairs: _Pairs) -> Result[list[float]]:
        question, documents = pairs
        body: dict[str, Any] = {"query": question, "texts": documents, "truncate": True}
        if self._client.provider.api != "tei":
            # Some servers return ten results by default.
            model = self._choice.model
            body = {"model": model, "query": question, "documents": documents, "top_n": len(documents)}
        reply: object = await opened.post("/rerank", body=body, cast_to=object)
        usage = reply.get("usage") if isinstance(reply, dict) else None
        tokens = usage.get("total_tokens") if isinstance(usage, dict) else None
        return Result(_scores(reply, len(documents), self._choice), tokens if isinstance(tokens, int) else 0)


def open_reranker(settings: Settings, metrics: Metrics | None = None) -> Reranker | None:
    """Return the configured reranker, or None. Nothing is connected before the first call."""
    choice = settings.rerank.model
    return None if choice is None else Reranker(choice, settings, metrics or Metrics())


def _scores(reply: object, count: int, choice: Choice) -> list[float]:
    """Return the scores in the order of the documents. Raises ModelGarbled unless each document has one."""
    results = reply.get("results") if isinstance(reply, dict) else reply
    found: dict[int, float] = {}
    for result in results if isinstance(results, list) else ():
        if isinstance(result, dict):
            index, score = result.get("index"), result.get("relevance_score", result.get("score"))
            if type(index) is int and 0 <= index < count and isinstance(score, int | float) and math.isfinite(score):
                found[index] = float(score)
    if len(found) != count:
        raise ModelGarbled(
            f"{choice} scored {len(found)} of {count} documents. If this goes on, check the base_url, and whether the "
            f'server is text-embeddings-inference (api = "tei") or speaks the API of Cohere and Jina'
        )
    return [found[index] for index in range(count)]
