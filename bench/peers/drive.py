"""Runs one library in its own process: `drive.py TASK KEY FOLDER …` prints one line of JSON.

Everybody gets a fresh process, so that nobody pays for what another has loaded.
"""

from __future__ import annotations

import asyncio
import json
import resource
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from peers.contract import Peer, Said
from peers.registry import peer
from peers.vectors import Vectors, load, really

BATCH = 100
FEW = 10
"""Number of warm-up calls."""

Call = Callable[[int], Awaitable[object]]


def memory_used() -> float:
    """Return the resident memory of the process, in megabytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


def size_of(folder: Path) -> float:
    """Return the size of a folder in megabytes."""
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*") if file.is_file()) / 1e6


def messages(texts: Sequence[str], first: int) -> list[Said]:
    """Return texts as the two sides of a conversation."""
    return [
        Said(str(number), "user" if number % 2 == 0 else "assistant", text) for number, text in enumerate(texts, first)
    ]


async def timed(call: Call, most: int, seconds: float) -> dict[str, float]:
    """Call up to a count and a time limit, and return the milliseconds of the calls."""
    end = time.perf_counter() + seconds
    for number in range(FEW):
        await call(number)
        if time.perf_counter() > end - seconds / 2:
            break
    taken: list[float] = []
    for number in range(most):
        start = time.perf_counter()
        await call(FEW + number)
        now = time.perf_counter()
        taken.append((now - start) * 1000)
        if now > end:
            break
    cut = statistics.quantiles(taken, n=100)[98] if len(taken) > 1 else taken[0]
    return {"p50": statistics.median(taken), "p99": min(cut, max(taken)), "calls": len(taken)}


async def fill(memory: Peer, texts: Sequence[str], seconds: float) -> tuple[int, float]:
    """Add in batches until the time limit. Return the number of messages and the seconds."""
    start = time.perf_counter()
    for first in range(0, len(texts), BATCH):
        await memory.add_many(messages(texts[first : first + BATCH], first))
        if time.perf_counter() - start > seconds:
            return first + BATCH, time.perf_counter() - start
    return len(texts), time.perf_counter() - start


async def speed(key: str, folder: Path, prepared: Path, size: int, seconds: float, calls: int) -> dict[str, Any]:
    """Fill a memory, then add one by one, search and build contexts."""
    said = json.loads((prepared / "said.json").read_text(encoding="utf-8"))
    vectors, questions = load(prepared), said["questions"]
    texts, more = said["texts"][:size], said["more"]
    before = memory_used()
    memory = peer(key)
    about = memory.about
    await memory.open(folder, vectors)
    stored, filling = await fill(memory, texts, seconds)
    result: dict[str, Any] = {"stored": stored, "fill_seconds": filling}
    if stored < size:
        await memory.close()
        return result | {"over": seconds}
    start = time.perf_counter()
    await memory.settle()
    result["settle_seconds"] = time.perf_counter() - start
    single = messages(more, size)
    result["add"] = await timed(lambda number: memory.add(single[number]), calls, seconds / 6)
    await memory.settle()
    if about.no_search is None:
        start = time.perf_counter()
        await memory.search(questions[0], 10)
        result["first_search_ms"] = (time.perf_counter() - start) * 1000
        result["search"] = await timed(lambda number: memory.search(questions[number], 10), calls, seconds / 6)
    if about.no_context is None:
        result["context"] = await timed(lambda number: memory.context(questions[number]), calls, seconds / 6)
        result["context_items"] = await memory.context(questions[0])
    result["unknown"] = vectors.missed
    result["memory_mb"] = memory_used() - before
    await memory.close()
    if about.no_disk is None:
        result["disk_mb"] = size_of(folder)
    return result


async def cold(key: str, folder: Path, prepared: Path) -> dict[str, Any]:
    """Open the memory and answer one query. The parent process measures the time."""
    given = json.loads((prepared / "question.json").read_text(encoding="utf-8"))
    memory = peer(key)
    if memory.about.no_search is None:
        import numpy as np  # noqa: PLC0415 - those without vectors do not wait for it

        await memory.open(folder, Vectors([given["text"]], np.asarray([given["row"]], dtype=np.float32)))
        found = len(await memory.search(given["text"], 10))
    else:
        await memory.open(folder, Vectors([], []))
        found = await memory.context(given["text"])
    print(json.dumps({"found": found}), flush=True)  # before closing: the answer is there
    await memory.close()
    return {}


async def syncs(key: str, folder: Path, prepared: Path, count: int) -> dict[str, Any]:
    """Add messages one by one; the tracing parent process counts the syncs."""
    vectors = load(prepared)
    said = json.loads((prepared / "said.json").read_text(encoding="utf-8"))
    memory = peer(key)
    await memory.open(folder, vectors)
    for each in messages(said["more"][:count], 0):
        await memory.add(each)
    # Closing the memory and the process is not part of an add.
    print(json.dumps({"added": count}), flush=True)
    await memory.close()
    return {}


def as_said(turn: dict[str, str], variant: str) -> Said:
    """Return a turn as a message, with or without the speaker in its text."""
    text = turn["spoken" if variant == "speaker" else "text"]
    return Said(turn["id"], turn["role"], text, datetime.fromisoformat(turn["at"]), turn["speaker"], turn["session"])


async def recall(key: str, folder: Path, prepared: Path, variant: str, seconds: float) -> dict[str, Any]:
    """Ask every question of every conversation; each conversation has its own memory."""
    vectors = load(prepared)
    if (prepared / "local").exists():
        vectors.otherwise = really
    conversations = json.loads((prepared / "conversations.json").read_text(encoding="utf-8"))
    shares, latencies, end = [], [], time.perf_counter() + seconds
    for place, conversation in enumerate(conversations):
        memory = peer(key)
        home = folder / str(place)
        home.mkdir()
        await memory.open(home, vectors)
        said = [as_said(turn, variant) for turn in conversation["turns"]]
        step = 1 if memory.about.one_by_one else BATCH
        for first in range(0, len(said), step):
            await memory.add_many(said[first : first + step])
        await memory.settle()
        for question in conversation["questions"]:
            start = time.perf_counter()
            found = await memory.search(question["text"], 10, datetime.fromisoformat(question["at"]))
            latencies.append((time.perf_counter() - start) * 1000)
            shares.append(len(set(found[:10]) & set(question["turns"])) / len(set(question["turns"])))
            if time.perf_counter() > end:
                await memory.close()
                return {"over": seconds}
        await memory.close()
    return {
        "recall_at_10": statistics.fmean(shares),
        "questions": len(shares),
        "p50": statistics.median(latencies),
        "unknown": vectors.missed,
    }


def main() -> None:
    """Do one task."""
    task, key, folder, prepared, *rest = sys.argv[1:]
    there = (key, Path(folder), Path(prepared))
    if task == "speed":
        result = asyncio.run(speed(*there, int(rest[0]), float(rest[1]), int(rest[2])))
    elif task == "cold":
        result = asyncio.run(cold(*there))
    elif task == "syncs":
        result = asyncio.run(syncs(*there, int(rest[0])))
    else:
        result = asyncio.run(recall(*there, rest[0], float(rest[1])))
    if result:
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
