"""The disk fills up: every caller is told so, nothing acknowledged is false, and writing resumes once there is room."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from aforesaid.domain.message import draft
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import SummaryDraft
from aforesaid.errors import StoreFull
from aforesaid.store import Store
from aforesaid.store.failover import open_with_failover
from aforesaid.store.messages import AddMessage, AddMessages, Messages
from aforesaid.store.people import Totals
from aforesaid.store.postgres import PostgresStore
from aforesaid.store.readable import ReadableStore
from aforesaid.store.searches import SearchText
from aforesaid.store.sqlite import Options, SqliteStore, engine
from aforesaid.store.sqlite.writer import OVERDUE_PAGES
from aforesaid.store.summaries import Archive
from making import add
from pg import shared_server
from torture.disk import SmallDisk
from torture.support import KINDS, Figures, Size, opened
from torture.witness import Archived, Witness
from torture.workload import say

SMALLEST, LARGEST = 1 << 20, 6 << 20
ENOUGH = 4
"""Factor by which the disk grows after it was full, beside room for the write-ahead log."""
LOG_BYTES = OVERDUE_PAGES * 4_096
"""The size to which the write-ahead log may grow before it is copied back."""
OF_READABLE = 4
"""Factor by which a disk is larger that has readable files, and the next ones, beside a database."""
WRITERS = 8
REFUSALS = 6
"""How often every writer is refused before there is room again."""

COUNTED = (
    "rounds",
    "acknowledged messages",
    "acknowledged archives",
    "refused messages",
    "refused archives",
    "losses",
)

SetRoom = Callable[[int], None]


@pytest.mark.parametrize("kind", KINDS)
def test_on_a_real_file_system_without_room(kind: str, tmp_path: Path, size: Size) -> None:
    figures = Figures("full disk (tmpfs)" if kind == "sqlite" else f"full disk (tmpfs) under {kind}", *COUNTED)
    chance = Random(3)
    for number in range(size.of(small=2, full=60 if kind == "sqlite" else 30)):
        with mounted(tmp_path / f"small-{number}") as (folder, set_room):
            room = chance.randrange(SMALLEST, LARGEST)
            fill_it_up(folder / "memory.db", None, set_room, room, figures, kind=kind)
    figures.show()


def test_on_a_disk_that_says_it_is_full(tmp_path: Path, size: Size) -> None:
    figures, chance = Figures("full disk (VFS)", *COUNTED), Random(4)
    for number in range(size.of(small=2, full=60)):
        disk = SmallDisk(f"small-disk-{number}")
        with disk.registered() as vfs:
            room = chance.randrange(SMALLEST, LARGEST)
            fill_it_up(tmp_path / f"memory-{number}.db", Options(vfs=vfs), disk.set_room, room, figures)
    figures.show()


def test_opening_a_file_on_a_full_disk_says_that_it_is_full(tmp_path: Path) -> None:
    """Even reading needs a little room: the shared memory beside the file."""

    async def add(path: Path, text: str) -> None:
        async with opened(path) as store:
            await say(store, witness.hear, "ann", [AddMessage(draft(Scope.of("ann"), "user", text))])
            assert await store._engine.read(witness.findings) == []

    witness = Witness()
    with mounted(tmp_path / "small") as (folder, _):
        asyncio.run(add(folder / "memory.db", "there is room"))
        fill_to_the_last_byte(folder / "ballast")
        with pytest.raises(StoreFull):
            asyncio.run(add(folder / "memory.db", "there is none"))
        (folder / "ballast").unlink()
        asyncio.run(add(folder / "memory.db", "there is room again"))


@pytest.mark.defect("W4")
def test_what_took_over_on_a_full_disk_is_gone_when_there_is_room(tmp_path: Path) -> None:
    def open_files() -> list[str]:
        return [str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.exists()]

    async def run(folder: Path) -> None:
        store = await open_with_failover(folder / "memory.db", "auto")
        await add(store, ann, "there is room")
        fill_to_the_last_byte(folder / "ballast")
        for number in range(3):
            assert not (await store.apply([AddMessage(draft(ann, "user", f"only in memory {number}"))])).durable
        assert (await store.health()).status == "failing"
        (folder / "ballast").unlink()
        await add(store, ann, "there is room again")
        assert [path.name for path in folder.iterdir() if path.name.endswith(".waiting")] == []
        assert [path for path in open_files() if ".waiting" in path] == []
        assert (await store.read(Totals())).messages == 5
        assert (await store.health()).status == "active"
        await store.close()

    ann = Scope.of("ann")
    with mounted(tmp_path / "small") as (folder, _):
        asyncio.run(run(folder))


def test_a_search_on_a_full_disk_is_answered_without_a_batch_that_is_not_indexed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_PAUSE_SECONDS", 3_600)
    monkeypatch.setattr(engine, "_MOST_SECONDS_WITHOUT_INDEXING", 3_600)
    ann = Scope.of("ann")

    async def found(store: SqliteStore) -> int:
        return len(await store.read(SearchText(ann, "tea", limit=5_000)))

    async def run(path: Path, ballast: Path) -> None:
        async with opened(path) as store:
            await store.apply([AddMessage(draft(ann, "user", "the first tea"))])
            await store.apply(AddMessages([draft(ann, "user", f"tea number{place}") for place in range(2_500)]))
            fill_to_the_last_byte(ballast)
            assert await found(store) == 1
            assert any("searches miss messages" in issue for issue in (await store.health()).issues)
            assert (await store.read(Totals())).messages == 2_501
            ballast.unlink()
            assert await found(store) == 2_501
            assert (await store.health()).status == "active"
            assert (await store.verify()).ok

    with mounted(tmp_path / "small") as (folder, set_room):
        set_room(LARGEST)
        asyncio.run(run(folder / "memory.db", folder / "ballast"))


@pytest.mark.defect("W2")
def test_a_database_on_a_full_disk_works_again_as_soon_as_there_is_room() -> None:
    async def add(store: PostgresStore, name: str) -> set[str]:
        outcomes, scope = set(), Scope.of(name, space=f"space of {name[-1]}")
        for turn in range(20):
            try:
                await store.apply([AddMessage(draft(scope, "user", f"{turn} {'tea ' * 300}"))])
                outcomes.add("stored")
            except StoreFull:
                outcomes.add("full")
        return outcomes

    async def add_all(store: PostgresStore) -> list[set[str]]:
        return await asyncio.gather(*[add(store, f"w{number}") for number in range(4)])

    async def run(dsn: str, ballast: Path) -> None:
        store = await PostgresStore.open(dsn)
        await store.apply([AddMessage(draft(Scope.of("ann"), "user", "there is room"))])
        fill_to_the_last_byte(ballast)
        # Pages that were begun still take something.
        while any("stored" in outcomes for outcomes in await add_all(store)):
            pass
        assert (await store.health()).status == "failing"
        ballast.unlink()
        assert await add_all(store) == [{"stored"}] * 4
        assert (await store.health()).status == "active"
        assert (await store.verify()).ok
        await store.close()

    server = shared_server()
    with mounted(server.folder / "small") as (folder, set_room):
        set_room(128 << 20)
        shutil.chown(folder, "nobody")
        with server.admin() as admin:
            admin.execute(f"CREATE TABLESPACE small LOCATION '{folder}'")
            admin.execute("CREATE DATABASE small OWNER aforesaid TABLESPACE small")
            try:
                asyncio.run(run(server.dsn("small"), folder / "ballast"))
            finally:
                admin.execute("DROP DATABASE small WITH (FORCE)")
                admin.execute("DROP TABLESPACE small")


@contextmanager
def mounted(folder: Path) -> Iterator[tuple[Path, SetRoom]]:
    """Mount a small file system, whose size can be set."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    folder.mkdir()
    try:
        _run("mount", "-t", "tmpfs", "-o", f"size={SMALLEST}", "tmpfs", str(folder))
    except subprocess.CalledProcessError as error:
        pytest.skip(f"a small file system cannot be mounted here: {error.stderr!r}")
    try:
        yield folder, lambda size: _run("mount", "-o", f"remount,size={size}", str(folder))
    finally:
        try:
            _run("umount", str(folder))
        except subprocess.CalledProcessError:
            # Something still uses a file in it. What stays mounted would fail the clean-up of every later run.
            _run("umount", "--lazy", str(folder))
            raise


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def fill_to_the_last_byte(path: Path) -> None:
    """Leave no room at all."""
    with path.open("wb", buffering=0) as ballast:
        for piece in (1 << 16, 1 << 12, 1):
            try:
                while ballast.write(bytes(piece)):
                    pass
            except OSError:
                continue


def fill_it_up(
    path: Path, options: Options | None, set_room: SetRoom, room: int, figures: Figures, kind: str = "sqlite"
) -> None:
    """Write until there is no room, make some, go on; in the end everything is there exactly once."""
    witness = Witness()

    async def run() -> None:
        set_room(room)
        async with opened(path, options, kind) as store:
            refused = await write_until_refused(store, witness, figures)
            await check_while_full(store, witness, refused)
            if isinstance(store, ReadableStore):
                with pytest.raises(StoreFull):
                    await asyncio.to_thread(store._files.write)
                check_readable(path, None)
            set_room((room * ENOUGH + LOG_BYTES) * (1 if kind == "sqlite" else OF_READABLE))
            if isinstance(store, ReadableStore):
                await asyncio.to_thread(store._files.write)
            await store_what_was_refused(store, witness, refused)
        if kind != "sqlite":
            check_readable(path, witness)
        async with opened(path, options, kind) as store:
            assert await store._engine.read(witness.findings) == []
            verification = await store.verify()
            assert verification.ok, verification
            assert (await store.read(Totals())).messages == len(witness.said)

    asyncio.run(run())
    figures.add("rounds")
    figures.add("acknowledged messages", len(witness.said))
    figures.add("acknowledged archives", len(witness.archives))


def check_readable(path: Path, witness: Witness | None) -> None:
    """See that no file is half written, and that after all they have everything."""
    histories = [path] if path.is_file() else [*path.rglob("whole_history.json")]
    for each in [*path.rglob("*.json"), *histories]:
        if each.exists():
            json.loads(each.read_bytes())
    if witness is not None:
        parts = [json.loads(each.read_bytes())["messages"] for each in histories]
        lists = [found for part in parts for found in (part.values() if isinstance(part, dict) else [part])]
        assert sum(len(found) for found in lists) == len(witness.said)


async def write_until_refused(store: Store, witness: Witness, figures: Figures) -> list[AddMessage]:
    """Let many write until each has been refused a few times; return what was refused."""
    refused: list[AddMessage] = []

    async def writer(name: str) -> None:
        chance, scope, refusals = Random(name), Scope.of(name), 0
        for turn in itertools.count():
            words = chance.choices(("tea", "rain", "Berlin", "dentist", "train"), k=chance.randrange(20, 400))
            id_ = f"id-{name}-{turn}" if chance.random() < 0.5 else None
            message = AddMessage(draft(scope, "user", " ".join((f"{name}.{turn}", *words)), id=id_))
            try:
                await say(store, witness.hear, name, [message])
            except StoreFull:
                refused.append(message)
                figures.add("refused messages")
                refusals += 1
                if refusals == REFUSALS:
                    return

    async with asyncio.TaskGroup() as tasks:
        writers = [tasks.create_task(writer(f"w{number}")) for number in range(WRITERS)]
        tasks.create_task(archive_until_they_stop(store, witness, figures, writers))
    return refused


async def archive_until_they_stop(
    store: Store, witness: Witness, figures: Figures, writers: list[asyncio.Task[None]]
) -> None:
    """Archive what was written, over and over; an archive can be refused as well."""
    for turn in itertools.count():
        if all(writer.done() for writer in writers):
            return
        scope = Scope.of(f"w{turn % WRITERS}")
        sources = tuple(message.seq for message in await store.read(Messages(scope, limit=10, archived=False)))
        if sources:
            try:
                summary = (await store.apply([Archive(SummaryDraft(scope, "In short. " * 500, sources))])).summary
            except StoreFull:
                figures.add("refused archives")
            else:
                witness.hear(Archived(summary.id, scope.user, sources, ()))


async def check_while_full(store: SqliteStore, witness: Witness, refused: list[AddMessage]) -> None:
    """A full disk can still be read, and nothing that was refused is visible."""
    assert await store._engine.read(witness.findings) == []
    assert (await store.read(Totals())).messages == len(witness.said)
    assert not await store._engine.read(
        lambda connection: [
            message.draft.text[:40]
            for message in refused
            if connection.execute("SELECT 1 FROM log WHERE text = ?", (message.draft.text,)).get is not None
        ]
    )


async def store_what_was_refused(store: Store, witness: Witness, refused: list[AddMessage]) -> None:
    """Hand in the very same again, on the store that is still open."""
    for message in refused:
        await say(store, witness.hear, message.draft.scope.user, [message])
    assert (await store.health()).status == "active"
