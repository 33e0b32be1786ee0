"""What the proxy adds fits, and the oldest of what was said last goes first."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from aforesaid.context.context import Context
from aforesaid.context.items import Item
from aforesaid.models.tokens import counter_for
from aforesaid.server.proxy.remembering import fitted

BEGIN = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
COUNTER = counter_for(None)


def turn(number: int) -> Item:
    return Item(
        "recent",
        f"message #{number}",
        f"This is turn {number}, with <a tag> in it.",
        12,
        place=number,
        at=BEGIN + timedelta(minutes=number),
        shows=frozenset({number}),
    )


def context(*items: Item) -> Context:
    return Context([], str, 0, 10_000, (), items, (), "x")


MEMORY = Item("memories", "memory 1", "[FACT] Ann has a dog.", 8)


def test_all_of_it_where_there_is_room() -> None:
    text, tokens = fitted(context(MEMORY, turn(1), turn(2)), frozenset(), "ann", COUNTER, 10_000)
    assert "Ann has a dog" in text
    assert text.index("turn 1,") < text.index("turn 2,")
    assert "&lt;a tag&gt;" in text
    assert tokens == COUNTER.count(text)


def test_what_the_client_sent_is_left_out() -> None:
    text, _ = fitted(context(turn(1), turn(2)), frozenset({2}), "ann", COUNTER, 10_000)
    assert "turn 1," in text
    assert "turn 2," not in text
    assert fitted(context(turn(1)), frozenset({1}), "ann", COUNTER, 10_000) == ("", 0)


@pytest.mark.parametrize("less", [1, 30, 100, 250])
def test_the_oldest_goes_first_and_lines_stay_whole(less: int) -> None:
    turns = [turn(number) for number in range(10)]
    whole, tokens = fitted(context(MEMORY, *turns), frozenset(), "ann", COUNTER, 10_000)
    text, fewer = fitted(context(MEMORY, *turns), frozenset(), "ann", COUNTER, tokens - less)
    assert fewer == COUNTER.count(text) <= tokens - less
    assert "Ann has a dog" in text
    kept = [number for number in range(10) if f"turn {number}," in text]
    assert kept == list(range(10 - len(kept), 10))
    assert kept
    assert set(text.splitlines()) < set(whole.splitlines()), "no line was cut"
    assert fewer > tokens - less - 2 * (tokens // 10), "no more than had to go went"


def test_what_is_known_is_cut_when_nothing_else_is_left() -> None:
    facts = [Item("memories", f"memory {number}", f"[FACT] Number {number}.", 8) for number in range(200)]
    text, tokens = fitted(context(*facts, turn(1)), frozenset(), "ann", COUNTER, 300)
    assert tokens == COUNTER.count(text) <= 300
    assert "Number 0." in text
    assert "turn 1," not in text
