"""Two memories are one when they mean the same, whatever cosines the embedder gives to unrelated texts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import numpy as np
import pytest

from aforesaid.errors import ModelError
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
