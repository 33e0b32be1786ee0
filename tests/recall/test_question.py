from __future__ import annotations

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
from aforesaid.recall.candidates import Question, without
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
