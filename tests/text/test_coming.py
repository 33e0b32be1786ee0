"""What is still to come is told by its verbs."""

from __future__ import annotations

import pytest

from aforesaid.text.times.coming import lies_ahead


@pytest.mark.parametrize(
    "text",
    [
        "My sister is getting married in September.",
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
