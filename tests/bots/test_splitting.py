"""Long replies are cut where a reader would pause, and blocks of code stay whole."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid.bots.sending import split, units


def test_a_short_text_stays_one_message() -> None:
    assert split("Hello.", 4096) == ["Hello."]
    assert split("", 4096) == []
    assert split(" \n ", 4096) == []


def test_it_is_cut_after_paragraphs_and_then_after_lines_sentences_and_words() -> None:
    assert split("a" * 60 + "\n\n" + "b" * 60, 100) == ["a" * 60, "b" * 60]
    assert split("a" * 60 + "\n" + "b" * 60, 100) == ["a" * 60, "b" * 60]
    assert split("A" * 60 + ". " + "B c" * 20, 100)[0] == "A" * 60 + "."
    assert split("word " * 40, 100) == [" ".join(["word"] * 20)] * 2


def test_a_block_of_code_is_closed_and_opened_again() -> None:
    lines = "\n".join(f"print({number})" for number in range(100))
    parts = split(f"Look:\n```python\n{lines}\n```\nThat was it.", 300)
    assert len(parts) > 3
    for part in parts:
        assert part.count("```") % 2 == 0
        assert units(part) <= 300
    assert all(part.startswith("```python\n") for part in parts[1:-1])
    inside = [line for part in parts for line in part.splitlines() if line.startswith("print")]
    assert inside == lines.splitlines()
    assert parts[-1].endswith("That was it.")


def test_a_fence_inside_of_a_longer_fence_closes_nothing() -> None:
    inner = "\n".join(f"line {number}" for number in range(40))
    parts = split(f"````md\n```\n{inner}\n```\n````", 200)
    assert len(parts) > 1
    for part in parts:
        assert len(re.findall("^````", part, re.MULTILINE)) == 2


def test_platforms_count_in_units_of_utf_16() -> None:
    parts = split("😀" * 300, 200)
    assert all(units(part) <= 200 for part in parts)
    assert "".join(parts) == "😀" * 300


@pytest.mark.parametrize("cluster", ["e\u0301", "👩\u200d👩\u200d👧", "👍🏽"])
def test_what_is_seen_as_one_character_is_not_torn_apart(cluster: str) -> None:
    parts = split("x" + cluster * 200, 100)
    assert all(re.fullmatch(f"x?(?:{cluster})+", part) for part in parts)


def test_too_small_messages_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 64"):
        split("hello", 10)


WORDS = st.sampled_from(["word", "\n", "\n\n", " ", ". ", "```", "```py\n", "\n```\n", "😀", "é", "~~~\n", "x" * 90])


@given(st.lists(WORDS, max_size=80).map("".join), st.integers(64, 300))
def test_nothing_is_lost_and_nothing_is_too_long(text: str, longest: int) -> None:
    parts = split(text, longest)
    assert all(units(part) <= longest for part in parts)
    assert all(part.strip() for part in parts)

    def letters(whole: str) -> str:
        # Fences are written again at each cut; everything else is there once, in its order.
        return re.sub(r"[\s`~]|py", "", whole)

    assert letters("".join(parts)) == letters(text)
