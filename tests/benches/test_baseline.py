"""The LIKE search that everything is compared with."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from evaluation.conversation import Turn
from evaluation.like_baseline import keywords, like

START = datetime(2026, 3, 1, tzinfo=UTC)


def turns(*texts: str) -> list[Turn]:
    return [
        Turn(str(number), "s", "user", None, text, START + timedelta(minutes=number))
        for number, text in enumerate(texts)
    ]


def test_stop_words_are_dropped_and_each_word_counts_once() -> None:
    assert keywords("What was THE name of the red, red boat?") == ["name", "red", "boat"]


def test_more_words_win_then_the_more_recent_turn() -> None:
    said = turns("a red boat", "the boathouse", "nothing", "my old BOAT")
    assert like("red boat?", said, 10) == ["0", "3", "1"]
    assert like("red boat?", said, 1) == ["0"]


def test_time_decides_what_is_recent_and_not_the_order_of_storing() -> None:
    said = list(reversed(turns("boat one", "boat two")))
    assert like("boat", said, 10) == ["1", "0"]


def test_words_are_not_found_in_writing_without_spaces() -> None:
    assert like("我的猫叫什么名字？", turns("我的猫叫小雪。"), 10) == []
