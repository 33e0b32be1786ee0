"""Times that come back have no single date."""

from __future__ import annotations

import pytest

from aforesaid.text.times.hours import recurs


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
