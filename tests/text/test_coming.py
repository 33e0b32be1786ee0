"""What is still to come is told by its verbs."""

from __future__ import annotations

import pytest

from aforesaid.text.times.coming import direction_of, lies_ahead


@pytest.mark.parametrize(
    "text",
    [
        "My sister is getting married in September.",
        "My brother Tom gets married on 5 December.",
        "Tom and Anna get married on 12 June.",
        "My boss gets promoted on 1 March.",
        "The old station is being reopened on 1 March.",
        "Meine Schwester heiratet am 12. Juni.",
        "Ma sœur se marie le 12 juin.",
        "Mi hermana se casa el 12 de junio.",
        "Mia sorella si sposa il 12 giugno.",
        "Mijn zus trouwt op 12 juni.",
        "Моя сестра выходит замуж 12 июня.",
        "We’re moving to York in March.",
        "I’ll start my new job in January.",
        "They are going to sell the boat in May.",
        "Wir werden im Mai umziehen.",
        "Ma sœur va se marier en septembre.",
        "Mi hermana va a casarse en septiembre.",
        "Minha irmã vai se casar em setembro.",
        "Wij gaan in mei verhuizen.",
        "Vi ska flytta i maj.",
        "W maju będziemy się przeprowadzać.",
        "В мае мы будем переезжать.",
        "Mayısta taşınacağız.",
    ],
)
def test_what_is_to_come_is_noticed(text: str) -> None:
    assert lies_ahead(text)


@pytest.mark.parametrize(
    "text",
    [
        "My sister got married in September.",
        "We did not get married in September.",
        "We had to get married in September.",
        "Meine Schwester hat am 12. Juni geheiratet.",
        "We moved to York in March.",
        "She was getting worse in May.",
        "We were going to move in May.",
        "Will visited us in March.",
        "My knee is getting worse since May.",
        "Wir sind im Mai umgezogen, es wurde spät.",
        "Ma sœur s’est mariée en septembre.",
        "Mi hermana se casó en septiembre.",
        "Minha irmã se casou em setembro.",
        "Wij zijn in mei verhuisd.",
        "Vi flyttade i maj.",
        "Przeprowadziliśmy się w maju.",
        "Мы переехали в мае.",
        "Mayısta taşındık.",
        "",
    ],
)
def test_what_is_over_is_not(text: str) -> None:
    assert not lies_ahead(text)


@pytest.mark.parametrize(
    "text",
    [
        "Rex died on Sunday.",
        "My sister got married on Saturday.",
        "We visited Gran on Friday.",
        "The concert on Friday was great.",
        "Unser Hund ist am Sonntag gestorben.",
        "Am Samstag habe ich den ganzen Tag gearbeitet.",
        "Mi abuelo murió el lunes.",
        "Дедушка умер в понедельник.",
    ],
)
def test_what_happened_lies_in_the_past(text: str) -> None:
    assert direction_of(text) == "past"


@pytest.mark.parametrize(
    "text",
    [
        "We fly on Sunday.",
        "I've got a meeting on Friday.",
        "I need to see you on Friday.",
        "I booked a table for Friday.",
        "The meeting was moved to Friday.",
        "We bought tickets for Sunday.",
        "I'm excited about Saturday.",
        "The gym gets crowded in January.",
        "The shop becomes flooded in January.",
        "Am Sonntag ist das Café geschlossen.",
        "Ich habe für Sonntag einen Tisch reserviert.",
        "J'ai une réunion lundi.",
        "El lunes tengo médico.",
        "",
    ],
)
def test_what_may_be_meant_either_way_has_no_direction(text: str) -> None:
    assert direction_of(text) == "nearest"


def test_what_is_to_come_lies_in_the_future() -> None:
    assert direction_of("We are moving on Saturday.") == "future"
