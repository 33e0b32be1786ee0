"""An import that is killed again and again: when it gets to its end, everything is there once, in order."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

from aforesaid.domain.message import Message
from aforesaid.portability.importing import ImportOptions, Loader
from aforesaid.store import Store, open_store
from torture.support import Size

IMPORT = [str(Path(sys.executable).with_name("aforesaid")), "import", "talk.jsonl", "--store", "memory.db"]


def write_talk(path: Path, messages: int) -> list[str]:
    chance = random.Random(11)
    ids = []
    with path.open("w", encoding="utf-8") as out:
        for number in range(messages):
            ids.append(f"m{number}")
            said = {"role": "user", "user": f"u{chance.randrange(9)}", "thread": f"t{number % 3}", "id": ids[-1]}
            out.write(json.dumps({**said, "content": f"message {number}", "timestamp": 1_700_000_000 + number}) + "\n")
    return ids


def bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("memory.db*"))


def import_until(folder: Path, grown_by: int) -> int:
    """Import, and kill it once the files have grown so much; return how it ended."""
    before = bytes_in(folder)
    running = subprocess.Popen(IMPORT, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while running.poll() is None and bytes_in(folder) < before + grown_by:
        time.sleep(0.005)
    if running.poll() is None:
        os.kill(running.pid, 9)
    return running.wait()


async def ids_in(store: Store) -> list[str]:
    return [row.id async for page in store.dump() for row in page if isinstance(row, Message)]


async def test_an_import_that_is_killed_again_and_again_arrives_whole(tmp_path: Path, size: Size) -> None:
    ids = write_talk(tmp_path / "talk.jsonl", size.of(small=2_000, full=200_000))
    chance, kills = random.Random(5), 0
    for _ in range(size.of(small=1, full=40)):
        kills += import_until(tmp_path, chance.randrange(100_000, size.of(small=400_000, full=2_000_000))) == -9
    assert kills
    store = await open_store(tmp_path / "memory.db")
    report = await Loader(store, ImportOptions()).load(tmp_path / "talk.jsonl")
    assert (report.ok, report.found["message"]) == (True, len(ids))
    assert await ids_in(store) == ids
    assert (await store.verify()).ok
    await store.close()
