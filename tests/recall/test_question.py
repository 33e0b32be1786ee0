from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from aforesaid.recall.question import Question, without

ASKED = datetime(2026, 5, 13, 15, 0, tzinfo=UTC)


@given(st.text(), st.datetimes(timezones=st.just(UTC)))
def test_no_question_makes_it_fail(text: str, asked: datetime) -> None:
    Question.of(text, asked)


def test_names_are_dropped_from_what_is_embedded() -> None:
    question = Question.of("What did Caroline's brother tell Caroline?", ASKED)
    assert without(question.text, frozenset({"caroline"})) == "What did brother tell"
    assert without("Caroline", frozenset({"caroline"})) == "Caroline"
    assert Question.of("When did it rain?", ASKED).asks_when
