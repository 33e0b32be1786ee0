"""The bytes of parts: stored once by their hash, and removed with the last message that names them."""

from __future__ import annotations

import asyncio
import os
from hashlib import sha256
from pathlib import Path

import pytest

import aforesaid
from aforesaid import Part
from aforesaid.domain.checks import LATEST
from aforesaid.domain.receipt import Receipt
from aforesaid.errors import InvalidInput, NotFound, StoreDamaged, StoreRefused
from aforesaid.memory import Connecting, Memory
from aforesaid.portability.importing import ImportOptions, Loader
from aforesaid.store import open_store
from aforesaid.store.attachments import Attachments
from aforesaid.store.locations import attachments_of, restore_store
from aforesaid.store.people import Totals
from aforesaid.store.retention import Discard
from making import archive

CAT, DOG = b"\x89PNG a cat", b"\x89PNG a dog"
CAT_HASH, DOG_HASH = sha256(CAT).hexdigest(), sha256(DOG).hexdigest()


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def opened(location: str, tmp_path: Path) -> Connecting:
    """Open a memory; a database gets a folder by the setting."""
    settings = {"attachments": str(tmp_path / "bytes")} if location.startswith("postgres") else {}
    return aforesaid.connect(location, settings=settings)


async def stored(memory: Memory, *hashes: str) -> list[bool]:
    found = []
    for name in hashes:
        try:
            await memory.attachment(name)
            found.append(True)
        except NotFound:
            found.append(False)
    return found


@pytest.mark.every_store
async def test_bytes_are_stored_once_and_go_with_the_last_message(location: str, tmp_path: Path) -> None:
    async with opened(location, tmp_path) as memory:
        ann, bob = memory.user("ann"), memory.user("bob", space="work")
        first = (await ann.add("user", "look", parts=[Part.of(CAT, "image/png", name="cat.png", text="a cat")])).message
        (part,) = first.parts
        assert part == Part("image", "a cat", None, "image/png", "cat.png", CAT_HASH, len(CAT))
        assert part.data is None
        assert await memory.attachment(CAT_HASH) == CAT
        second = (await bob.add("user", parts=[{"type": "file", "data": CAT}, {"type": "file", "data": DOG}])).message
        names = [part.hash or "" for part in second.parts]
        assert names[0] == CAT_HASH
        await ann.take_back(first)
        assert await stored(memory, *names) == [True, True]
        await ann.erase(first)
        assert await stored(memory, *names) == [True, True], "Bob has it too"
        await memory.purge("bob", space="work")
        assert await stored(memory, *names) == [False, False]
        assert (await memory.verify()).ok


async def test_files_lie_beside_the_store(tmp_path: Path) -> None:
    place = tmp_path / "memory.db"
    async with aforesaid.connect(place) as memory:
        ann = memory.user("ann")
        await ann.add("user", "no attachment")
        assert not (tmp_path / "memory.db.attachments").exists()
        await ann.add("user", parts=[Part.of(CAT)])
        kept = tmp_path / "memory.db.attachments" / CAT_HASH[:2] / CAT_HASH
        assert kept.read_bytes() == CAT
    async with aforesaid.connect(place) as memory:
        assert await memory.attachment(CAT_HASH) == CAT
        kept.write_bytes(DOG)
        with pytest.raises(StoreDamaged):
            await memory.attachment(CAT_HASH)
        report = await memory.verify()
        assert not report.ok
        assert f"the attachment {CAT_HASH} is not what was stored" in str(report)


@pytest.mark.skipif(os.name == "nt", reason="it has no modes of folders")
async def test_folders_of_attachments_can_be_entered_by_their_owner_only(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        async with aforesaid.connect(tmp_path / "memory.db") as memory:
            await memory.user("ann").add("user", parts=[Part.of(CAT)])
            await memory.export(tmp_path / "all.jsonl")
            await memory.backup(tmp_path / "backup.db")
    finally:
        os.umask(before)
    folders = [each for each in tmp_path.rglob("*") if each.is_dir()]
    assert len([each for each in folders if each.suffix == ".attachments"]) == 3
    assert {each.stat().st_mode & 0o777 for each in folders} == {0o700}


async def test_bytes_that_were_not_stored_with_their_message_are_removed(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db") as memory:
        ann = memory.user("ann")
        with pytest.raises(NotFound):
            await ann.add("user", parts=[Part.of(CAT)], replaces="unknown")
        assert files(tmp_path / "memory.db.attachments") == []


@pytest.mark.parametrize("where", ["same memory", "another process"])
async def test_bytes_that_another_message_names_stay_when_the_first_one_fails(tmp_path: Path, where: str) -> None:
    path = tmp_path / "memory.db"
    first, failed = asyncio.Event(), asyncio.Event()
    async with opened(str(path), tmp_path) as memory, opened(str(path), tmp_path) as other:
        attachments = memory._services.attachments

        async def fails(_: tuple[Part, ...]) -> Receipt:
            first.set()
            await failed.wait()
            raise StoreRefused("not today")

        refused = asyncio.create_task(attachments.store_with([Part.of(CAT, "image/png")], fails))
        await first.wait()
        retried = memory if where == "same memory" else other
        await retried.user("ann").add("user", "look", parts=[Part.of(CAT, "image/png")])
        failed.set()
        with pytest.raises(StoreRefused):
            await refused
        assert await memory.attachment(CAT_HASH) == CAT


async def test_bytes_of_a_duplicate_are_not_left_behind(tmp_path: Path) -> None:
    folder = tmp_path / "memory.db.attachments"
    async with aforesaid.connect(tmp_path / "memory.db") as memory:
        ann = memory.user("ann")
        await ann.add("user", "a picture", id="p1", parts=[Part.of(CAT)])
        again = await ann.add("user", "a picture", id="p1", parts=[Part.of(DOG)])
        assert again.duplicate
        assert files(folder) == [CAT_HASH]
        (folder / CAT_HASH[:2] / CAT_HASH).unlink()
        await ann.add("user", "a picture", id="p1", parts=[Part.of(CAT)])
        assert files(folder) == [CAT_HASH], "the message names it, so a lost file is stored again"


async def test_bytes_go_with_messages_that_are_deleted_by_age(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db") as memory:
        ann = memory.user("ann")
        old = (await ann.add("user", parts=[Part.of(CAT)])).message
        await ann.add("user", parts=[Part.of(DOG)])
        await archive(memory.store, ann.scope, [old])
        await memory.store.apply([Discard("messages", LATEST)])
        assert files(tmp_path / "memory.db.attachments") == [sha256(DOG).hexdigest()]


async def test_an_edit_can_bring_bytes_and_erasing_removes_those_of_all_versions(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db") as memory:
        ann = memory.user("ann")
        first = (await ann.add("user", parts=[Part.of(CAT)])).message
        second = (await ann.edit(first, parts=[Part.of(DOG)])).message
        assert await memory.attachment(second.parts[0].hash or "") == DOG
        assert len(files(tmp_path / "memory.db.attachments")) == 2
        await ann.erase(second)
        assert files(tmp_path / "memory.db.attachments") == []


async def test_a_backup_has_the_bytes_and_restoring_brings_them_back(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db") as memory:
        await memory.user("ann").add("user", parts=[Part.of(CAT)])
        await memory.backup(tmp_path / "backup.db")
        await memory.purge("ann")
    assert files(tmp_path / "memory.db.attachments") == []
    restore_store(tmp_path / "backup.db", str(tmp_path / "memory.db"), replace=True)
    async with aforesaid.connect(tmp_path / "memory.db") as memory:
        (message,) = await memory.user("ann").history()
        assert await memory.attachment(message.parts[0].hash or "") == CAT


async def test_nothing_is_written_in_plain_beside_an_encrypted_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AFORESAID_KEY", "a secret key of the store")
    with pytest.raises(StoreRefused, match="not encrypted"):
        await attachments_of(tmp_path / "memory.db").put(CAT_HASH, CAT)
    assert files(tmp_path) == []
    monkeypatch.delenv("AFORESAID_KEY")
    with pytest.raises(StoreRefused, match="name one with the setting `attachments`"):
        await attachments_of("postgresql://localhost/x").put(CAT_HASH, CAT)


async def test_wrong_bytes_and_hashes_are_refused() -> None:
    async with aforesaid.connect(":memory:") as memory:
        ann = memory.user("ann")
        for wrong in ({"data": "text"}, {"data": CAT, "hash": "0" * 64}, {"data": CAT, "size": 1}):
            with pytest.raises(InvalidInput) as refused:
                await ann.add("user", parts=[{"type": "file", **wrong}])
            assert refused.value.field == "parts"
        with pytest.raises(InvalidInput):
            await memory.attachment("../../etc/passwd")
        with pytest.raises(NotFound):
            await memory.attachment("0" * 64)
        with pytest.raises(InvalidInput):
            await ann.add_many([{"role": "user", "parts": [Part.of(CAT)]}])
        assert await ann.history() == []


@pytest.mark.every_store
async def test_an_export_brings_the_bytes_along(location: str, tmp_path: Path) -> None:
    everything = tmp_path / "all.jsonl.gz"
    folder = tmp_path / "all.jsonl.gz.attachments"
    async with opened(location, tmp_path) as memory:
        await memory.user("ann").add("user", "look", parts=[Part.of(CAT), Part.of(DOG), Part.of(CAT)])
        done = await memory.export(everything)
        assert (done.attachments, done.missing_attachments, len(files(folder))) == (2, (), 2)
        again = await memory.load(everything)
        assert (again.attachments, again.missing_attachments) == (0, ())
        await memory.purge("ann")
        assert await stored(memory, CAT_HASH, DOG_HASH) == [False, False]
        trial = await memory.load(everything, dry_run=True)
        assert (trial.attachments, trial.missing_attachments) == (0, ())
        back = await memory.load(everything)
        assert (back.ok, back.attachments, back.missing_attachments) == (True, 2, ())
        assert [await memory.attachment(CAT_HASH), await memory.attachment(DOG_HASH)] == [CAT, DOG]
        assert (await memory.verify()).ok


async def test_an_import_names_the_attachments_that_are_damaged_or_missing(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db") as memory:
        await memory.user("ann").add("user", "look", parts=[Part.of(CAT), Part.of(DOG)])
        await memory.export(tmp_path / "all.jsonl")
        alone = await memory.export(tmp_path / "alone.jsonl", attachments=False)
        assert (alone.attachments, alone.missing_attachments) == (0, ())
    folder = tmp_path / "all.jsonl.attachments"
    (folder / CAT_HASH[:2] / CAT_HASH).write_bytes(DOG)
    async with aforesaid.connect(tmp_path / "other.db") as memory:
        alone_loaded = await memory.load(tmp_path / "alone.jsonl", dry_run=True)
        assert alone_loaded.missing_attachments == tuple(sorted([CAT_HASH, DOG_HASH]))
        loaded = await memory.load(tmp_path / "all.jsonl")
        assert (loaded.new["message"], loaded.attachments, loaded.missing_attachments) == (1, 1, (CAT_HASH,))
        assert await stored(memory, CAT_HASH, DOG_HASH) == [False, True]


async def test_an_export_names_the_attachments_that_the_store_has_lost(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db") as memory:
        await memory.user("ann").add("user", "look", parts=[Part.of(CAT), Part.of(DOG)])
        (tmp_path / "memory.db.attachments" / DOG_HASH[:2] / DOG_HASH).unlink()
        done = await memory.export(tmp_path / "all.jsonl")
        assert (done.attachments, done.missing_attachments) == (1, (DOG_HASH,))


async def test_an_import_with_attachments_is_refused_by_a_store_that_cannot_hold_them(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db") as memory:
        await memory.user("ann").add("user", "look", parts=[Part.of(CAT)])
        await memory.export(tmp_path / "all.jsonl")
    store = await open_store(tmp_path / "other.db")
    with pytest.raises(StoreRefused, match="no folder"):
        await Loader(store, ImportOptions(), Attachments(None, refusal="no folder")).load(tmp_path / "all.jsonl")
    assert (await store.read(Totals())).messages == 0
    await store.close()
