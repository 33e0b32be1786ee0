"""Copies of a file that is in use, and what takes its place."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from aforesaid.domain.scope import Scope
from aforesaid.errors import InvalidInput, StoreBusy, StoreDamaged, StoreFailed, StoreRefused, StoreUnavailable
from aforesaid.store import open_store, restore_store
from aforesaid.store.messages import Messages
from aforesaid.store.unfinished import remove_abandoned
from making import add, adding
from store.processes import KILLED, run_program

ANN = Scope.of("ann")


async def test_a_backup_made_while_writing_is_complete_and_can_be_restored(path: Path, tmp_path: Path) -> None:
    store = await open_store(path)
    before = await add(store, ANN, *[f"message {number}" for number in range(30)])
    copy = tmp_path / "copies" / "memory.db"

    async def keep_writing() -> None:
        for number in range(30):
            await store.apply([adding(ANN, f"during {number}")])

    await asyncio.gather(store.backup(copy), keep_writing())
    with pytest.raises(InvalidInput, match="exists already"):
        await store.backup(copy)
    with pytest.raises(InvalidInput, match="exists already"):
        restore_store(copy, path, replace=False)
    with pytest.raises(StoreBusy, match="in use"):
        await asyncio.to_thread(restore_store, copy, path, replace=True)
    await store.close()
    assert [entry.name for entry in copy.parent.iterdir()] == ["memory.db"]

    aside = await asyncio.to_thread(restore_store, copy, path, replace=True)
    assert aside is not None
    restored = await open_store(path)
    texts = [message.text for message in await restored.read(Messages(ANN, limit=100))]
    assert texts[:30] == [message.text for message in before]
    assert texts[30:] == [f"during {number}" for number in range(len(texts) - 30)]
    assert (await restored.verify()).ok
    await restored.close()
    set_aside = await open_store(aside)
    assert len(await set_aside.read(Messages(ANN, limit=100))) == 60
    await set_aside.close()


async def backed_up(path: Path, target: Path) -> None:
    store = await open_store(path)
    await add(store, ANN, "in the backup")
    await store.backup(target)
    await add(store, ANN, "later")
    await store.close()


async def test_a_log_left_by_a_crash_never_meets_the_restored_file(path: Path, tmp_path: Path) -> None:
    await backed_up(path, tmp_path / "copy.db")
    await run_program(KILLED, path)
    assert path.with_name("memory.db-wal").exists()
    path.unlink()
    restore_store(tmp_path / "copy.db", path, replace=False)
    store = await open_store(path)
    assert [message.text for message in await store.read(Messages(ANN))] == ["in the backup"]
    assert (await store.verify()).ok
    await store.close()
    assert [entry for entry in tmp_path.iterdir() if entry.name.endswith("-wal")]


@pytest.mark.parametrize("rubbish", [b"not a database at all " * 100, b""])
async def test_what_is_damaged_can_be_replaced_by_a_backup(path: Path, tmp_path: Path, rubbish: bytes) -> None:
    await backed_up(path, tmp_path / "copy.db")
    path.write_bytes(rubbish)
    aside = restore_store(tmp_path / "copy.db", path, replace=True)
    assert aside is not None
    assert aside.read_bytes() == rubbish
    store = await open_store(path)
    assert [message.text for message in await store.read(Messages(ANN))] == ["in the backup"]
    await store.close()


async def test_restoring_leaves_the_backup_as_it_is(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    await backed_up(path, copy)
    before = copy.read_bytes()
    copy.chmod(0o400)
    restore_store(copy, path, replace=True)
    assert copy.read_bytes() == before


async def test_a_restore_that_fails_leaves_the_store_where_it_is(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await backed_up(path, tmp_path / "copy.db")

    def fail(*_args: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(StoreFailed):
        restore_store(tmp_path / "copy.db", path, replace=True)
    monkeypatch.undo()
    store = await open_store(path)
    assert [message.text for message in await store.read(Messages(ANN))] == ["in the backup", "later"]
    await store.close()


async def test_of_many_backups_to_one_name_one_wins_and_is_whole(path: Path, tmp_path: Path) -> None:
    store = await open_store(path)
    await add(store, ANN, *["some text"] * 50)
    copy = tmp_path / "copies" / "copy.db"
    outcomes = await asyncio.gather(*[store.backup(copy) for _ in range(4)], return_exceptions=True)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["InvalidInput"] * 3 + ["NoneType"]
    assert [entry.name for entry in copy.parent.iterdir()] == ["copy.db"]
    restore_store(copy, tmp_path / "again.db", replace=False)
    with pytest.raises(StoreUnavailable, match="check the folder and its rights"):
        await store.backup(Path("/proc/no/such/place.db"))
    await store.close()


async def test_a_backup_begins_again_if_another_removes_its_file_before_it_is_locked(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_store(path)
    await add(store, ANN, "some text")
    create, removed = os.open, list[Path]()

    def create_and_lose(name: Path, flags: int, *mode: int) -> int:
        handle = create(name, flags, *mode)
        if flags & os.O_CREAT and not removed:
            removed.append(name)
            remove_abandoned(tmp_path)
        return handle

    monkeypatch.setattr(os, "open", create_and_lose)
    await store.backup(tmp_path / "copy.db")
    monkeypatch.undo()
    assert removed
    assert not removed[0].exists()
    assert restore_store(tmp_path / "copy.db", tmp_path / "again.db", replace=False) is None
    await store.close()


async def test_a_file_system_without_links_can_hold_backups(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_store(path)
    await add(store, ANN, "some text")

    def fail(*_args: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", fail)
    await store.backup(tmp_path / "copy.db")
    with pytest.raises(InvalidInput, match="exists already"):
        await store.backup(tmp_path / "copy.db")
    await store.close()
    assert restore_store(tmp_path / "copy.db", path, replace=True) is not None


async def test_what_is_no_backup_is_not_restored(path: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no backup at"):
        restore_store(tmp_path / "missing.db", path, replace=False)
    (tmp_path / "text.db").write_text("not a database at all, really " * 100)
    with pytest.raises(StoreRefused):
        restore_store(tmp_path / "text.db", path, replace=False)
    store = await open_store(path)
    await add(store, ANN, *["some text " * 50] * 50)
    await store.backup(tmp_path / "torn.db")
    await store.close()
    torn = bytearray((tmp_path / "torn.db").read_bytes())
    torn[40_000:60_000] = bytes(20_000)
    (tmp_path / "torn.db").write_bytes(torn)
    with pytest.raises((StoreDamaged, StoreRefused)):
        restore_store(tmp_path / "torn.db", tmp_path / "new.db", replace=False)
    assert not (tmp_path / "new.db").exists()
    assert len(list(tmp_path.iterdir())) == 3
