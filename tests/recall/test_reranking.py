"""Searches whose first hits are reordered by a reranker behind an HTTP API."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

import aforesaid
from aforesaid.recall.ranker import _logits
from aforesaid.testing import ScriptedModel, faults
from aforesaid.testing.faults import HttpResponse

NOON = datetime(2026, 5, 10, 12, 0, tzinfo=UTC)
ASKED = "Which tea does she like?"
SAID = (
    "She likes green tea.",
    "She drinks tea at work.",
    "Tea is sold out.",
    "It is Darjeeling that she always orders.",
    "Her brother likes coffee.",
)
ANSWER = 3


@dataclass(frozen=True, slots=True)
class Prefers(faults.Fault):
    """A reranker that finds one text far better than all others, whatever was asked."""

    server: ScriptedModel
    text: str

    def change(self, answer: HttpResponse) -> HttpResponse:
        documents = self.server.requests[-1].body["documents"]
        results = [
            {"index": at, "relevance_score": 0.99 if self.text in each else 0.01} for at, each in enumerate(documents)
        ]
        return replace(answer, parts=(json.dumps({"results": results}).encode(),))


@asynccontextmanager
async def memory(folder: Path, server: ScriptedModel | None = None, **more: object) -> AsyncIterator[aforesaid.Memory]:
    settings: dict[str, object] = {"background": False, "resilience.failures": 2}
    if server is not None:
        settings |= {"rerank.model": "ranks:some", "providers.ranks.base_url": server.base_url}
        settings |= {f"rerank.{name}": value for name, value in more.items()}
    async with aforesaid.connect(folder / "memory.db", embedder="deterministic", settings=settings) as opened:
        if not (await opened.users()):
            for number, text in enumerate(SAID):
                await opened.user("ann").add("user", text, at=NOON + timedelta(minutes=number), name="Ann")
            await opened.upkeep()
        yield opened


async def found(opened: aforesaid.Memory, asked: str = ASKED) -> list[aforesaid.Hit]:
    return await opened.user("ann").search(asked, kinds=("message",), min_score=0)


async def test_the_first_hits_are_reordered_and_their_scores_stay_in_order(tmp_path: Path) -> None:
    async with memory(tmp_path) as opened:
        before = await found(opened)
    assert before[0].text != SAID[ANSWER]
    with ScriptedModel() as server:
        server.fail(Prefers(server, "Darjeeling"))
        async with memory(tmp_path, server) as opened:
            after = await found(opened)
    assert after[0].text == SAID[ANSWER]
    assert {hit.id for hit in after} == {hit.id for hit in before}
    assert [hit.score for hit in after] == pytest.approx([hit.score for hit in before])
    assert "the reranker's order" in after[0].explain()


async def test_the_server_gets_the_question_and_messages_with_date_and_speaker(tmp_path: Path) -> None:
    with ScriptedModel() as server:
        async with memory(tmp_path, server) as opened:
            await found(opened)
    [sent] = server.requests
    assert sent.body["query"] == ASKED
    assert f"2026-05-10 Ann: {SAID[ANSWER]}" in sent.body["documents"]


async def test_at_most_800_characters_of_a_question_or_a_message_are_sent(tmp_path: Path) -> None:
    asked, said = f"{ASKED} {'tea ' * 300}", f"She also likes {'black ' * 200} tea."
    with ScriptedModel() as server:
        async with memory(tmp_path, server) as opened:
            await opened.user("ann").add("user", said, at=NOON + timedelta(hours=1), name="Ann")
            await found(opened, asked)
    [sent] = server.requests
    assert sent.body["query"] == asked[:800]
    assert f"2026-05-10 Ann: {said[:800]}" in sent.body["documents"]


def test_probabilities_of_exactly_0_and_1_are_far_from_the_middle_but_not_infinitely() -> None:
    assert _logits(np.array([0.0, 0.5, 1.0])).tolist() == pytest.approx([-13.8155, 0.0, 13.8155], abs=1e-3)


@pytest.mark.parametrize("scores", [[-0.5, 0.5], [0.5, 1.5]])
def test_scores_that_are_no_probabilities_are_taken_as_they_are(scores: list[float]) -> None:
    assert _logits(np.array(scores)).tolist() == scores


async def test_only_the_first_candidates_are_sent(tmp_path: Path) -> None:
    with ScriptedModel() as server:
        async with memory(tmp_path, server, candidates=2) as opened:
            hits = await found(opened)
    [sent] = server.requests
    assert len(sent.body["documents"]) == 2
    assert len(hits) == len(SAID)


async def test_a_message_that_repeats_the_question_is_not_sent(tmp_path: Path) -> None:
    with ScriptedModel() as server:
        async with memory(tmp_path, server) as opened:
            await opened.user("ann").add("user", ASKED, at=NOON + timedelta(hours=1))
            await opened.upkeep()
            await found(opened)
    [sent] = server.requests
    assert sent.body["documents"]
    assert not any(ASKED in text for text in sent.body["documents"])


async def test_without_weight_the_order_stays(tmp_path: Path) -> None:
    async with memory(tmp_path) as opened:
        before = await found(opened)
    with ScriptedModel() as server:
        server.fail(Prefers(server, "Darjeeling"))
        async with memory(tmp_path, server, weight=0) as opened:
            assert [hit.id for hit in await found(opened)] == [hit.id for hit in before]


@pytest.mark.parametrize(
    "fault",
    [faults.ServerError(500, "out of order"), faults.NeverAnswers(), faults.Garbage(), faults.WrongKey()],
    ids=lambda fault: type(fault).__name__,
)
async def test_a_search_keeps_its_own_order_if_the_reranker_fails(
    tmp_path: Path, fault: faults.Fault, caplog: pytest.LogCaptureFixture
) -> None:
    async with memory(tmp_path) as opened:
        before = await found(opened)
    with ScriptedModel() as server, caplog.at_level(logging.WARNING, "aforesaid.recall"):
        server.fail(fault)
        async with memory(tmp_path, server, timeout=0.1) as opened:
            after = await found(opened)
    assert [(hit.id, hit.score) for hit in after] == [(hit.id, hit.score) for hit in before]
    assert "not reranked" in caplog.text


async def test_a_reranker_that_is_down_is_left_alone_and_shown_in_health(tmp_path: Path) -> None:
    with ScriptedModel() as server:
        server.fail(faults.ServerError(503, "starting"))
        async with memory(tmp_path, server) as opened:
            for _ in range(4):
                await found(opened)
            assert len(server.requests) == 2, "after two failures the breaker is open"
            health = {part.name: part.status for part in (await opened.health()).components}
            assert health["reranker"] == "failing"


async def test_a_context_uses_the_order_too(tmp_path: Path) -> None:
    with ScriptedModel() as server:
        async with memory(tmp_path, server) as opened:
            await opened.user("ann").context(ASKED, budget=1000)
    assert [request.path for request in server.requests] == ["/v1/rerank"]
