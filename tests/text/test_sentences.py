"""Questions about the course of events, and what they are about."""

from __future__ import annotations

import pytest

from aforesaid.text.sentences import asks_for_order, topic_words


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        ("What happened in May?", ""),
        ("What came first, the kitchen or the baby?", "kitchen baby"),
        ("How did the kitchen project go?", "kitchen"),
        ("Summarise how the move went.", "move"),
        ("In what order did I visit Rome and Oslo?", "visit rome oslo"),
        ("Was ist im Mai passiert?", ""),
        ("In welcher Reihenfolge war das mit dem Umzug?", "umzug"),
        ("¿Qué pasó en mayo?", ""),
        ("Que s'est-il passé en mai ?", ""),
        ("Cosa è successo a maggio?", ""),
        ("O que aconteceu em maio?", ""),
        ("Wat is er in mei gebeurd?", ""),
        ("Что произошло в мае?", ""),
        ("五月发生了什么", ""),
    ],
)
def test_a_question_about_the_course_of_events_is_recognised_with_its_topic(question: str, topic: str) -> None:
    assert asks_for_order(question)
    assert topic_words(question) == topic


@pytest.mark.parametrize(
    "question",
    [
        "Where do I live?",
        "What's my sister's name?",
        "When did I move?",
        "How did you sleep?",
        "What happens if I cancel?",
        "Wo wohne ich?",
        "¿Dónde vivo?",
        "",
    ],
)
def test_other_questions_are_not(question: str) -> None:
    assert not asks_for_order(question)


def test_a_very_long_question_takes_no_time_to_speak_of() -> None:
    assert not asks_for_order("how did which was " * 50_000)
