"""`kill -9` before each call of a restore that changes a file: the old memory or the new one is there, whole."""

from __future__ import annotations

import asyncio
import shutil
import signal
from pathlib import Path

import pytest

from store.test_files_restore import NEW, OLD, prepare, texts
from torture.support import Figures, Size
from torture.zygote import Zygote


def restore(zygote: Zygote, live: Path, start: Path, place: str, fatal: int) -> int | None:
    """Restore over a fresh copy of the old store. Return how many calls it took; None if it was killed."""
    shutil.rmtree(live, ignore_errors=True)
    shutil.copytree(start, live)
    zygote.start("restore_until_killed", place=place, backup=str(start.parent / "backup"), fatal=fatal)
    calls: int | None = None
    for _, what, said in zygote.listen():
        if what == "restored":
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
