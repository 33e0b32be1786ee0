"""The fast constructor of values, and the cache of recently used ones."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, fields, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from aforesaid.context import Item
from aforesaid.domain.caches import TwoGenerationCache, fast_constructor
from aforesaid.domain.hit import Hit
from aforesaid.domain.message import Message

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
VALUES = (
    7,
    "#7",
    "default",
    "ann",
    "t",
    "s",
    "user",
    "ann",
    None,
    "hello",
    NOON,
    NOON,
    True,
    None,
    b"hash",
    None,
    False,
    None,
)


def test_what_is_made_quickly_is_what_the_class_makes() -> None:
    usual, quick = Message(*VALUES), fast_constructor(Message)(*VALUES)  # type: ignore[arg-type]
    assert quick == usual
    assert type(quick) is Message
    assert (hash(quick), repr(quick)) == (hash(usual), repr(usual))
    assert replace(quick, text="other").text == "other"
    assert pickle.loads(pickle.dumps(quick)) == copy.copy(quick) == usual  # noqa: S301 - our own


@pytest.mark.parametrize("kind", [Message, Hit, Item])
def test_it_is_frozen_and_takes_all_fields(kind: type) -> None:
    names = [field.name for field in fields(kind)]
    made: Any = fast_constructor(kind)(*names)
    assert [getattr(made, name) for name in names] == names, "each value is in its field"
    with pytest.raises(FrozenInstanceError):
        setattr(made, names[0], 1)
    with pytest.raises(TypeError):
        fast_constructor(kind)(*names[:-1])


def test_recently_used_entries_are_kept_and_others_are_dropped() -> None:
    kept: TwoGenerationCache[int, str] = TwoGenerationCache(10)
    for number in range(100):
        kept.put(number, str(number))
        assert kept.get(0) == "0", "it is asked for all the time"
    assert [kept.get(number) for number in range(90, 100)] == [str(number) for number in range(90, 100)]
    assert kept.get(5) is None
    assert len(kept._new) + len(kept._old) <= 22
    kept.clear()
    assert kept.get(0) is None
