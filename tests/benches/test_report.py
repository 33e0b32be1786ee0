"""How the hits of a question are compared with its labels."""

from __future__ import annotations

from datetime import UTC, datetime

from evaluation.conversation import Conversation, Question, Turn
from evaluation.report import mark

AT = datetime(2026, 1, 1, tzinfo=UTC)
TURNS = tuple(
    Turn(name, session, "user", "Ann", text, AT)
    for name, session, text in [
        ("1", "a", "Yes."),
        ("2", "b", "Yes!"),
        ("3", "b", "The roof leaks."),
        ("4", "c", "No."),
    ]
)


def asked(*evidence: str) -> tuple[Conversation, Question]:
    sessions = tuple({turn.session for turn in TURNS if turn.id in evidence})
    question = Question("Does it leak?", "single", AT, evidence, sessions)
    return Conversation("roof", TURNS, (question,)), question


def test_a_hit_finds_evidence_with_the_same_words_as_the_turn_it_shows() -> None:
    conversation, question = asked("2")
    result = mark(question, [("1", "2"), ("3",)], conversation, 1.0)
    assert result.by_turn is not None
    assert result.by_turn.recall_at_1 == 1
    assert result.by_session is not None
    assert result.by_session.recall_at_3 == 1


def test_turns_with_the_same_words_take_one_place_in_the_ranking() -> None:
    conversation, question = asked("3")
    result = mark(question, [("1", "2"), ("4",), ("3",)], conversation, 1.0)
    assert result.by_turn is not None
    assert (result.by_turn.recall_at_1, result.by_turn.recall_at_3) == (0, 1)


def test_evidence_that_was_said_twice_counts_once() -> None:
    conversation, question = asked("1", "2", "4")
    result = mark(question, [("2", "1"), ("3",)], conversation, 1.0)
    assert result.by_turn is not None
    assert result.by_turn.recall_at_1 == 0.5
