"""The tables of names and numbers that everything about time reads from."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from aforesaid.text.languages import guess_language, vocabulary
from aforesaid.text.sentences import split_sentences
from aforesaid.text.times.find import find_times, mentions_time
from aforesaid.text.times.time_words import CALENDARS, NUMBERS, SHORT_MONTHS, SHORT_WEEKDAYS, calendar_words

SAID = datetime(2026, 5, 6, 15, 0, tzinfo=UTC)  # a Wednesday


@pytest.mark.parametrize("language", CALENDARS)
def test_every_language_names_seven_days_and_twelve_months(language: str) -> None:
    calendar = CALENDARS[language]
    assert (len(calendar.weekdays), len(calendar.months)) == (7, 12)
    assert len(calendar_words(language)) >= 19


def test_a_number_word_means_the_same_in_every_language() -> None:
    values: dict[str, set[int]] = {}
    for numbers in NUMBERS.values():
        for word, number in numbers.items():
            values.setdefault(word, set()).add(number)
    assert {word for word, meant in values.items() if len(meant) > 1} == set()


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("vor sieben Tagen", (4, 29)),
        ("chovendo há oito dias, meu cabelo virou um ninho", (4, 28)),
        ("eleven days ago", (4, 25)),
        ("das Konzert ist am 3. Okt. 2026", (10, 3)),
        ("十二月二十五日", (12, 25)),
        ("十二天前", (4, 24)),
    ],
)
def test_numbers_and_months_are_read_wherever_a_time_is_named(text: str, day: tuple[int, int]) -> None:
    (when,) = find_times(text, SAID)
    assert (when.start.month, when.start.day) == day


def test_a_portuguese_ten_is_not_a_german_december() -> None:
    assert find_times("a dez metros daqui", SAID) == []
    assert guess_language("tenho dez gatos") == "portuguese"


def test_words_of_time_are_the_names_of_the_calendar_and_may_is_a_verb() -> None:
    assert {"monday", "june", "yesterday", "weekend"} <= vocabulary("english").times
    assert {"январь", "января", "вчера", "неделя"} <= vocabulary("russian").times
    assert vocabulary("english").times.isdisjoint({"may", "jan"})


def test_names_for_display_do_not_depend_on_the_locale() -> None:
    assert " ".join(SHORT_WEEKDAYS) == "Mon Tue Wed Thu Fri Sat Sun"
    assert " ".join(SHORT_MONTHS) == "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Wir heiraten am 3. März in Köln.", 1),
        ("Termin am 3. Okt um neun", 1),
        ("Eggs: 5. Martha is a liar.", 2),
        ("We were 3. May I come too?", 2),
    ],
)
def test_a_month_after_a_number_continues_the_sentence(text: str, sentences: int) -> None:
    assert len(split_sentences(text)) == sentences


@pytest.mark.parametrize(
    ("text", "mentioned"),
    [
        ("Vengo stasera", True),
        ("Увидимся в понедельник", True),
        ("昨晚我们去看电影", True),
        ("It was in May", True),
        ("It may rain", False),
        ("Guten Morgen!", False),
        ("La segunda casa", False),
    ],
)
def test_a_text_mentions_a_time_or_not(text: str, mentioned: bool) -> None:  # noqa: FBT001
    assert mentions_time(text) is mentioned
