"""What is read from a question, and its vector: none at once from an embedder that answers too late."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import aforesaid
from aforesaid.models.embed import DeterministicEmbedder, Vectors
from aforesaid.models.embed.caching import MOST_CHARACTERS
from aforesaid.recall import candidates
from aforesaid.recall.candidates import Question, QuestionVectors, without
from aforesaid.settings import Resilience
from aforesaid.telemetry import OWN, SEARCH_VECTOR, Key, Metrics
from aforesaid.text.languages import MOST_TERMS, query_words

ASKED = datetime(2026, 5, 13, 15, 0, tzinfo=UTC)


@given(st.text(), st.datetimes(timezones=st.just(UTC)))
def test_no_question_makes_it_fail(text: str, asked: datetime) -> None:
    Question.of(text, asked)


def test_names_are_dropped_from_what_is_embedded() -> None:
    question = Question.of("What did Caroline's brother tell Caroline?", ASKED)
    assert without(question.text, frozenset({"caroline"})) == "What did brother tell"
    assert without("Caroline", frozenset({"caroline"})) == "Caroline"
    assert Question.of("When did it rain?", ASKED).asks_when


class CountingEmbedder(DeterministicEmbedder):
    """Counts the characters that are embedded."""

    characters = 0

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.characters += sum(map(len, texts))
        return await super().embed(texts)


@pytest.mark.defect("S11")
@pytest.mark.parametrize("letters", ["abcdefgh ", "春夏秋冬山川草木"])
async def test_a_query_of_a_page_costs_no_more_than_a_message(tmp_path: Path, letters: str) -> None:
    picked = Random(1)
    page = "".join(picked.choices(letters, k=9_900)) + " Where is the boat?"
    embedder = CountingEmbedder()
    async with aforesaid.connect(tmp_path / "memory.db", embedder=embedder, profile={"extract": False}) as memory:
        ann = memory.user("ann")
        await ann.add("user", "The boat is in the harbour.")
        await memory.upkeep()
        embedder.characters = 0
        hits = await ann.search(page, min_score=0)
        assert [hit.text for hit in hits] == ["The boat is in the harbour."]
        assert embedder.characters <= 2 * (MOST_CHARACTERS + 1)
        assert len(query_words(page)) <= MOST_TERMS


@pytest.mark.defect("S11")
def test_dates_are_looked_for_at_both_ends_of_a_long_question() -> None:
    middle = "on 3 March 2025 " * 600
    question = Question.of(f"What did I buy on 7 April 2024? {middle} And on 9 June 2023?", ASKED)
    assert len(question.periods) < MOST_CHARACTERS / len("on 3 March 2025 ") + 2
    assert {period.start.year for period in question.periods} >= {2023, 2024}


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
