"""A database server, reached through the front door."""

from __future__ import annotations

from pathlib import Path

import pytest

import recollect
from recollect.errors import StoreError
from recollect.store import open_store

NOBODY_THERE = "postgresql://nobody@127.0.0.1:9/nothing?connect_timeout=2"


async def test_a_database_that_is_not_there_is_taken_over_from_by_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with pytest.raises(StoreError):
        await recollect.connect(NOBODY_THERE)
    place = f"files:{tmp_path / 'waiting'}"
    async with recollect.connect(NOBODY_THERE, settings={"fallback": place}) as memory:
        receipt = await memory.user("ann").add("user", "is anybody there?")
        assert receipt.durable
        assert receipt.notices
        assert [message.text for message in await memory.user("ann").history()] == ["is anybody there?"]
    store = await open_store(place)
    assert [user.id for user in await store.users()] == ["ann"]
    await store.close()
