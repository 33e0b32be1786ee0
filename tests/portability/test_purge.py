"""After a purge, no byte of what was erased is left: not in the file, not in its log, not in later backups."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path

import apsw
import numpy as np
import pytest

import aforesaid
from aforesaid.domain.hit import VectorRow
from aforesaid.domain.memory import MemoryDraft
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import ViewDraft
from aforesaid.errors import NotFound, StoreBusy
from aforesaid.store import Store, open_store
from aforesaid.store.memories import AddMemory, ChangeMemory, Forget, PutDerived, PutFacts
from aforesaid.store.messages import Messages
from aforesaid.store.people import PutSetting, Users
from aforesaid.store.readable.files import Files
from aforesaid.store.searches import AddVectors, SearchText, SearchVector
from aforesaid.store.sqlite import Options, SqliteStore
from aforesaid.store.sqlite.writer import Writer
from aforesaid.store.summaries import AddView
from making import add, adding, archive, minutes

ANN, BOB = Scope.of("ann"), Scope.of("bob")
ANN_HERE, BOB_HERE = Scope.of("ann", thread="general"), Scope.of("bob", thread="general")
SECRETS = ("xylophonist", "quizzaciously", "zugzwang", "Bankverbindung", "nickname-of-hers")
"""Words of the one who goes, also by their stems in the index, and parts of what was made of them."""


def found_in(folder: Path, words: tuple[str, ...]) -> list[str]:
    """Look through every byte of every file, as a thief would."""
    return [
        f"{word} in {path.name}"
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        for word in words
        if word.lower().encode() in path.read_bytes().lower()
    ]


async def fill(store: Store, rounds: int) -> None:
    """Tell secrets, again and again, between the talk of others, so that they get into every corner of the file."""
    for number in range(rounds):
        secret = SECRETS[number % len(SECRETS)]
        await store.apply([adding(ANN, f"my {secret} number {number}", name="nickname-of-hers", id=f"a{number}")])
        await store.apply([adding(ANN_HERE, f"{secret}, said to all {number}", at=minutes(number))])
        await store.apply([adding(BOB_HERE, f"bob's answer {number}", at=minutes(number))])
    mine = await store.read(Messages(ANN, limit=20))
    for number in range(5):
        await archive(store, ANN, mine[4 * number : 4 * number + 4], f"Ann, the xylophonist, part {number}")
    draft = MemoryDraft(ANN, "fact", "her Bankverbindung is DE02", sources=(mine[0].seq,), tags=("zugzwang",))
    memory = (await store.apply([AddMemory(draft)])).memory
    await store.apply([ChangeMemory(replace(memory, text="she plays quizzaciously"), "edit")])
    await store.apply([PutFacts(ANN, "A xylophonist.", "zugzwang"), Forget(ANN, ("quizzaciously",))])
    await store.apply([PutSetting(ANN, "persona", "zugzwang"), PutDerived(ANN, "portrait", "k", "xylophonist")])
    theirs = [message.seq for message in await store.read(Messages(BOB, limit=1000))]
    view = ViewDraft(BOB, "day", "Bob heard of zugzwang.", theirs[0], theirs[-1], len(theirs), day=minutes(0).date())
    await store.apply([AddView(view), PutDerived(BOB, "portrait", "k", "friend of a xylophonist")])
    rows = tuple(VectorRow(message.seq, message.text, bytes(8)) for message in mine)
    await store.apply([AddVectors("test", rows, mine[-1].seq)])


@pytest.mark.req("C18")
async def test_no_byte_is_left_in_the_file_its_log_and_later_backups(tmp_path: Path) -> None:
    home = tmp_path / "home"
    store = await SqliteStore.open(home / "memory.db")
    await fill(store, 60)
    await store.read(SearchText(BOB_HERE, "xylophonist", within="thread"))
    await store.backup(tmp_path / "before.db")
    assert set(found_in(home, SECRETS)) >= {f"{word} in memory.db-wal" for word in SECRETS}
    done = await store.purge(ANN, "admin")
    assert (done.messages, done.of_others) == (120, 1)
    assert found_in(home, SECRETS) == []
    assert (home / "memory.db-wal").stat().st_size == 0
    await store.backup(home / "after.db")
    await add(store, BOB, "life goes on")
    assert found_in(home, SECRETS) == []
    assert (await store.verify()).ok
    assert len(await store.read(Messages(BOB, limit=1000))) == 61
    await store.close()
    assert found_in(home, SECRETS) == []
    assert found_in(tmp_path, SECRETS) == [f"{word} in before.db" for word in SECRETS]


async def test_what_searches_keep_in_memory_goes_too(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "memory.db")
    await fill(store, 20)
    caches = store._engine.caches
    await store.read(SearchVector(ANN, "test", np.ones(4, dtype=np.float32)))
    assert caches._kept
    await store.purge(ANN, "admin")
    assert not caches._kept
    await store.close()


@pytest.mark.req("G17")
@pytest.mark.parametrize("erased", ["a person", "messages"])
@pytest.mark.parametrize("kind", ["json", "files"])
async def test_no_byte_is_left_in_readable_files_and_what_was_set_aside(tmp_path: Path, kind: str, erased: str) -> None:
    place, folder = f"{kind}:{tmp_path / 'memory'}", tmp_path / "memory"
    store = await open_store(place)
    await fill(store, 20)
    await store.close()
    history = folder if kind == "json" else folder / "account_ann" / "whole_history.json"
    for before, after in ((b"xylophonist", b"xylophonist now"), (b'"messages"', b"!")):  # an edit, then damage
        history.write_bytes(history.read_bytes().replace(before, after))
        await (await open_store(place)).close()
    database = tmp_path / ".memory.db" if kind == "json" else folder / ".aforesaid.db"
    database.write_bytes(bytes(100) + database.read_bytes()[100:])
    store = await open_store(place)
    set_aside = [path.name for path in tmp_path.rglob("*") if ".damaged-" in path.name or ".edited-" in path.name]
    assert len(set_aside) == 3
    assert {word for word in SECRETS if any(name in hit for hit in found_in(tmp_path, (word,)) for name in set_aside)}
    if erased == "a person":
        await store.purge(ANN)
        words: tuple[str, ...] = SECRETS
    else:
        said = await store.read(Messages(ANN, limit=1000))
        await store.erase(ANN, [message.seq for message in said if "xylophonist" in message.text])
        left = [message.text for message in await store.read(Messages(ANN, limit=1000))]
        words = tuple(f"my xylophonist now number {number}" for number in range(20))
        assert left
        assert "xylophonist" not in "".join(left)
    assert found_in(tmp_path, words) == []
    assert [path.name for path in tmp_path.rglob("*") if path.name in set_aside] == []
    if erased == "messages":
        await store.close()
        return
    await add(store, BOB, "life goes on")
    await store.close()
    assert found_in(tmp_path, SECRETS) == []


async def test_a_purge_waits_for_readers_of_old_pages_and_can_be_finished_later(tmp_path: Path) -> None:
    """Another process that reads keeps the old pages alive: that is told, and a second purge clears them."""
    store = await SqliteStore.open(tmp_path / "memory.db", Options(busy_seconds=0.2))
    await fill(store, 20)
    reading = store.dump()
    await anext(reading)
    with pytest.raises(StoreBusy, match="erased, but another process still reads"):
        await store.purge(ANN)
    assert await store.read(Messages(ANN)) == []
    await reading.aclose()  # type: ignore[attr-defined]
    await store.purge(ANN)
    assert found_in(tmp_path, SECRETS) == []
    assert (await store.verify()).ok
    with pytest.raises(NotFound):
        await store.purge(Scope.of("carol"))
    await store.close()


async def test_others_can_write_while_a_purge_waits_for_a_reader(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    store = await SqliteStore.open(path)
    await fill(store, 20)
    reader, writer = apsw.Connection(str(path)), apsw.Connection(str(path))
    reader.execute("BEGIN; SELECT count(*) FROM log").get  # noqa: B018 - reads, and goes on reading
    purging = asyncio.create_task(store.purge(ANN))
    while await asyncio.to_thread(lambda: writer.execute("SELECT count(*) FROM metadata WHERE name = 'wipe'").get) == 0:
        await asyncio.sleep(0.01)
    writer.set_busy_timeout(20_000)

    def write() -> None:
        writer.execute("BEGIN IMMEDIATE; ROLLBACK")

    for _ in range(3):
        await asyncio.to_thread(write)
        assert not purging.done()
    reader.close()
    await purging
    writer.close()
    assert found_in(tmp_path, SECRETS) == []
    await store.close()


async def test_a_purge_that_fails_half_way_leaves_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await SqliteStore.open(tmp_path / "memory.db")
    await fill(store, 20)
    before = [row async for page in store.dump() for row in page]
    monkeypatch.setattr("aforesaid.store.erasing._ERASE_USER", ("SELECT no_such_column FROM log",))
    with pytest.raises(Exception, match="no_such_column"):
        await store.purge(ANN)
    monkeypatch.undo()
    assert [row async for page in store.dump() for row in page] == before
    assert (await store.verify()).ok
    await store.purge(ANN)
    assert found_in(tmp_path, SECRETS) == []
    await store.close()


def test_the_days_of_others_are_told_again_without_the_one_who_went(tmp_path: Path) -> None:
    """From the front door to the end: a community's day mixes people, and is made again of what is left."""
    with aforesaid.open(tmp_path / "memory.db", profile="community", embedder="none") as memory:
        for user, text in (("ann", "My zugzwang is my secret."), ("bob", "I bought a boat in Bremen.")):
            memory.user(user, thread="general").add("user", text, at=minutes(0))
        memory.upkeep()
        assert memory.user("bob").summaries(active=None)
        memory.purge("ann")
        memory.upkeep()
        (day,) = [summary for summary in memory.user("bob").summaries(active=None) if summary.kind == "day"]
        assert "boat" in day.text
        assert memory.user("ann").summaries(active=None) == []
        assert memory.verify().ok
    assert found_in(tmp_path, ("zugzwang",)) == []


@pytest.mark.defect("D7")
async def test_a_purge_that_was_killed_before_the_file_was_wiped_is_finished_at_the_next_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    store = await SqliteStore.open(home / "memory.db")
    await fill(store, 20)

    def killed(*_: object, **__: object) -> None:
        shutil.copytree(home, tmp_path / "left")
        raise ArithmeticError("the process ends here")

    with monkeypatch.context() as patched:
        patched.setattr(Writer, "_wipe", killed)
        with pytest.raises(ArithmeticError, match="ends here"):
            await store.purge(ANN, "admin")
    await store.close()
    assert found_in(tmp_path / "left", SECRETS)
    again = await SqliteStore.open(tmp_path / "left" / "memory.db")
    assert found_in(tmp_path / "left", SECRETS) == []
    assert (await again.verify()).ok
    assert [user.id for user in await again.read(Users())] == ["bob"]
    await again.close()


@pytest.mark.defect("D7")
@pytest.mark.parametrize("kind", ["json", "files"])
async def test_files_are_written_anew_at_the_next_opening_when_a_purge_was_killed(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    store = await open_store(f"{kind}:{home / 'memory'}")
    await fill(store, 20)
    await store.close()
    store = await open_store(f"{kind}:{home / 'memory'}")

    def killed(*_: object, **__: object) -> None:
        shutil.copytree(home, tmp_path / "left")
        raise OSError("the process ends here")

    with monkeypatch.context() as patched:
        patched.setattr(Files, "write", killed)
        with pytest.raises(OSError, match="ends here"):
            await store.purge(ANN, "admin")
    await store.close()
    assert found_in(tmp_path / "left", SECRETS)
    again = await open_store(f"{kind}:{tmp_path / 'left' / 'memory'}")
    assert found_in(tmp_path / "left", SECRETS) == []
    assert (await again.verify()).ok
    await again.close()
