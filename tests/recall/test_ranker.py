"""The ranker in searches through the public API, and what candidates gain from their messages and sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

import aforesaid
from aforesaid.models.embed import LocalEmbedder, TokenVectors
from aforesaid.models.embed.token_vectors import DIMENSIONS, NAME, load_ranker
from aforesaid.recall.candidates import Candidates, Question, candidates_of, neighbours
from aforesaid.recall.features import session_dense
from aforesaid.recall.queue import Background
from aforesaid.recall.ranker import MOST, _compare
from aforesaid.store.columns import Columns, Roll
from aforesaid.store.ranking import TextMatches
from aforesaid.store.searches import TokenVectors as TokenVectorsQuestion

NOON = datetime(2026, 5, 10, 12, 0, tzinfo=UTC)
SAID = (
    "Did you see the rain last night?",
    "Yes, and the gutter came down.",
    "I start at the bakery on Monday.",
    "The cat sleeps all day.",
    "We had soup again.",
)


class Shared(LocalEmbedder):
    """The real embedder, loaded once for all tests."""

    async def close(self) -> None:
        """Stay."""


USE, PLAIN = Shared(), Shared(ranker=False)


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[aforesaid.Memory]:
    async with aforesaid.connect(tmp_path / "memory.db", embedder=USE, settings={"background": False}) as opened:
        yield opened


async def say(memory: aforesaid.Memory, texts: Sequence[str], name: str = "ann") -> None:
    for number, text in enumerate(texts):
        await memory.user(name).add("user", text, at=NOON + timedelta(minutes=number))


async def stored(memory: aforesaid.Memory, count: int) -> dict[int, bytes]:
    scope = memory.user("ann").scope
    return await memory.store.read(TokenVectorsQuestion(scope, NAME, range(1, count + 1)))


async def ranked(memory: aforesaid.Memory) -> list[float]:
    asked = "What did she say about rain, the gutter, the bakery, her cat and soup?"
    hits = await memory.user("ann").search(asked, kinds=("message",), min_score=0)
    return [dict(hit.parts)["ranker"] for hit in hits]


async def test_upkeep_makes_token_vectors_and_search_uses_them(memory: aforesaid.Memory) -> None:
    await say(memory, SAID)
    await memory.upkeep()
    assert len(await stored(memory, len(SAID))) == len(SAID)
    hits = await memory.user("ann").search("Where does she work?", kinds=("message",), min_score=0)
    assert hits[0].text == SAID[2]
    assert dict(hits[0].parts)["ranker"] > 0
    assert "word by word" in hits[0].explain()


async def test_what_upkeep_has_not_reached_is_encoded_during_the_search(memory: aforesaid.Memory) -> None:
    await say(memory, SAID)
    assert any(await ranked(memory))
    assert await stored(memory, len(SAID)) == {}


async def test_the_ranker_waits_while_many_messages_have_no_token_vectors(memory: aforesaid.Memory) -> None:
    await say(memory, [f"She said number {number} about work." for number in range(20)])
    assert not any(await ranked(memory))
    await memory.upkeep()
    assert any(await ranked(memory))


async def test_of_many_hits_only_the_first_are_compared_word_by_word(memory: aforesaid.Memory) -> None:
    """A context of 8,000 tokens shows more than 200 messages. The others keep their order, behind the compared ones."""
    await say(memory, [f"She said number {number} about {number % 7} days of work." for number in range(MOST + 40)])
    await memory.upkeep()
    ann, asked = memory.user("ann"), "Where does she work?"
    few = await ann.search(asked, limit=10, kinds=("message",), min_score=0)
    many = await ann.search(asked, limit=MOST + 40, kinds=("message",), min_score=0)
    ranked = [dict(hit.parts)["ranker"] for hit in many]
    assert len(many) == MOST + 40
    assert ranked.count(min(ranked)) >= 40
    assert len(set(ranked)) > 20
    assert {hit.text for hit in few} <= {hit.text for hit in many[:20]}


def test_among_five_candidates_the_ranker_counts_half() -> None:
    """Their products with the only token of the question are 0.03 to 0.25, of whose difference half is left.

    All are in the middle of a level, and so are stored exactly.
    """
    token, one = np.eye(1, DIMENSIONS, dtype=np.float32), np.ones(1, dtype=np.float32)
    columns = messages([1] * 5)
    vectors = {seq: TokenVectors(token * np.float32((2 * seq - 1) * 0.45 / 16), one).packed() for seq in range(1, 6)}
    matches, asked = TextMatches(columns, (), average_length=3.0), Question.of("Where?", NOON)
    candidates = candidates_of(asked, matches, np.arange(5), np.zeros(6), np.zeros(6), Background())
    only_own_tokens = load_ranker()._replace(beside=np.zeros(2, dtype=np.float32), scale=1.0, length=0.0)
    scores = _compare(only_own_tokens, TokenVectors(token, one), candidates, vectors)
    assert scores.max() - scores.min() == pytest.approx(0.45 / 4)


async def test_messages_embedded_without_the_ranker_catch_up(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db", embedder=PLAIN, settings={"background": False}) as memory:
        await say(memory, SAID)
        await memory.upkeep()
        assert await stored(memory, len(SAID)) == {}
        assert not any(await ranked(memory))
    async with aforesaid.connect(tmp_path / "memory.db", embedder=USE, settings={"background": False}) as memory:
        await say(memory, ["And then it was June."])
        await memory.upkeep()
        assert len(await stored(memory, len(SAID) + 1)) == len(SAID) + 1


async def test_a_message_is_encoded_once_for_both_kinds_of_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[str] = []
    original = USE._encode

    def counting(texts: list[str], *, read: bool = False) -> object:
        encoded.extend(texts)
        return original(texts, read=read)

    monkeypatch.setattr(USE, "_encode", counting)
    new = [f"{text} Really." for text in SAID]
    profile, settings = {"extract": False}, {"background": False}
    async with aforesaid.connect(tmp_path / "memory.db", profile=profile, embedder=USE, settings=settings) as memory:
        await say(memory, new)
        await memory.upkeep()
        assert len(await stored(memory, len(new))) == len(new)
    assert sorted(encoded) == sorted(new)


async def test_the_ranker_can_be_switched_off(tmp_path: Path) -> None:
    settings = {"ranker": False, "background": False}
    async with aforesaid.connect(tmp_path / "memory.db", embedder="local", settings=settings) as memory:
        await say(memory, SAID)
        await memory.upkeep()
        assert await stored(memory, len(SAID)) == {}
        assert not any(await ranked(memory))


async def test_a_failing_ranker_costs_no_hit(memory: aforesaid.Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(texts: Sequence[str]) -> list[TokenVectors]:
        raise aforesaid.errors.ModelError(f"cannot encode {len(texts)} texts")

    await say(memory, SAID)
    await memory.upkeep()
    monkeypatch.setattr(USE, "tokens", broken)
    assert len(await ranked(memory)) == len(SAID)
    assert not any(await ranked(memory))


NOBODY = 5
"""Where a row points that has no neighbour: behind the last of five."""


def messages(sessions: Sequence[int]) -> Columns:
    """Return one message for each of these sessions."""
    at, same = np.arange(len(sessions)), np.ones(len(sessions), dtype=np.int64)
    roll = Roll()
    roll.extend(at + 1, at, same, same < 1, 3 * same, sessions=sessions, speakers=["Ann"] * len(sessions))
    return roll.columns()


def compared(columns: Columns, dense: Sequence[float]) -> Candidates:
    """Return all messages as candidates that are near in meaning, or not compared where the number is zero."""
    count = len(columns)
    matches = TextMatches(columns, (), average_length=3.0)
    nearness = np.array([*dense, 0.0])
    question = Question.of("Where is it?", NOON)
    return candidates_of(question, matches, np.arange(count), np.zeros(count + 1), nearness, Background())


def test_a_message_has_neighbours_in_its_own_session_only() -> None:
    columns = messages([1, 1, 2, 2, 2])
    before, after = neighbours(columns, np.arange(5))
    assert before.tolist() == [NOBODY, 0, NOBODY, 2, 3]
    assert after.tolist() == [1, NOBODY, 3, 4, NOBODY]


def test_a_single_message_has_no_neighbours() -> None:
    before, after = neighbours(messages([1]), np.arange(1))
    assert (before.tolist(), after.tolist()) == ([1], [1])


def test_the_newest_message_lifts_its_session_too() -> None:
    candidates = compared(messages([1, 1, 2, 2]), [0.5, 0.0, 1.0, 3.0])
    # Half, because there are only two sessions.
    assert session_dense(candidates).tolist() == [0.25, 0.25, 1.5, 1.5]
