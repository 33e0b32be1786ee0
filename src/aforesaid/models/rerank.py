"""A reranker behind an HTTP API: `/rerank` of Cohere, Jina, vLLM, llama.cpp and text-embeddings-inference (TEI).

All but TEI take `documents` and return `results` with a `relevance_score` for each `index`. TEI takes `texts` and
returns a bare list with a `score` for each `index`.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any

from aforesaid.domain.report import Component
from aforesaid.errors import ModelGarbled
from aforesaid.models.client import Client, component
from aforesaid.models.resilience import (
    Ask,
    Breaker,
    Checked,
    ConcurrencyLimit,
    Deadline,
    Guarded,
    Limited,
    Metered,
    Service,
    only,
)
from aforesaid.models.resilience.wrappers import RunningCalls
from aforesaid.settings import Choice, Settings
from aforesaid.telemetry import Metrics


@dataclass(frozen=True, slots=True)
class Pairs:
    """A question and the documents to score for it."""

    question: str
    documents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DocumentScores:
    """One score for each document, in the order of the request. Only their differences mean something."""

    scores: list[float]
    prompt_tokens: int = 0
    reply_tokens: int = 0


class _RerankRequest:
    """Sends one request to `/rerank`."""

    def __init__(self, client: Client, choice: Choice) -> None:
        self._client = client
        self._choice = choice

    async def call(self, ask: Ask[Pairs]) -> AsyncGenerator[DocumentScores, None]:
        try:
            opened = await self._client.open()
            reply: object = await opened.post("/rerank", body=self._body(ask.what), cast_to=object)
        except Exception as error:
            # Whatever the library raises, callers know ModelError alone; and its own texts may repeat the key.
            raise self._client.failure(error, self._choice.model) from None
        yield DocumentScores(_scores(reply, len(ask.what.documents), self._choice), _tokens(reply))

    def _body(self, pairs: Pairs) -> dict[str, Any]:
        documents = list(pairs.documents)
        if self._client.provider.api == "tei":
            return {"query": pairs.question, "texts": documents, "truncate": True}
        return {
            "model": self._choice.model,
            "query": pairs.question,
            "documents": documents,
            # Some servers return ten results by default.
            "top_n": len(documents),
        }


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
        self._name = str(choice)
        self._timeout = settings.rerank.timeout
        self._client = Client(provider)
        self._calls = RunningCalls()
        self._breaker = Breaker(self._name, resilience)
        service: Service[Pairs, DocumentScores] = _RerankRequest(self._client, choice)
        service = Deadline(service, self._name, stall=resilience.stall_seconds)
        service = Metered(service, self._name, metrics)
        service = Guarded(service, self._breaker)
        service = Limited(service, ConcurrencyLimit(provider.name, provider.concurrency))
        self._service = Checked(service, self._breaker)

    async def scores(self, question: str, documents: Sequence[str]) -> list[float]:
        """Return a score for each document, higher for better answers. Raises ModelError."""
        # Before the deadline begins: it takes a second, once.
        await self._client.open()
        end = asyncio.get_running_loop().time() + self._timeout
        ask = Ask("rerank", Pairs(question, tuple(documents)), answer_by=end, over_by=end)
        async with self._calls.running():
            return (await only(self._service, ask)).scores

    def health(self) -> Component:
        return component("reranker", {self._name: self._breaker.state()}, "none")

    async def close(self) -> None:
        self._calls.close()
        await self._client.close()


def open_reranker(settings: Settings, metrics: Metrics | None = None) -> Reranker | None:
    """Return the configured reranker, or None. Nothing is connected before the first call."""
    choice = settings.rerank.model
    return None if choice is None else Reranker(choice, settings, metrics or Metrics())


def _scores(reply: object, count: int, choice: Choice) -> list[float]:
    """Return the scores in the order of the documents. Raises ModelGarbled unless each document has one."""
    results = reply.get("results") if isinstance(reply, dict) else reply
    found: dict[int, float] = {}
    for result in results if isinstance(results, list) else ():
        index, score = _result(result)
        if index is not None and score is not None and 0 <= index < count:
            found[index] = score
    if len(found) != count:
        raise ModelGarbled(
            f"{choice} scored {len(found)} of {count} documents. If this goes on, check the base_url, and whether the "
            f'server is text-embeddings-inference (api = "tei") or speaks the API of Cohere and Jina'
        )
    return [found[index] for index in range(count)]


def _result(result: object) -> tuple[int | None, float | None]:
    if not isinstance(result, dict):
        return None, None
    index, score = result.get("index"), result.get("relevance_score", result.get("score"))
    if isinstance(index, bool) or not isinstance(index, int):
        return None, None
    if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
        return index, None
    return index, float(score)


def _tokens(reply: object) -> int:
    """Return the tokens that the server read, if it says so."""
    usage = reply.get("usage") if isinstance(reply, dict) else None
    tokens = usage.get("total_tokens") if isinstance(usage, dict) else None
    return tokens if isinstance(tokens, int) else 0
