from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid.recall.periods import periods
from aforesaid.recall.question import Question, without
from aforesaid.store.terms import fold

ASKED = datetime(2026, 5, 13, 15, 0, tzinfo=UTC)  # a Wednesday


@pytest.mark.parametrize(
    ("question", "inside", "outside"),
    [
        ("What did I say on 8 May 2023?", datetime(2023, 5, 8, 10, tzinfo=UTC), datetime(2023, 5, 20, tzinfo=UTC)),
        ("What happened on May 8th, 2023?", datetime(2023, 5, 8, 23, tzinfo=UTC), datetime(2022, 5, 8, tzinfo=UTC)),
        ("Where was I in March?", datetime(2026, 3, 31, tzinfo=UTC), datetime(2026, 5, 13, tzinfo=UTC)),
        ("Where was I in December?", datetime(2025, 12, 5, tzinfo=UTC), datetime(2026, 5, 1, tzinfo=UTC)),
        ("what about 2024-02?", datetime(2024, 2, 10, tzinfo=UTC), datetime(2024, 6, 1, tzinfo=UTC)),
        ("what was in 2024?", datetime(2024, 7, 1, tzinfo=UTC), datetime(2022, 1, 1, tzinfo=UTC)),
        ("who called yesterday?", datetime(2026, 5, 12, 8, tzinfo=UTC), datetime(2026, 5, 9, tzinfo=UTC)),
        ("what did we plan two weeks ago?", datetime(2026, 4, 28, tzinfo=UTC), datetime(2026, 5, 13, tzinfo=UTC)),
        ("and last monday?", datetime(2026, 5, 11, 9, tzinfo=UTC), datetime(2026, 5, 13, 9, tzinfo=UTC)),
        ("Was habe ich gestern gesagt?", datetime(2026, 5, 12, 8, tzinfo=UTC), datetime(2026, 5, 9, tzinfo=UTC)),
        ("¿Qué pasó en marzo de 2025?", datetime(2025, 3, 9, tzinfo=UTC), datetime(2025, 6, 9, tzinfo=UTC)),
        ("Что было вчера?", datetime(2026, 5, 12, 8, tzinfo=UTC), datetime(2026, 5, 9, tzinfo=UTC)),
        ("2025年3月发生了什么", datetime(2025, 3, 9, tzinfo=UTC), datetime(2025, 6, 9, tzinfo=UTC)),
    ],
)
def test_periods_are_read_relative_to_when_the_question_is_asked(
    question: str, inside: datetime, outside: datetime
) -> None:
    found = periods(fold(question), ASKED)
    assert any(period.start <= inside < period.end for period in found)
    assert not any(period.start <= outside < period.end for period in found)


@pytest.mark.parametrize("question", ["Who is Mayra?", "What may I eat?", "Which marching band?", "room 101", ""])
def test_what_is_no_date_is_mostly_left_alone(question: str) -> None:
    found = periods(fold(question), ASKED)
    assert found == [] or "may" in question


@given(st.text(), st.datetimes(timezones=st.just(UTC)))
def test_no_text_makes_it_fail(text: str, asked: datetime) -> None:
    Question.of(text, asked)


def test_names_are_dropped_from_what_is_embedded() -> None:
    question = Question.of("What did Caroline's brother tell Caroline?", ASKED)
    assert without(question.text, frozenset({"caroline"})) == "What did brother tell"
    assert without("Caroline", frozenset({"caroline"})) == "Caroline"
    assert Question.of("When did it rain?", ASKED).asks_when
