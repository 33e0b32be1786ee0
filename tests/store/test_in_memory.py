"""Stores in memory: nothing of them is on a disk, and no two of them share anything."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from aforesaid.domain.scope import Scope
from aforesaid.store import open_store
from aforesaid.store.messages import Messages
from making import add, adding

ANN = Scope.of("ann")


def opened_files() -> set[str]:
    """The files that this process has open."""
    return {str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()}


async def test_two_stores_in_memory_are_separate() -> None:
    one, other = await open_store(":memory:"), await open_store(":memory:")
    await add(one, ANN, "Only here.")
    assert len(await one.read(Messages(ANN))) == 1
    assert await other.read(Messages(ANN)) == []
    await one.close()
    await add(other, ANN, "Still open.")
    await other.close()


async def test_receipts_say_that_nothing_survives() -> None:
    store = await open_store(":memory:")
    assert not (await store.apply([adding(ANN, "Hello.")])).durable
    await store.close()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_nothing_is_written_to_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TMPDIR", "SQLITE_TMPDIR", "HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    before = opened_files()
    store = await open_store(":memory:")
    await add(store, ANN, *(f"Some words, number {number}." * 50 for number in range(300)))
    assert [page async for page in store.dump()]
    assert (await store.verify()).ok
    await store.erase(ANN, [1, 2, 3])
    await store.purge(ANN)
    on_disk = {name for name in opened_files() - before if name.startswith("/") and not name.startswith("/dev/")}
    assert on_disk == set()
    await store.close()
    assert list(tmp_path.rglob("*")) == []


async def test_a_store_in_memory_can_be_kept_in_a_file(tmp_path: Path) -> None:
    store = await open_store(":memory:")
    await add(store, ANN, "Worth keeping.")
    await store.backup(tmp_path / "kept.db")
    await store.close()
    kept = await open_store(tmp_path / "kept.db")
    assert [message.text for message in await kept.read(Messages(ANN))] == ["Worth keeping."]
    assert (await kept.verify()).ok
    await kept.close()


async def test_messages_are_stored_while_all_of_it_is_given_out() -> None:
    store = await open_store(":memory:")
    await add(store, ANN, *(f"Message {number}." for number in range(2_500)))
    given = 0
    async for page in store.dump():
        given += sum(row.__class__.__name__ == "Message" for row in page)
        await asyncio.wait_for(add(store, ANN, "Meanwhile."), 10)
    assert given == 2_500
    await store.close()
