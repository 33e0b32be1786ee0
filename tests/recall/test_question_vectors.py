"""Questions get no vector at once from an embedder that callers gave up waiting for, until it answers again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from aforesaid.models.embed import DeterministicEmbedder, Vectors
from aforesaid.recall import candidates
from aforesaid.recall.candidates import QuestionVectors
from aforesaid.settings import Resilience
from aforesaid.telemetry import OWN, SEARCH_VECTOR, Key, Metrics


class HangingEmbedder(DeterministicEmbedder):
    """An embedder that answers only while `works` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.works = asyncio.Event()
        self.calls = 0

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.calls += 1
        await self.works.wait()
        return await super().embed(texts)


async def give_up(questions: QuestionVectors) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await questions.embed("Where do I live?")


@pytest.mark.req("G14")
async def test_after_two_callers_gave_up_nobody_waits_for_the_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "LEAST_WAIT_SECONDS", 0.01)
    embedder, metrics = HangingEmbedder(), Metrics()
    questions = QuestionVectors(embedder, metrics)
    for _ in range(2):
        await give_up(questions)
    for _ in range(3):
        assert await questions.embed("Where do I live?") is None
    assert embedder.calls == 2
    counted = metrics.snapshot()[Key(SEARCH_VECTOR, OWN)]
    assert (counted.calls, dict(counted.failures)) == (5, {"timeout": 2, "unavailable": 3})


@pytest.mark.req("G14")
async def test_an_embedder_that_answers_again_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "LEAST_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(candidates, "_BREAKER", Resilience(failures=2, probe_seconds=0.0))
    embedder = HangingEmbedder()
    questions = QuestionVectors(embedder)
    for _ in range(2):
        await give_up(questions)
    embedder.works.set()
    assert await questions.embed("Where do I live?") is None, "it is tried in the background first"
    assert questions._probe is not None
    await questions._probe
    assert await questions.embed("Where do I live?") is not None


@pytest.mark.req("G14")
async def test_a_question_that_only_tries_the_embedder_again_counts_as_one_without_a_vector(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(candidates, "LEAST_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(candidates, "_BREAKER", Resilience(failures=2, probe_seconds=0.0))
    embedder, metrics = HangingEmbedder(), Metrics()
    questions = QuestionVectors(embedder, metrics)
    for _ in range(2):
        await give_up(questions)
    embedder.works.set()
    assert await questions.embed("Where do I live?") is None
    assert questions._probe is not None
    await questions._probe
    counted = metrics.snapshot()[Key(SEARCH_VECTOR, OWN)]
    assert dict(counted.failures) == {"timeout": 2, "unavailable": 1}


@pytest.mark.req("G14")
async def test_a_quick_answer_between_two_callers_who_gave_up_keeps_the_embedder_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [1_000.0]
    monkeypatch.setattr(candidates, "perf_counter", lambda: clock[0])
    embedder = HangingEmbedder()
    questions = QuestionVectors(embedder)
    for calls in (1, 3):
        embedder.works.clear()
        waiting = asyncio.ensure_future(questions.embed("Where do I live?"))
        while embedder.calls < calls:
            await asyncio.sleep(0)
        clock[0] += 2
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        embedder.works.set()
        assert await questions.embed("Where do I live?") is not None


async def test_a_search_that_is_cancelled_soon_says_nothing_about_the_embedder() -> None:
    embedder = HangingEmbedder()
    questions = QuestionVectors(embedder)
    for _ in range(3):
        await give_up(questions)
    embedder.works.set()
    assert await questions.embed("Where do I live?") is not None


async def test_a_patient_caller_gets_the_vector_of_a_slow_embedder() -> None:
    embedder = HangingEmbedder()
    questions = QuestionVectors(embedder)
    waiting = [asyncio.ensure_future(questions.embed(f"Question {number}?")) for number in range(5)]
    while embedder.calls < len(waiting):
        await asyncio.sleep(0)
    embedder.works.set()
    assert all(vector is not None for vector in await asyncio.gather(*waiting))
