"""The cache of what was searched lately."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from aforesaid.store.vector_matrix import SizedCache


@dataclass
class Counted:
    """An entry that counts how often anybody asks for the size of any entry."""

    asked: ClassVar[int] = 0
    bytes: int = 0

    @property
    def size(self) -> int:
        Counted.asked += 1
        return self.bytes


def test_the_least_recently_used_entries_go_first() -> None:
    cache: SizedCache[str, Counted] = SizedCache(100)
    for name in ("a", "b", "c"):
        cache.get(name, lambda: Counted(40))
        cache.resized(name)
    assert ["a" in cache, "b" in cache, "c" in cache, cache.size] == [False, True, True, 80]
    cache.get("b", Counted).bytes = 90
    cache.resized("b")
    assert ["b" in cache, "c" in cache, cache.size] == [True, False, 90]
    cache.drop("b")
    assert cache.size == 0


def test_the_last_entry_stays_however_large_it_is() -> None:
    cache: SizedCache[str, Counted] = SizedCache(100)
    cache.get("large", lambda: Counted(1_000))
    cache.resized("large")
    assert "large" in cache


@pytest.mark.parametrize("entries", [10, 2_000])
def test_a_call_asks_for_one_size_however_many_entries_there_are(entries: int) -> None:
    cache: SizedCache[int, Counted] = SizedCache(1 << 30)
    for number in range(entries):
        cache.get(number, lambda: Counted(1))
        cache.resized(number)
    before = Counted.asked
    cache.get(0, Counted)
    cache.resized(0)
    assert Counted.asked - before == 1
