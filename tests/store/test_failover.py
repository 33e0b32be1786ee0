"""A store fails while people talk: they are told, nothing is lost, and once it works again all of it is stored once."""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import cast

import apsw
import pytest

import aforesaid
from aforesaid.domain.hit import MessageFilter
from aforesaid.domain.receipt import Repeated
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import SummaryDraft
from aforesaid.errors import InvalidInput, NotFound, StoreError, StoreUnavailable
from aforesaid.store import Store, open_store
from aforesaid.store.failover import (
    FIRST,
    IN_MEMORY,
    ON_DISK,
    Failover,
    Fallback,
    PendingMessages,
    open_with_failover,
)
from aforesaid.store.locations import Location, open_layout
from aforesaid.store.messages import MessageById, MessageCount, Messages, MessagesByNumber, Threads
from aforesaid.store.people import PutSetting, Settings, Totals
from aforesaid.store.sqlite import Options, SqliteStore
from aforesaid.store.summaries import Archive
from making import add, adding
from torture.disk import FailingDisk

ANN = Scope.of("ann")
BOB = Scope.of("bob")
_numbers = itertools.count()


class Switch:
    """A disk that fails as long as it is told to."""

    def __init__(self) -> None:
        self.broken = False

    def verdict(self, what: str, path: Path) -> Exception | None:
        del what, path
        return apsw.FullError("no room") if self.broken else None


@pytest.fixture
def disk() -> Iterator[tuple[Switch, str]]:
    switch = Switch()
    failing = FailingDisk(f"switched-{next(_numbers)}", switch.verdict)
    with failing.registered() as vfs:
        yield switch, vfs


@asynccontextmanager
async def failing_over(path: Path, vfs: str, files: Path | None) -> AsyncIterator[Store]:
    async def open_it() -> Store:
        return await SqliteStore.open(path, Options(vfs=vfs))

    opening = None if files is None else partial(open_layout, Location("files", files), first=FIRST)
    failover = Failover(await open_it(), open_it, Fallback(opening), quick=math.inf)
    await failover.start(None)
    store = cast("Store", failover)
    yield store
    await store.close()


async def texts(store: Store, scope: Scope = ANN) -> list[str]:
    return [message.text for message in await store.read(Messages(scope))]


@pytest.mark.req("A14", "C7")
@pytest.mark.parametrize("files", [True, False], ids=["files", "memory"])
async def test_a_failed_write_is_told_and_nothing_said_meanwhile_is_lost(
    tmp_path: Path, disk: tuple[Switch, str], caplog: pytest.LogCaptureFixture, *, files: bool
) -> None:
    switch, vfs = disk
    caplog.set_level(logging.WARNING, "aforesaid.store")
    async with failing_over(tmp_path / "memory.db", vfs, tmp_path / "waiting" if files else None) as store:
        assert (await store.apply([adding(ANN, "before")])).notices == ()
        switch.broken = True
        receipt = await store.apply([adding(ANN, "during 1", id="d1")])
        assert receipt.durable is files
        assert receipt.notices == ((ON_DISK if files else IN_MEMORY),)
        await store.apply([adding(ANN, "during 2")])
        again = await store.apply([adding(ANN, "during 1", id="d1")])
        assert isinstance(again.results[0], Repeated)
        assert await texts(store) == ["before", "during 1", "during 2"]
        assert [message.text for message in await store.read(Messages(ANN, limit=2))] == [
            "during 1",
            "during 2",
        ]
        health = await store.health()
        assert health.status == "failing"
        assert ("waiting to be stored", "2") in health.facts
        assert (await store.read(MessageById(ANN, "d1"))).text == "during 1"
        waiting = receipt.message
        assert (await store.read(MessagesByNumber(ANN, [waiting.seq])))[0].text == "during 1"
        switch.broken = False
        assert (await store.apply([adding(ANN, "after")])).notices == ()
        assert await texts(store) == ["before", "during 1", "during 2", "after"]
        assert [message.seq for message in await store.read(Messages(ANN))] == [1, 2, 3, 4]
        assert (await store.health()).status == "active"
        assert (await store.read(MessageById(ANN, f"#{(await store.read(Messages(ANN)))[2].seq}"))).text == "during 2"
        assert (await store.read(MessagesByNumber(ANN, [waiting.seq])))[0].text == "during 1", (
            "the number it had while it waited"
        )
        assert (await store.verify()).ok
    told = [record.message for record in caplog.records]
    assert any("the store fails" in line for line in told)
    assert any("works again; 2 messages" in line for line in told)
    async with failing_over(tmp_path / "memory.db", vfs, None) as store:
        assert await texts(store) == ["before", "during 1", "during 2", "after"]


async def test_settings_wait_and_what_builds_on_the_store_is_refused(tmp_path: Path, disk: tuple[Switch, str]) -> None:
    switch, vfs = disk
    async with failing_over(tmp_path / "memory.db", vfs, tmp_path / "waiting") as store:
        messages = await add(store, ANN, "one", "two")
        await store.apply([PutSetting(ANN, "old", 1)])
        switch.broken = True
        archive = [Archive(SummaryDraft(ANN, "In short.", tuple(message.seq for message in messages)))]
        with pytest.raises(StoreError):
            await store.apply(archive)
        receipt = await store.apply([PutSetting(ANN, "summary_every_n", 7), PutSetting(ANN, "old", None)])
        assert not receipt.durable
        assert [(setting.key, setting.value) for setting in await store.read(Settings(ANN))] == [("summary_every_n", 7)]
        with pytest.raises(NotFound):
            await store.read(MessageById(ANN, "unknown"))
        switch.broken = False
        assert (await store.apply(archive)).summary.messages == 2
        assert [(setting.key, setting.value) for setting in await store.read(Settings(ANN))] == [("summary_every_n", 7)]


@pytest.mark.req("C7")
async def test_what_waits_in_files_survives_the_process_and_is_stored_once(
    tmp_path: Path, disk: tuple[Switch, str]
) -> None:
    switch, vfs = disk
    async with failing_over(tmp_path / "memory.db", vfs, tmp_path / "waiting") as store:
        await add(store, ANN, "before")
        switch.broken = True
        await add(store, ANN, "same words", "same words", "other words")
    # The disk never worked again in that process. Another one begins with it.
    switch.broken = False
    async with failing_over(tmp_path / "memory.db", vfs, tmp_path / "waiting") as store:
        assert await texts(store) == ["before", "same words", "same words", "other words"]
        # A process that dies between storing and marking stores all of it again: it is recognised.
        behind = PendingMessages(await open_layout(Location("files", tmp_path / "copy"), first=FIRST))
        for message in (await store.read(Messages(ANN)))[1:]:
            await behind.store.apply([adding(ANN, message.text, at=message.at)])
        await behind.merge_into(store, 30, lambda *_: None)
        await behind.store.close()
        assert await texts(store) == ["before", "same words", "same words", "other words"]


@pytest.mark.req("A15")
async def test_a_memory_that_cannot_be_opened_is_taken_over_by_one_in_memory(tmp_path: Path) -> None:
    blocked = tmp_path / "folder"
    blocked.write_text("a file where a folder should be")
    location = blocked / "memory.db"
    with pytest.raises(StoreUnavailable):
        await aforesaid.connect(location)
    async with aforesaid.connect(location, settings={"fallback": "memory"}) as memory:
        ann = memory.user("ann")
        receipt = await ann.add("user", "I moved to Berlin.")
        assert not receipt.durable
        assert receipt.notices == (IN_MEMORY,)
        assert (await memory.health()).status == "failing"
        assert [message.text for message in await ann.history()] == ["I moved to Berlin."]
        assert [hit.text for hit in await ann.search("Berlin")] == ["I moved to Berlin."]
        assert "Berlin" in (await ann.context("Where do I live?")).text
        blocked.unlink()
        while (await memory.store.health()).status == "failing":
            await asyncio.sleep(0.05)
        assert (await ann.add("user", "And it is fine.")).durable
        assert [message.text for message in await ann.history()] == ["I moved to Berlin.", "And it is fine."]
    store = await open_store(location)
    assert await texts(store) == ["I moved to Berlin.", "And it is fine."]
    await store.close()


async def test_the_usual_fallback_leaves_nothing_behind(tmp_path: Path, disk: tuple[Switch, str]) -> None:
    switch, vfs = disk
    store = await open_with_failover(tmp_path / "memory.db", "auto")
    inner = await SqliteStore.open(tmp_path / "memory.db", Options(vfs=vfs))
    await store._store.close()  # type: ignore[attr-defined]
    store._store = inner  # type: ignore[attr-defined]
    switch.broken = True
    assert (await store.apply([adding(ANN, "while it fails")])).durable
    assert (tmp_path / "memory.db.waiting" / "aforesaid.lock").exists()
    switch.broken = False
    await store.apply([adding(ANN, "after")])
    assert not (tmp_path / "memory.db.waiting").exists()
    assert await texts(store) == ["while it fails", "after"]
    await store.close()


async def test_wrong_fallbacks_are_refused(tmp_path: Path) -> None:
    for wrong in (":memory:", "memory.db", "nonsense:x", f"files:{tmp_path / 'memory'}"):
        with pytest.raises(InvalidInput):
            await open_with_failover(f"files:{tmp_path / 'memory'}", wrong)
    plain = await open_with_failover(tmp_path / "memory.db", "none")
    assert isinstance(plain, SqliteStore)
    await plain.close()


@pytest.mark.req("C7", "C9")
@pytest.mark.parametrize("files", [True, False], ids=["files", "memory"])
async def test_many_talk_while_the_store_comes_and_goes(
    tmp_path: Path, disk: tuple[Switch, str], *, files: bool
) -> None:
    switch, vfs = disk
    acknowledged: dict[str, list[str]] = {}

    async def talk(store: Store, name: str) -> None:
        said = acknowledged.setdefault(name, [])
        for turn in range(40):
            text = f"{name}.{turn}"
            await store.apply([adding(Scope.of(name, thread="general"), text, id=text if turn % 2 else None)])
            said.append(text)
            if turn % 8 == 0:
                await asyncio.sleep(0)

    async def come_and_go() -> None:
        for _ in range(12):
            switch.broken = not switch.broken
            known = sum(map(len, acknowledged.values()))
            while sum(map(len, acknowledged.values())) < min(known + 20, 8 * 40):
                await asyncio.sleep(0)
        switch.broken = False

    async with failing_over(tmp_path / "memory.db", vfs, tmp_path / "waiting" if files else None) as store:
        names = [f"w{number}" for number in range(8)]
        async with asyncio.TaskGroup() as tasks:
            for name in names:
                tasks.create_task(talk(store, name))
            tasks.create_task(come_and_go())
        for name in names:
            assert [m.text for m in await store.read(Messages(Scope.of(name), limit=1_000))] == acknowledged[name]
        assert (await store.read(Totals())).messages == 8 * 40
        assert (await store.health()).status == "active"
        assert (await store.verify()).ok


@pytest.mark.defect("P2")
@pytest.mark.parametrize("files", [True, False], ids=["files", "memory"])
async def test_versions_that_waited_replace_what_they_were_meant_to(
    tmp_path: Path, disk: tuple[Switch, str], *, files: bool
) -> None:
    switch, vfs = disk
    async with failing_over(tmp_path / "m.db", vfs, tmp_path / "files" if files else None) as store:
        await store.apply([adding(ANN, "first answer", "assistant", id="a1")])
        switch.broken = True
        second = await store.apply([adding(ANN, "second answer", "assistant", replaces="a1")])
        await store.apply([adding(ANN, "third answer", "assistant", replaces=second.message)])
        await store.apply([adding(ANN, "replaces nothing", "assistant", replaces="unknown")])
        switch.broken = False
        assert await texts(store) == ["third answer", "replaces nothing"]
        assert len(await store.read(Messages(ANN, versions=True))) == 4
        assert (await store.verify()).ok


@pytest.mark.parametrize("files", [True, False], ids=["files", "memory"])
async def test_a_batch_waits_as_a_whole_and_counts_threads_and_filters_know_it(
    tmp_path: Path, disk: tuple[Switch, str], *, files: bool
) -> None:
    switch, vfs = disk
    async with failing_over(tmp_path / "memory.db", vfs, tmp_path / "waiting" if files else None) as store:
        await add(store, ANN, "stored")
        switch.broken = True
        general = Scope.of("ann", thread="general")
        batch = [adding(ANN, "one"), adding(general, "two", "assistant"), adding(general, "three")]
        receipt = await store.apply(batch)
        assert (receipt.durable, len(receipt.results)) == (files, 3)

        async def seen() -> tuple[int, int, list[tuple[str, int, str]], list[str]]:
            threads = await store.read(Threads(ANN))
            (after,) = await store.read(Threads(ANN, before=threads[0].id, limit=1))
            assert after == threads[1]
            answers = await store.read(Messages(ANN, where=MessageFilter(role="assistant")))
            return (
                await store.read(MessageCount(ANN)),
                await store.read(MessageCount(ANN, where=MessageFilter(role="assistant"))),
                [(each.id, each.messages, each.last_text) for each in threads],
                [each.text for each in answers],
            )

        waiting = await seen()
        assert waiting == (4, 1, [("general", 2, "three"), (ANN.thread, 2, "one")], ["two"])
        switch.broken = False
        assert await seen() == waiting
