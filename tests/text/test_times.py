"""Dates, times of day, moments from now and times that come back, in what people say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid.text.times.find import find_times
from aforesaid.text.times.hours import recurs

SAID = datetime(2026, 5, 6, 15, 0, tzinfo=UTC)
Direction = Literal["past", "future", "nearest"]


def found(text: str, towards: Direction = "future") -> list[str]:
    """Return moments as `2026-05-11 09:00`, and days as `2026-05-11+1`, with how many there are."""
    return [
        when.start.strftime("%Y-%m-%d %H:%M")
        if when.timed
        else f"{when.start.date().isoformat()}+{(when.end - when.start).days}"
        for when in find_times(text, SAID, towards)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dentist next Monday at 9am", "2026-05-11 09:00"),
        ("meeting on Friday at 3:30 pm", "2026-05-08 15:30"),
        ("the day after tomorrow", "2026-05-08+1"),
        ("tonight at 8pm", "2026-05-06 20:00"),
        ("on 2026-07-01 at 14:00", "2026-07-01 14:00"),
        ("by June 3, 2027", "2027-06-03+1"),
        ("this weekend", "2026-05-09+2"),
        ("next month", "2026-06-01+30"),
        ("in two weeks", "2026-05-18+7"),
        ("in June", "2026-06-01+30"),
        ("next Friday", "2026-05-15+1"),
        ("this Friday", "2026-05-08+1"),
        ("12am tomorrow", "2026-05-07 00:00"),
        ("tomorrow at noon", "2026-05-07 12:00"),
        ("Termin nächsten Montag um 9 Uhr", "2026-05-11 09:00"),
        ("morgen um 14:30", "2026-05-07 14:30"),
        ("am 3. Juli", "2026-07-03+1"),
        ("am 03.07.2026", "2026-07-03+1"),
        ("mañana a las 9 de la mañana tengo médico", "2026-05-07 09:00"),
        ("el lunes próximo", "2026-05-11+1"),
        ("el 5 de junio de 2026", "2026-06-05+1"),
        ("demain à 9h30", "2026-05-07 09:30"),
        ("le 14 juillet", "2026-07-14+1"),
        ("завтра в 9 утра", "2026-05-07 09:00"),
        ("в следующий понедельник", "2026-05-11+1"),
        ("через неделю", "2026-05-11+7"),
        ("she marries on 12 June next year in Porto", "2027-06-12+1"),
        ("June 12th, next year", "2027-06-12+1"),
        ("in March next year", "2027-03-01+31"),
        ("in March of last year", "2025-03-01+31"),
        ("am 12. Juni nächsten Jahres", "2027-06-12+1"),
        ("le 12 juin de l'année prochaine", "2027-06-12+1"),
        ("el 12 de junio del año que viene", "2027-06-12+1"),
        ("il 12 giugno dell'anno prossimo", "2027-06-12+1"),
        ("domani alle 15:30", "2026-05-07 15:30"),
        ("amanhã às 9 da manhã", "2026-05-07 09:00"),
        ("volgende week", "2026-05-11+7"),
        ("明天下午3点半开会", "2026-05-07 15:30"),
        ("下周一上午9点", "2026-05-11 09:00"),
        ("十月八号", "2026-10-08+1"),
        ("明日の午後3時に会議がある", "2026-05-07 15:00"),
        ("来週の月曜日に", "2026-05-11+1"),
    ],
)
def test_what_is_ahead(text: str, expected: str) -> None:
    assert found(text) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("yesterday", "2026-05-05+1"),
        ("we met on Monday", "2026-05-04+1"),
        ("last Friday", "2026-05-01+1"),
        ("last week", "2026-04-27+7"),
        ("3 days ago", "2026-05-03+1"),
        ("a year ago", "2025-01-01+365"),
        ("8 May 2023", "2023-05-08+1"),
        ("in December", "2025-12-01+31"),
        ("vor drei Wochen", "2026-04-13+7"),
        ("hace dos días", "2026-05-04+1"),
        ("il y a trois jours", "2026-05-03+1"),
        ("nous étions hier à Paris", "2026-05-05+1"),
        ("на прошлой неделе", "2026-04-27+7"),
        ("tre giorni fa", "2026-05-03+1"),
        ("há dois dias", "2026-05-04+1"),
        ("三天前", "2026-05-03+1"),
        ("去年", "2025-01-01+365"),
        ("先月", "2026-04-01+30"),
    ],
)
def test_what_is_behind(text: str, expected: str) -> None:
    assert found(text, "past") == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "I may go",
        "at 7",
        "05/08/2026",
        "guten Morgen",
        "wir waren hier",
        "they march on",
        "30 February 2026",
        "25:99",
        "13pm",
    ],
)
def test_what_can_be_read_in_two_ways_or_in_none_is_not_read(text: str) -> None:
    assert found(text) == []


def test_a_day_without_a_year_is_the_nearest_one() -> None:
    assert found("on March 3", "nearest") == ["2026-03-03+1"]
    assert found("on March 3", "future") == ["2027-03-03+1"]


def test_a_time_belongs_to_the_day_before_it() -> None:
    assert found("Monday at 8am and Tuesday at 5pm") == ["2026-05-11 08:00", "2026-05-12 17:00"]
    assert found("at 5pm on Tuesday") == ["2026-05-12 17:00"]


def test_days_are_those_of_the_time_zone_in_which_it_was_said() -> None:
    tokyo = timezone(timedelta(hours=9))
    (when,) = find_times("tomorrow", datetime(2026, 5, 7, 0, 30, tzinfo=tokyo))
    assert when.start == datetime(2026, 5, 8, tzinfo=tokyo)


PIECES = st.lists(
    st.sampled_from(
        [
            "next",
            "last",
            "monday",
            "9am",
            "may",
            "31",
            "2026",
            "9999-12-31",
            "0001-01-01",
            "in 999 years",
            "999 days ago",
        ]
        + [
            "tomorrow",
            "letzten",
            "monat",
            "上周",
            "三",
            "天前",
            "2月30日",
            "через",
            "недел",
            "at",
            "11:59 pm",
            "30. Februar",
        ]
    ),
    max_size=8,
).map(" ".join)


@given(
    st.one_of(st.text(max_size=60), PIECES), st.datetimes(timezones=st.just(UTC)), st.sampled_from(["past", "future"])
)
def test_no_text_and_no_moment_is_too_strange(text: str, said: datetime, towards: Direction) -> None:
    for when in find_times(text, said, towards):
        assert when.start <= when.end


NIGHT = datetime(2026, 5, 10, 23, 50, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("remind me in 20 minutes to stretch", 20),
        ("Please remind me to buy milk in 2 hours", 120),
        ("call me in an hour", 60),
        ("wake me in half an hour", 30),
        ("erinnere mich in zwei Stunden", 120),
        ("recuérdame en 15 minutos", 15),
        ("rappelle-moi dans 10 minutes", 10),
        ("напомни через 30 минут", 30),
        ("напомни через час", 60),
        ("2小时后提醒我", 120),
        ("十分钟后叫我", 10),
    ],
)
def test_a_distance_is_a_moment(text: str, minutes: int) -> None:
    (found,) = find_times(text, NIGHT, "future")
    assert (found.start, found.timed) == (NIGHT + timedelta(minutes=minutes), True)


@pytest.mark.parametrize("text", ["I ran for 20 minutes", "in minutes of the meeting it says", "the hours are long"])
def test_what_names_no_moment_is_left_alone(text: str) -> None:
    assert not [when for when in find_times(text, NIGHT, "future") if when.start != NIGHT and when.timed]


@pytest.mark.parametrize(
    "text",
    [
        "I go swimming every Tuesday at 6",
        "Choir is on Tuesdays",
        "Ich gehe jeden Dienstag schwimmen",
        "dienstags habe ich Chor",
        "los martes tengo clase",
        "Le mardi je nage",
        "Ogni martedì nuoto",
        "con Sorina studiamo la domenica mattina",
        "toda terça eu nado",
        "a carrinha está parada ao domingo",
        "elke dinsdag zwem ik",
        "по вторникам у меня хор",
        "co wtorek mam chór",
        "her salı yüzüyorum",
        "每周二游泳",
        "毎週火曜日に泳ぎます",
        "매주 화요일에 수영해요",
        "हर मंगलवार",
    ],
)
def test_a_time_that_comes_back_is_recognised_in_many_languages(text: str) -> None:
    assert recurs(text)


@pytest.mark.parametrize(
    "text",
    [
        "I start on Tuesday",
        "Everything ends on 3 May",
        "Le mardi 3 mars je pars",
        "Er kommt am Freitag",
        "venho no domingo",
        "она приехала во вторник",
        "her birthday is on 3 May",
    ],
)
def test_a_single_day_does_not_come_back(text: str) -> None:
    assert not recurs(text)
