"""Words that announce a change."""

from __future__ import annotations

import pytest

from aforesaid.text.languages import MOST_COUNTED, count_change_words


@pytest.mark.parametrize(
    "text",
    [
        "We sold the flat and moved to a house.",
        "Er nimmt kein Marcumar mehr, der Arzt hat umgestellt.",
        "Мы больше не живём в Туле.",
        "Artık Ankara'da oturuyorum.",
        "来月から大阪に引っ越します。",
        "الان نعيش في تونس",
    ],
)
def test_words_that_announce_a_change_are_found_in_any_language(text: str) -> None:
    assert count_change_words(text) > 0


def test_a_plain_statement_has_none() -> None:
    assert count_change_words("My sister Clara plays the cello.") == 0


def test_no_more_are_counted_than_tell_something() -> None:
    assert count_change_words("now " * 50) == MOST_COUNTED
