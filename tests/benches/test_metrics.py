"""The figures, the LIKE search that they are compared with, and how hits are compared with labels."""

from __future__ import annotations

from dataclasses import astuple
from datetime import UTC, datetime, timedelta
from math import log2

import pytest
from evaluation import metrics
from evaluation.conversation import Conversation, Question, Turn
from evaluation.like_baseline import keywords, like
from evaluation.report import mark
from hypothesis import given
from hypothesis import strategies as st

RANKING = ["d", "a", "x", "b", "y", "z", "c"]
RELEVANT = ("a", "b", "c", "never found")

rankings = st.lists(st.sampled_from("abcdefghij"), unique=True)
labels = st.sets(st.sampled_from("abcdefghij"), min_size=1)


def test_recall_is_the_share_of_what_is_relevant() -> None:
    assert [metrics.recall_at(k, RANKING, RELEVANT) for k in (1, 2, 3, 4, 7, 20)] == [0, 0.25, 0.25, 0.5, 0.75, 0.75]


def test_any_and_all() -> None:
    assert (metrics.any_at(1, RANKING, RELEVANT), metrics.any_at(2, RANKING, RELEVANT)) == (0, 1)
    assert (metrics.all_at(3, RANKING, ("a", "b")), metrics.all_at(4, RANKING, ("a", "b"))) == (0, 1)


def test_the_reciprocal_rank_is_that_of_the_first_relevant_item() -> None:
    assert metrics.reciprocal_rank(RANKING, RELEVANT) == 1 / 2
    assert metrics.reciprocal_rank(RANKING, ("b",)) == 1 / 4
    assert metrics.reciprocal_rank(RANKING, ("nothing",)) == 0


def test_ndcg_discounts_by_rank_and_compares_with_the_best_ranking() -> None:
    gain = 1 / log2(3) + 1 / log2(5)
    best = 1 / log2(2) + 1 / log2(3) + 1 / log2(4) + 1 / log2(5)
    assert metrics.ndcg_at(5, RANKING, RELEVANT) == pytest.approx(gain / best)
    assert metrics.ndcg_at(2, ["a", "b", "c"], ("a", "b", "c")) == 1


def test_a_session_is_ranked_as_its_best_turn() -> None:
    sessions = {"a": "monday", "b": "sunday", "c": "monday", "d": "friday"}
    assert metrics.by_session(["c", "b", "a", "d"], sessions) == ["monday", "sunday", "friday"]


def test_percentiles_are_values_that_were_measured() -> None:
    assert metrics.percentile(0.50, [4, 1, 3, 2]) == 2
    assert metrics.percentile(0.95, range(1, 101)) == 95
    assert metrics.percentile(0.95, [7]) == 7
    assert metrics.percentile(0.95, []) is None


def test_averages_count_every_question_the_same() -> None:
    one = metrics.score(["a"], ("a",))
    none = metrics.score(["x"], ("a",))
    average = metrics.average([one, none, none, one])
    assert average is not None
    assert set(astuple(average)) == {0.5}
    assert metrics.average([]) is None


@given(rankings, labels)
def test_every_figure_lies_between_nothing_and_all(ranking: list[str], relevant: set[str]) -> None:
    assert all(0 <= figure <= 1 for figure in astuple(metrics.score(ranking, relevant)))


@given(rankings, labels, st.integers(1, 12))
def test_looking_deeper_never_lowers_recall(ranking: list[str], relevant: set[str], k: int) -> None:
    assert metrics.recall_at(k, ranking, relevant) <= metrics.recall_at(k + 1, ranking, relevant)
    assert metrics.all_at(k, ranking, relevant) <= metrics.recall_at(k, ranking, relevant)
    assert metrics.recall_at(k, ranking, relevant) <= metrics.any_at(k, ranking, relevant)


@given(rankings, labels)
def test_the_best_ranking_is_perfect(ranking: list[str], relevant: set[str]) -> None:
    best = sorted(relevant) + [item for item in ranking if item not in relevant]
    figures = metrics.score(best, relevant)
    assert (figures.recall_at_10, figures.mrr, figures.ndcg_at_10) == (1, 1, 1)


def test_separation_is_the_area_under_the_curve() -> None:
    assert metrics.separation([3, 4], [1, 2]) == 1
    assert metrics.separation([1, 2], [3, 4]) == 0
    assert metrics.separation([1, 3], [2]) == 0.5
    assert metrics.separation([2], [2]) == 0.5
    assert metrics.separation([], [1]) is metrics.separation([1], []) is None


START = datetime(2026, 3, 1, tzinfo=UTC)


def turns(*texts: str) -> list[Turn]:
    return [
        Turn(str(number), "s", "user", None, text, START + timedelta(minutes=number))
        for number, text in enumerate(texts)
    ]


def test_stop_words_are_dropped_and_each_word_counts_once() -> None:
    assert keywords("What was THE name of the red, red boat?") == ["name", "red", "boat"]


def test_more_words_win_then_the_more_recent_turn() -> None:
    said = turns("a red boat", "the boathouse", "nothing", "my old BOAT")
    assert like("red boat?", said, 10) == ["0", "3", "1"]
    assert like("red boat?", said, 1) == ["0"]


def test_time_decides_what_is_recent_and_not_the_order_of_storing() -> None:
    said = list(reversed(turns("boat one", "boat two")))
    assert like("boat", said, 10) == ["1", "0"]


def test_words_are_not_found_in_writing_without_spaces() -> None:
    assert like("我的猫叫什么名字？", turns("我的猫叫小雪。"), 10) == []


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
