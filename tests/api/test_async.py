"""The public API as async code uses it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import aforesaid
from aforesaid.errors import InvalidInput, StoreClosed


async def test_the_same_names_awaited(location: str) -> None:
    async with aforesaid.connect(location) as memory:
        ann = memory.user("ann")
        await ann.add("user", "hello")
        assert [message.text for message in await ann.history()] == ["hello"]
        assert [hit.text for hit in await ann.search("hello")] == ["hello"]
        assert (await memory.stats()).messages == 1
        assert [session.messages for session in await ann.sessions()] == [1]
    with pytest.raises(StoreClosed):
        await ann.add("user", "too late")


async def test_a_memory_can_be_awaited_and_closed_by_hand(tmp_path: Path) -> None:
    memory = await aforesaid.connect(tmp_path / "memory.db")
    async with memory:
        await memory.user("ann").add("user", "hello")
    with pytest.raises(StoreClosed):
        await memory.stats()


async def test_many_tasks_write_at_once_and_each_keeps_its_order(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db") as memory:

        async def talk(name: str) -> None:
            user = memory.user(name)
            for number in range(20):
                receipt = await user.add("user", f"{number}")
                assert receipt.durable

        await asyncio.gather(*[talk(f"user{number}") for number in range(32)])
        for number in range(32):
            texts = [message.text for message in await memory.user(f"user{number}").history(100)]
            assert texts == [str(count) for count in range(20)]


async def test_sync_and_async_share_a_file_in_one_process(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with aforesaid.connect(path) as memory:
        await memory.user("ann").add("user", "from async code")
        with await asyncio.to_thread(aforesaid.open, path) as blocking:
            await asyncio.to_thread(blocking.user("ann").add, "user", "from sync code")
            await asyncio.to_thread(blocking.close)
        texts = [message.text for message in await memory.user("ann").history()]
        assert texts == ["from async code", "from sync code"]


def test_a_profile_is_checked_before_anything_is_opened(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="did you mean 'archive'"):
        aforesaid.connect(tmp_path / "memory.db", profile="archiv")
    assert not (tmp_path / "memory.db").exists()


def test_a_memory_that_is_not_open_says_how_to_open_it(tmp_path: Path) -> None:
    with pytest.raises(AttributeError, match="it has no 'user': write `async with aforesaid"):
        aforesaid.connect(tmp_path / "memory.db").user("ann")  # type: ignore[attr-defined]
