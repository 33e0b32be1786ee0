"""Periods that questions name."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid.text.times.find import periods

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
    found = periods(question, ASKED)
    assert any(period.start <= inside < period.end for period in found)
    assert not any(period.start <= outside < period.end for period in found)


def day(year: int, month: int, number: int) -> datetime:
    return datetime(year, month, number, 12, tzinfo=UTC)


@pytest.mark.defect("K6")
@pytest.mark.parametrize(
    "question",
    [
        "What may Audrey cook?",
        "Did we march to the town hall?",
        "A march for peace",
        "Is there life on Mars?",
        "Quelle planète est Mars ?",
        "What does Marco eat?",
        "Marco ha comprato un cane?",
        "O Marco comprou um cachorro?",
        "Wat eet Mei?",
        "Hat Mai angerufen?",
        "¿Qué dijo Julio?",
        "¿Qué come la hermana de Julio?",
        "When did I fly to Rio de Janeiro?",
        "Quando fui ao Rio de Janeiro?",
        "Wer ist hier?",
        "What did June say to April?",
        "Who is Mayra?",
        "Which marching band?",
        "room 101",
        "",
    ],
)
def test_a_word_that_only_looks_like_a_date_is_no_period(question: str) -> None:
    assert periods(question, ASKED) == []


@pytest.mark.defect("K6")
@pytest.mark.parametrize(
    ("question", "inside"),
    [
        ("What did I say on 7 Jan 2024?", day(2024, 1, 7)),
        ("What did I say on Jan. 7?", day(2026, 1, 7)),
        ("Was war am 10.01.2024?", day(2024, 1, 10)),
        ("What happened last weekend?", day(2026, 5, 9)),
        ("What did we do this week?", day(2026, 5, 11)),
        ("What did I promise on Monday?", day(2026, 5, 11)),
        ("What did we eat in May?", day(2026, 5, 3)),
        ("What was planned for the end of March?", day(2026, 3, 30)),
        ("¿Dónde estuve en julio?", day(2025, 7, 3)),
        ("Où étais-je en mars ?", day(2026, 3, 3)),
        ("Qu'est-ce que j'ai mangé hier ?", day(2026, 5, 12)),
        ("Onde estive em janeiro?", day(2026, 1, 20)),
        ("ماذا قلت أمس؟", day(2026, 5, 12)),
    ],
)
def test_the_usual_forms_of_dates_are_read(question: str, inside: datetime) -> None:
    assert any(period.start <= inside < period.end for period in periods(question, ASKED))


@pytest.mark.defect("K6")
def test_a_date_with_slashes_has_its_day_first_and_in_english_either_way() -> None:
    assert [period.start.date() for period in periods("Was war am 01/07/2024?", ASKED)] == [date(2024, 7, 1)]
    both = {period.start.date() for period in periods("What was on 01/07/2024?", ASKED)}
    assert both == {date(2024, 7, 1), date(2024, 1, 7)}
    assert [period.start.date() for period in periods("What was on 12/25/2024?", ASKED)] == [date(2024, 12, 25)]


@given(st.text(), st.datetimes(timezones=st.just(UTC)))
def test_no_text_makes_it_fail(text: str, asked: datetime) -> None:
    periods(text, asked)
