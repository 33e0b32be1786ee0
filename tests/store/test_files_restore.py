"""Restoring a backup over files: whatever fails, the old store or the new one is there."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

from aforesaid.domain.scope import Scope
from aforesaid.errors import StoreError
from aforesaid.store import open_store, restore_store
from aforesaid.store.messages import Messages
from aforesaid.store.readable import restore
from faulty import FailingDisk
from making import add
from torture.files_victim import layout_at

ANN, BOB, CAROL = Scope.of("ann"), Scope.of("bob"), Scope.of("carol")
FOREVER = 1_000_000
OLD = {"ann": ["old 1", "old 2"], "bob": ["old 3"], "carol": []}
NEW = {"ann": ["new 1"], "bob": [], "carol": ["new 2"]}


async def texts(place: str) -> dict[str, list[str]]:
    """Open the store as anybody would, check it, and return what everybody said."""
    store = await open_store(place)
    try:
        assert (await store.verify()).ok
        people = {"ann": ANN, "bob": BOB, "carol": CAROL}
        return {name: [message.text for message in await store.read(Messages(who))] for name, who in people.items()}
    finally:
        await store.close()


async def prepare(folder: Path, kind: str) -> None:
    """Make a store whose last message is in the journal alone, and the backup of another one."""
    (folder / "start").mkdir()
    store = await open_store(f"{kind}:{folder / 'used' / 'memory'}")
    await add(store, ANN, "old 1")
    await add(store, BOB, "old 3")
    await store.close()
    store = await open_store(f"{kind}:{folder / 'used' / 'memory'}")
    await add(store, ANN, "old 2")
    shutil.copytree(folder / "used", folder / "start", dirs_exist_ok=True)
    await store.close()
    store = await open_store(f"{kind}:{folder / 'other' / 'memory'}")
    await add(store, ANN, "new 1")
    await add(store, CAROL, "new 2")
    await store.backup(folder / "backup")
    await store.close()


@pytest.mark.defect("D2")
@pytest.mark.parametrize("calls_that_fail", [1, FOREVER], ids=["an error", "a crash"])
@pytest.mark.parametrize("kind", ["json", "files"])
async def test_a_restore_that_fails_at_any_call_leaves_the_old_store(
    kind: str, calls_that_fail: int, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    await prepare(tmp_path, kind)
    live = tmp_path / "live"
    place = f"{kind}:{live / 'memory'}"
    backup = layout_at(f"{kind}:{tmp_path / 'backup'}")
    failures = 0
    for first in range(1, 1_000, 1 if kind == "json" or pytestconfig.getoption("--torture") else 11):
        shutil.rmtree(live, ignore_errors=True)
        shutil.copytree(tmp_path / "start", live)
        disk = FailingDisk(first, errno.EIO, calls_that_fail)
        try:
            restore(backup, layout_at(place), replace=True, disk=disk)
        except StoreError:
            failures += 1
            assert await texts(place) == OLD, f"call {first}"
            # Where a disk fails for good, they cannot be removed.
            assert calls_that_fail > 1 or not list(live.rglob("*before-restore*.json")), f"call {first}"
        else:
            assert await texts(place) == NEW
            if not disk.raised:
                break
    assert failures > 10


@pytest.mark.parametrize("kind", ["json", "files"])
async def test_the_old_store_is_set_aside_whole(kind: str, tmp_path: Path) -> None:
    await prepare(tmp_path, kind)
    place = f"{kind}:{tmp_path / 'start' / 'memory'}"
    aside = restore_store(tmp_path / "backup", place, replace=True)
    assert aside is not None
    assert await texts(place) == NEW
    assert await texts(f"{kind}:{aside}") == OLD
