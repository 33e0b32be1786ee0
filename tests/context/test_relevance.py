"""Which memories a question is about, and how much."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from aforesaid.context.builder import TermCache, found_memories
from aforesaid.domain.memory import MemoryRecord

NOON = datetime(2026, 5, 8, 12, tzinfo=UTC)


def memory(number: int, text: str, importance: int = 5) -> MemoryRecord:
    return MemoryRecord(
        number, "", "ann", "fact", text, importance, (), (number,), NOON, True, "active", 3, "ann", None, None, None,
        None, None, NOON, None, None, "rules", "said", "", 1, NOON, 1,
    )  # fmt: skip


def found(question: str, *known: MemoryRecord) -> list[tuple[int, float]]:
    return [(each.id, relevance) for each, relevance in found_memories(known, question, (), TermCache(100))]


def test_the_memory_with_most_of_the_words_comes_first_and_one_with_all_is_wholly_relevant() -> None:
    home, chess = memory(1, "Ann lives in Berlin."), memory(2, "Ann plays chess in Berlin.")
    assert [number for number, _ in found("Who plays chess in Berlin?", home, chess)] == [2, 1]
    relevance = dict(found("Who plays chess in Berlin?", home, chess))
    assert relevance[2] == pytest.approx(1.0)
    assert 0 < relevance[1] < 0.5


def test_of_equally_relevant_memories_the_more_important_one_comes_first() -> None:
    usual, important = memory(1, "Ann likes tea."), memory(2, "Ann is allergic to tea.", 9)
    assert [number for number, _ in found("Is there tea?", usual, important)] == [2, 1]


def test_a_question_without_a_word_of_its_own_is_about_nothing() -> None:
    assert found("Who is it?", memory(1, "Ann is at home.")) == []
