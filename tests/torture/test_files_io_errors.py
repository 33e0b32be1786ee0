"""A call of the system fails, or the process dies at it: files are the old or the new ones, and nothing is lost."""

from __future__ import annotations

import asyncio
import errno
import json
import shutil
import signal
from pathlib import Path

import pytest

from aforesaid.domain.scope import Scope
from aforesaid.store import open_store
from aforesaid.store.messages import Messages
from faulty import FailingDisk
from making import add
from torture.files_victim import layout_at, live_on
from torture.support import Figures, Size
from torture.zygote import Zygote

ANN = Scope.of("ann")
KINDS = ("json", "files")
COUNTED = ("calls", "acknowledged messages", "refused messages", "losses")


async def begin(place: str) -> None:
    store = await open_store(place)
    await add(store, ANN, "old 1", "old 2")
    await store.close()


async def found(folder: Path, place: str) -> list[str]:
    """Open the files as anybody would afterwards, and return what is in them."""
    for path in folder.rglob("*.json"):
        json.loads(path.read_text(encoding="utf-8"))
    store = await open_store(place)
    texts = [message.text for message in await store.read(Messages(ANN))]
    report = await store.verify()
    assert report.ok, report
    await store.close()
    return texts


def fresh(arena: Path, kind: str) -> tuple[Path, str]:
    """Return a folder with a store that has two messages."""
    start, live = arena / "start", arena / "live"
    if not start.exists():
        asyncio.run(begin(f"{kind}:{start / 'memory'}"))
    shutil.rmtree(live, ignore_errors=True)
    shutil.copytree(start, live)
    return live, f"{kind}:{live / 'memory'}"


@pytest.mark.req("A5")
@pytest.mark.parametrize("in_a_row", [1, 3])
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_call_fails_files_are_old_or_new(
    kind: str, number: int, in_a_row: int, arena: Path, size: Size
) -> None:
    figures = Figures(f"{errno.errorcode[number]} under {kind}, {in_a_row} in a row", *COUNTED)
    for first in range(1, 10_000, size.step(small=4 if kind == "json" else 11)):
        live, place = fresh(arena, kind)
        disk = FailingDisk(first, number, in_a_row)
        acknowledged: list[str] = []
        refused = asyncio.run(live_on(layout_at(place), disk, acknowledged.append))
        assert asyncio.run(found(live, place)) == ["old 1", "old 2", *acknowledged], f"call {first}, refused {refused}"
        figures.add("acknowledged messages", len(acknowledged))
        figures.add("refused messages", len(refused))
        if not disk.raised:
            break
        figures.add("calls")
    figures.show()
    # Messages are in the database, which is not on the disk that fails (`test_io_errors.py` is about those that are).
    assert figures["refused messages"] == 0
    assert figures["calls"] > 0


@pytest.mark.req("A5")
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_call_is_the_last_files_are_old_or_new(kind: str, arena: Path, size: Size) -> None:
    figures = Figures(f"kill at a call under {kind}", *COUNTED)
    with Zygote("torture.files_victim") as zygote:
        for fatal in range(1, 10_000, size.step(small=3 if kind == "json" else 11)):
            live, place = fresh(arena, kind)
            child = zygote.start("live_until_killed", place=place, fatal=fatal)
            acknowledged, status = [], 0
            for _, what, said in zygote.listen():
                if what == "heard":
                    acknowledged.append(said)
                elif what == "ended":
                    status = said
                    break
                else:
                    assert what == "born", (child, said)
            texts = asyncio.run(found(live, place))
            # What was being written when the process died may be there, and nothing after it.
            assert texts[: len(acknowledged) + 2] == ["old 1", "old 2", *acknowledged], f"call {fatal}"
            assert texts[len(acknowledged) + 2 :] in ([], [f"new {len(acknowledged)}"]), f"call {fatal}"
            figures.add("acknowledged messages", len(acknowledged))
            if status == 0:
                break
            assert status == -signal.SIGKILL
            figures.add("calls")
    figures.show()
    assert figures["calls"] > 0
