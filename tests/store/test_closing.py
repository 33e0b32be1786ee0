"""Closing a store: also when it is cancelled, and without leaving anything behind."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from aforesaid.domain.scope import Scope
from aforesaid.errors import StoreFailed
from aforesaid.portability.migrating import repair
from aforesaid.store import open_store
from aforesaid.store.failover import FIRST, Failover, Fallback
from aforesaid.store.locations import Location, open_layout
from aforesaid.store.messages import Messages
from aforesaid.store.readable import ReadableStore
from aforesaid.store.summaries import Summaries
from making import add, archive, remove_databases

ANN = Scope.of("ann")


@pytest.mark.defect("D9")
@pytest.mark.parametrize("kind", ["json", "files"])
async def test_a_store_whose_closing_was_cancelled_is_closed_by_the_next_call(kind: str, tmp_path: Path) -> None:
    place = f"{kind}:{tmp_path / 'memory'}"
    store = await open_store(place)
    assert isinstance(store, ReadableStore)
    await add(store, ANN, "hello")
    held, going = threading.Event(), threading.Event()
    really_close = store._files.close

    def slowly() -> None:
        going.set()
        held.wait(30)
        really_close()

    store._files.close = slowly  # type: ignore[method-assign]
    closing = asyncio.create_task(store.close())
    await asyncio.to_thread(going.wait, 30)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    again = asyncio.create_task(store.close())
    await asyncio.sleep(0)
    held.set()
    await again
    reopened = await open_store(place)
    assert [message.text for message in await reopened.read(Messages(ANN))] == ["hello"]
    await reopened.close()


@pytest.mark.defect("D9")
async def test_a_folder_of_the_fallback_in_which_nothing_waits_is_removed_at_closing(tmp_path: Path) -> None:
    folder = tmp_path / "m.db.waiting"

    async def unavailable() -> None:
        raise StoreFailed("the disk fails")

    fallback = Fallback(lambda: open_layout(Location("files", folder), first=FIRST), folder)
    failover = Failover(None, unavailable, fallback)  # type: ignore[arg-type]
    await failover.start(StoreFailed("the disk fails"))
    await fallback.open()
    assert folder.exists()
    await failover.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.defect("D9")
@pytest.mark.parametrize("kind", ["json", "files"])
async def test_a_repair_names_the_message_that_is_lost(kind: str, tmp_path: Path) -> None:
    place = f"{kind}:{tmp_path / 'memory'}"
    store = await open_store(place)
    said = await add(store, ANN, *(f"number {number} of many" for number in range(30)))
    await archive(store, ANN, said[:10], "The first ten.")
    await store.close()
    remove_databases(tmp_path)
    for path in tmp_path.rglob("*"):
        if path.is_file() and b"number 17 of many" in path.read_bytes():
            path.write_bytes(path.read_bytes().replace(b"number 17 of many", b"number 17 of ma\x0ey"))
    done = await repair(place)
    assert any("messages that are not there" in line and "#18" in line for line in done.lost), done.lost
    reopened = await open_store(place)
    assert done.recovered["summary"] == len(await reopened.read(Summaries(ANN, active=None)))
    await reopened.close()
