"""`kill -9` before each call of a backup or a restore that changes a file: whatever has its name is whole."""

from __future__ import annotations

import asyncio
import shutil
import signal
from hashlib import sha256
from pathlib import Path

import pytest

from aforesaid.store import open_store
from aforesaid.store.attachments import Attachments, folder_of
from making import add
from store.test_files_restore import ANN, BOB, CAROL, NEW, OLD, prepare, texts
from torture.support import Figures, Size
from torture.zygote import Zygote

PICTURE = bytes(range(256)) * 40


def restore(zygote: Zygote, live: Path, start: Path, place: str, fatal: int) -> int | None:
    """Restore over a fresh copy of the old store. Return how many calls it took; None if it was killed."""
    shutil.rmtree(live, ignore_errors=True)
    shutil.copytree(start, live)
    return run(zygote, "restore_until_killed", place=place, backup=str(start.parent / "backup"), fatal=fatal)


def run(zygote: Zygote, what_is_done: str, **options: object) -> int | None:
    """Have a process do something. Return how many calls it took; None if it was killed."""
    zygote.start(what_is_done, **options)
    calls: int | None = None
    for _, what, said in zygote.listen():
        if what in ("restored", "backed up"):
            calls = said
        elif what == "ended":
            assert said == (0 if calls is not None else -signal.SIGKILL)
            break
        else:
            assert what == "born", said
    return calls


@pytest.mark.defect("D2")
@pytest.mark.parametrize("kind", ["sqlite", "json", "files"])
def test_a_restore_killed_before_any_call_leaves_the_old_or_the_new_memory(kind: str, arena: Path, size: Size) -> None:
    figures = Figures(f"restores killed under {kind}", "calls", "kills", "old", "new")
    asyncio.run(prepare(arena, kind))
    live = arena / "live"
    place = f"{kind}:{live / 'memory'}"
    with Zygote("torture.restore_victim") as zygote:
        calls = restore(zygote, live, arena / "start", place, 0)
        assert calls is not None
        figures.add("calls", calls)
        assert asyncio.run(texts(place)) == NEW
        found: list[bool] = []
        for fatal in range(1, calls + 1, size.step(small=max(1, calls // 8))):
            if restore(zygote, live, arena / "start", place, fatal) is not None:
                continue  # the names of temporary files differ, and with them the number of calls by one or two
            figures.add("kills")
            there = asyncio.run(texts(place))
            assert there in (OLD, NEW), f"killed before call {fatal} of {calls}"
            found.append(there == NEW)
            figures.add("new" if there == NEW else "old")
    figures.show()
    assert figures["kills"] > 6
    assert found == sorted(found), "once the new memory was there, it stays"


@pytest.mark.defect("W6")
@pytest.mark.parametrize("kind", ["sqlite", "json", "files"])
def test_a_backup_killed_before_any_call_is_whole_or_has_no_name(kind: str, arena: Path, size: Size) -> None:
    figures = Figures(f"backups killed under {kind}", "calls", "kills", "whole")
    place, backup = f"{kind}:{arena / 'memory'}", arena / "backup"
    said = asyncio.run(fill(place))
    asyncio.run(Attachments(folder_of(arena / "memory")).put(sha256(PICTURE).hexdigest(), PICTURE))
    with Zygote("torture.restore_victim") as zygote:
        calls = run(zygote, "back_up_until_killed", place=place, backup=str(backup), fatal=0)
        assert calls is not None
        figures.add("calls", calls)
        for fatal in range(1, calls + 1, size.step(small=max(1, calls // 10))):
            for left in arena.glob("backup*"):
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            if run(zygote, "back_up_until_killed", place=place, backup=str(backup), fatal=fatal) is None:
                figures.add("kills")
            if backup.exists():
                figures.add("whole")
                assert asyncio.run(texts(f"{kind}:{backup}")) == said, f"killed before call {fatal} of {calls}"
                assert list(Attachments(folder_of(backup)).check()) == []
                assert len(list(Attachments(folder_of(backup)).names())) == 1
    figures.show()
    assert figures["kills"] > 6


async def fill(place: str) -> dict[str, list[str]]:
    store = await open_store(place)
    for number in range(12):
        await add(store, (ANN, BOB, CAROL)[number % 3], f"tea {number}")
    await store.close()
    return await texts(place)
