"""A database server that is not there, or goes away and comes back."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from pathlib import Path
from typing import cast

import pytest

import aforesaid
from aforesaid.domain.scope import Scope
from aforesaid.errors import StoreError
from aforesaid.store import failover, open_store
from aforesaid.store.contract import Store
from aforesaid.store.failover import FIRST, Failover, Fallback
from aforesaid.store.locations import Location, open_layout
from aforesaid.store.messages import MessagesBetween
from aforesaid.store.people import Users
from aforesaid.store.postgres import Options, PostgresStore
from making import adding
from pg import Server, shared_server

WRITERS = 6
SPACES = 2
NOBODY_THERE = "postgresql://nobody@127.0.0.1:9/nothing?connect_timeout=2"


async def test_a_database_that_is_not_there_is_taken_over_from_by_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with pytest.raises(StoreError):
        await aforesaid.connect(NOBODY_THERE)
    place = f"files:{tmp_path / 'waiting'}"
    async with aforesaid.connect(NOBODY_THERE, settings={"fallback": place}) as memory:
        receipt = await memory.user("ann").add("user", "is anybody there?")
        assert receipt.durable
        assert receipt.notices
        assert [message.text for message in await memory.user("ann").history()] == ["is anybody there?"]
    store = await open_store(place)
    assert [user.id for user in await store.read(Users())] == ["ann"]
    await store.close()


class Writers:
    """Several who write without a pause, each one message after the other, and note what they were told."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._going_on = True
        self.acknowledged: list[tuple[str, str, bool]] = []
        """The space, the text, and whether it waits somewhere else for now."""
        self._tasks = [asyncio.create_task(self._write(number)) for number in range(WRITERS)]

    async def _write(self, writer: int) -> None:
        scope = Scope.of(f"user{writer}", space=f"space{writer % SPACES}")
        number = 0
        while self._going_on:
            text = f"{writer} {number}"
            receipt = await self._store.apply([adding(scope, text)])
            assert receipt.durable, "on the disk of this machine at least"
            self.acknowledged.append((scope.space, text, bool(receipt.notices)))
            number += 1

    async def until(self, count: int, *, elsewhere: bool) -> None:
        """Wait until so many more were acknowledged, by the database or by what takes over."""
        seen = len(self.acknowledged)
        while sum(waits == elsewhere for _, _, waits in self.acknowledged[seen:]) < count:
            for task in self._tasks:
                if task.done():
                    task.result()
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        self._going_on = False
        await asyncio.gather(*self._tasks)


@pytest.mark.req("C7", "D11")
async def test_a_database_that_goes_away_under_writers_gets_everything_once_and_in_order_when_it_returns(
    tmp_path: Path,
) -> None:
    shared_server()  # leaves the test out where no server can be had
    server = Server(durable=True)
    try:
        options = Options(patience=0.2)
        reopen = partial(PostgresStore.open, server.create("leaving"), options)
        behind = partial(open_layout, Location("files", tmp_path / "waiting"), first=FIRST)
        store = cast("Store", Failover(cast("Store", await reopen()), reopen, Fallback(behind, None)))
        writers = Writers(store)
        for _ in range(3):
            await writers.until(30, elsewhere=False)
            await asyncio.to_thread(server.stop)
            await writers.until(30, elsewhere=True)
            assert (await store.health()).status == "failing"
            await asyncio.to_thread(server.start)
        await writers.until(30, elsewhere=False)
        await writers.stop()
        health = await store.health()
        assert health.status == "active"
        assert dict(health.facts)["backend"] == "postgresql"
        await store.close()
        await compare(cast("Store", await reopen()), writers.acknowledged)
    finally:
        server.remove()


async def test_messages_that_wait_for_a_database_are_found_after_its_password_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared_server()  # leaves the test out where no server can be had
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(failover, "open_store", partial(PostgresStore.open, options=Options(patience=0.2)))
    scope = Scope.of("ann")
    server = Server()
    try:
        address = f"{server.create('rotating')}&password="
        store = await failover.open_with_failover(f"{address}old", "auto")
        await asyncio.to_thread(server.stop)
        assert (await store.apply([adding(scope, "written while it was away")])).notices
        await store.close()
        await asyncio.to_thread(server.start)
        store = await failover.open_with_failover(f"{address}new", "auto")
        stored = await store.read(MessagesBetween(scope.space, 0, 2**62))
        assert [message.text for message in stored] == ["written while it was away"]
        assert (await store.health()).status == "active"
        await store.close()
        assert list((tmp_path / "aforesaid").iterdir()) == [], "nothing waits any more"
    finally:
        server.remove()


async def compare(store: Store, acknowledged: list[tuple[str, str, bool]]) -> None:
    """Check that the database has what was acknowledged, each once, and each writer's in order."""
    assert (await store.verify()).ok
    for number in range(SPACES):
        space = f"space{number}"
        stored = [message.text for message in await store.read(MessagesBetween(space, 0, 2**62))]
        expected = Counter(text for where, text, _ in acknowledged if where == space)
        assert Counter(stored) == expected, "nothing lost, nothing twice"
        for writer in range(number, WRITERS, SPACES):
            mine = [int(text.split()[1]) for text in stored if text.startswith(f"{writer} ")]
            assert mine == list(range(len(mine))), "in order, without a gap"
    await store.close()
