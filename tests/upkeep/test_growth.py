"""How fast a store grows."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import aforesaid
from aforesaid.domain.checks import microseconds
from aforesaid.domain.report import Storage
from aforesaid.store import Store
from aforesaid.store.people import Marks, PutMark
from aforesaid.upkeep.watch import note_size, with_growth

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def at(**later: float) -> int:
    return microseconds(NOON + timedelta(**later), "the time")


@pytest.mark.req("C17")
async def test_growth_is_measured_since_the_oldest_size_that_is_known(store: Store) -> None:
    assert (await with_growth(store, Storage(1_000, 10), at())).since is None
    await note_size(store, Storage(1_000, 10), at())
    await note_size(store, Storage(9_000, 90), at(hours=3))
    assert list(await store.read(Marks())) == ["size 2026-03-01"], "once a day"
    assert (await with_growth(store, Storage(1_000, 10), at(minutes=59))).bytes_per_day is None
    await note_size(store, Storage(2_000, 20), at(days=1))
    now = await with_growth(store, Storage(3_000, 50), at(days=2))
    assert (now.since, now.bytes_per_day, now.messages_per_day) == (NOON, 1_000.0, 20.0)
    smaller = await with_growth(store, Storage(0, 0), at(days=2))
    assert smaller.bytes_per_day == -500.0


async def test_sizes_of_long_ago_are_taken_away_and_other_marks_stay(store: Store) -> None:
    await store.apply([PutMark("cleanup", "x")])
    for day in range(0, 40, 5):
        await note_size(store, Storage(day, day), at(days=day))
    marks = await store.read(Marks())
    assert "cleanup" in marks
    assert len(marks) == 8, "those of thirty days, and the other"
    assert (await with_growth(store, Storage(40, 40), at(days=40))).since == NOON + timedelta(days=10)


async def test_a_mark_of_the_future_does_not_count(store: Store) -> None:
    await note_size(store, Storage(1, 1), at(days=9))
    assert (await with_growth(store, Storage(1_000, 10), at())).since is None


async def test_the_size_is_written_down_by_itself(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db", settings={"alerts.interval_seconds": 0.1}) as memory:
        await memory.user("ann").add("user", "hello")
        while not await memory.store.read(Marks()):
            await asyncio.sleep(0.02)
        (name,) = await memory.store.read(Marks())
        assert name.startswith("size ")
