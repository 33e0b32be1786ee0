"""Two memories are one when they mean the same, whatever cosines the embedder gives to unrelated texts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid.domain.memory import MemoryRecord
from aforesaid.errors import ModelError
from aforesaid.facts.reconcile import KnownMemories
from aforesaid.facts.statement import says_the_same
from aforesaid.models.embed import DeterministicEmbedder, Embedder, LocalEmbedder, Vectors
from facts.talking import THURSDAY, connect, extraction, model, say

ONE = LocalEmbedder()


class SharedEmbedder:
    """The shipped embedder, which stays open for all tests: loading it takes a while."""

    name = ONE.name

    async def embed(self, texts: Sequence[str]) -> Vectors:
        return await ONE.embed(texts)

    async def close(self) -> None:
        pass


class HighCosines(SharedEmbedder):
    """The shipped embedder with one more dimension that all texts share: unrelated texts have a cosine of 0.72."""

    name = "high-cosines"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = await ONE.embed(texts)
        shared = np.full((len(vectors), 1), np.sqrt(0.7), dtype=np.float32)
        return np.hstack([vectors * np.float32(np.sqrt(0.3)), shared])


EMBEDDERS = pytest.mark.parametrize("embedder", [SharedEmbedder(), HighCosines()], ids=["shipped", "high cosines"])


@pytest.mark.defect("B1")
@EMBEDDERS
async def test_two_similar_facts_stay_two_memories(embedder: Embedder) -> None:
    assert await learned(embedder, "Ann plays the violin.", "Ann plays the cello.") == {
        "Ann plays the violin.": 1,
        "Ann plays the cello.": 1,
    }


@EMBEDDERS
async def test_one_fact_in_other_words_stays_one_memory(embedder: Embedder) -> None:
    assert await learned(embedder, "Ann is afraid of heights.", "Ann has a fear of heights.") == {
        "Ann is afraid of heights.": 2
    }


async def test_while_the_embedder_does_not_answer_repetitions_are_recognised_by_their_words() -> None:
    class Down(DeterministicEmbedder):
        async def embed(self, texts: Sequence[str]) -> Vectors:
            raise ModelError(f"no answer for {len(texts)} texts")

    assert await learned(Down(), "Ann plays the violin.", "Ann plays the violin.") == {"Ann plays the violin.": 2}


async def learned(embedder: Embedder, *facts: str) -> dict[str, int]:
    """Return the memories, and how often each was said, after one fact a day."""
    scripted = model({"extract": [extraction({"text": fact}) for fact in facts]})
    async with scripted, connect(scripted=scripted, embedder=embedder) as memory:
        user = memory.user("ann")
        for day, fact in enumerate(facts):
            await say(user, fact, reply="I see.", name="Ann", at=THURSDAY + timedelta(days=day))
            await memory.upkeep()
        return {each.text: each.times for each in await user.memories()}


WORDS = ("Ann", "Bob", "likes", "hates", "not", "green", "black", "tea", "7", "8", "home", "lives", "in", "Rome")
SENTENCES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
NOON = datetime(2026, 5, 8, 12, tzinfo=UTC)


def memory(number: int, text: str, subject: str | None = None) -> MemoryRecord:
    return MemoryRecord(
        number, "", "ann", "fact", text, 5, (), (number,), NOON, True, "active", 3, "ann", subject, None, None, None,
        None, NOON, None, None, "rules", "said", "", 1, NOON, 1,
    )  # fmt: skip


@given(st.lists(SENTENCES, max_size=12), SENTENCES)
def test_every_memory_that_says_the_same_is_found_in_the_order_given(texts: list[str], text: str) -> None:
    known = [memory(number, each) for number, each in enumerate(texts, 1)]
    found = KnownMemories(known, ["Ann"]).maybe_same(text)
    same = [each for each in known if says_the_same(text, each.text, ["Ann"])]
    assert [each for each in found if each in same] == same
    assert found == sorted(found, key=lambda each: each.id)


def test_a_statement_is_not_compared_with_memories_about_something_else() -> None:
    known = [memory(1, "Ann plays the violin."), memory(2, "Ann drinks green tea every day.")]
    assert KnownMemories(known, ["Ann"]).maybe_same("Ann drinks green tea every morning.") == [known[1]]


def test_memories_that_mean_nearly_the_same_are_found_by_their_ids() -> None:
    known = [memory(1, "Ann is afraid of heights."), memory(2, "Ann likes tea.")]
    assert KnownMemories(known, ["Ann"]).maybe_same("Ann gets dizzy on ladders.", near=[1, 9]) == [known[0]]


def test_what_may_be_outdated_is_found_by_subject_message_and_id() -> None:
    known = [memory(1, "one", "home"), memory(2, "two"), memory(3, "three"), memory(4, "four")]
    index = KnownMemories(known, ["Ann"])
    assert index.maybe_outdated("home", 3, 2) == known[:3]
    assert index.maybe_outdated(None, None, None) == []
