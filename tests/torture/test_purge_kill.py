"""`kill -9` in the middle of a purge: after the next opening, Ann is there as before, or no byte of her is left."""

from __future__ import annotations

import asyncio
import shutil
import signal
from pathlib import Path
from random import Random

import pytest

from aforesaid.domain.scope import Scope
from aforesaid.store import open_store
from aforesaid.store.messages import Messages
from aforesaid.store.people import Users
from making import add
from torture.support import Figures, Size
from torture.zygote import Zygote

ANN, BOB = Scope.of("ann"), Scope.of("bob")
SECRET = "quizzaciously"  # noqa: S105 - a word to look for
LONGEST_PURGE = {"sqlite": 0.05, "json": 0.01, "files": 0.02}
"""Seconds of a purge after which the process is killed at the latest."""


async def fill(place: str) -> None:
    store = await open_store(place)
    for number in range(40):
        await add(store, ANN, f"{SECRET} number {number}")
        await add(store, BOB, f"an answer {number}")
    await store.close()


async def left(folder: Path, place: str) -> tuple[bool, bool]:
    """Open the store as anybody would, and return whether Ann is there, and whether a byte of hers is."""
    store = await open_store(place)
    there = "ann" in [user.id for user in await store.read(Users())]
    assert (await store.verify()).ok
    assert len(await store.read(Messages(BOB, limit=100))) == 40
    found = any(SECRET.encode() in path.read_bytes() for path in folder.rglob("*") if path.is_file())
    await store.close()
    return there, found


@pytest.mark.defect("D7")
@pytest.mark.parametrize("kind", ["sqlite", "json", "files"])
def test_a_purge_killed_at_any_moment_leaves_no_byte_after_the_next_opening(
    kind: str, tmp_path: Path, arena: Path, size: Size
) -> None:
    counted = ("rounds", "kills", "before it began", "in between", "finished", "traces")
    figures = Figures(f"purges killed under {kind}", *counted)
    chance = Random(7)
    start, live = tmp_path / "start", arena / "live"
    start.mkdir()
    asyncio.run(fill(f"{kind}:{start / 'memory'}"))
    with Zygote("torture.purge_victim") as zygote:
        # With all three kinds, 1,002 purges that were killed; those that ended before it come on top.
        while figures["kills"] < size.of(small=4, full=334):
            shutil.rmtree(live, ignore_errors=True)
            shutil.copytree(start, live)
            place = f"{kind}:{live / 'memory'}"
            zygote.start("purge_until_killed", place=place, seconds=0.0001 + chance.random() * LONGEST_PURGE[kind])
            purged = False
            for _, what, said in zygote.listen():
                if what == "purged":
                    purged = True
                elif what == "ended":
                    assert said in (0, -signal.SIGALRM)
                    figures.add("kills", int(said != 0))
                    break
            there, traces = asyncio.run(left(live, place))
            figures.add("rounds")
            figures.add("before it began" if there else "finished" if purged else "in between")
            assert not (purged and there)
            assert there or not traces
    figures.show()
    if size.full:
        assert figures["in between"] > 0
