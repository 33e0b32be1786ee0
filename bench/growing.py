"""`make bench-growth`: the cost of each operation with a thousand, ten thousand, … up to millions of messages stored.

Kinds of growth: one user with more and more messages, and more and more users with a thousand each, with summaries and
memories, and with the log alone, which can be filled fast enough for millions; and, with the log alone, more and more
users with ten messages each, and more and more spaces. The floor is SQLite's own full-text search over the same texts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import apsw
import numpy as np
from evaluation.synthetic_chat import SyntheticChat
from measuring import heading, latencies
from measuring import row as line
from numpy.typing import NDArray
from peers.prepare import questions
from reports.growth import NAMES, slope, table, write_page, write_results
from reports.machine import machine
from searching import memory_used

from aforesaid.domain.message import Draft, draft
from aforesaid.domain.scope import Scope
from aforesaid.memory import Memory, UserMemory, connect
from aforesaid.store import open_store
from aforesaid.store.messages import AddMessage

BATCH = 1_000
SESSION = 50
WARM = 20
"""Maximum calls before those that are measured."""
BEGIN = datetime(2020, 1, 1, tzinfo=UTC)

PLAIN = {"summaries": "none", "extract": False}

Floats = NDArray[np.float32]
Figures = dict[str, Any]


@dataclass(frozen=True)
class Way:
    """A kind of growth."""

    each: int | None
    """Messages per user. None: one user has all of them."""
    plain: bool
    """The log alone, or with everything derived from it."""
    meaning: bool
    """Whether there are vectors."""
    sizes: tuple[int, ...]
    apart: bool = False
    """Whether each user is in a space of their own."""

    def people(self, size: int) -> int:
        """Return how many users have this many messages."""
        return 1 if self.each is None else max(size // self.each, 1)

    def scope(self, user: int) -> Scope:
        """Return the scope of a user."""
        return Scope.of(f"user{user}", space=f"space{user}") if self.apart else Scope.of(f"user{user}")


MILLION = (1_000, 10_000, 100_000, 1_000_000)
WAYS = {
    "one": Way(each=None, plain=False, meaning=True, sizes=(1_000, 10_000, 30_000)),
    "many": Way(each=1_000, plain=False, meaning=True, sizes=(1_000, 10_000, 30_000)),
    "log-one": Way(each=None, plain=True, meaning=True, sizes=MILLION),
    "log-many": Way(each=1_000, plain=True, meaning=False, sizes=MILLION),
    "people": Way(each=10, plain=True, meaning=False, sizes=MILLION),
    "spaces": Way(each=100, plain=True, meaning=False, sizes=MILLION, apart=True),
}
MOST_VERIFIED = 1_000_000


class Scattered:
    """A cheap embedder whose vectors are spread around two thousand centres, similar to those of texts."""

    name = "scattered"

    def __init__(self) -> None:
        chance = np.random.default_rng(1)
        self._centres = chance.standard_normal((2_000, 512)).astype(np.float32) / np.sqrt(512)
        self._noise = chance.standard_normal((4_001, 512)).astype(np.float32) * 0.03

    async def embed(self, texts: Sequence[str]) -> Floats:
        """Return one row per text, always the same for the same text."""
        keys = np.fromiter((sum(text.encode()[:40]) * 7919 + len(text) * 104729 for text in texts), dtype=np.int64)
        rows = self._centres[keys % len(self._centres)] + self._noise[keys % len(self._noise)]
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)

    async def close(self) -> None:
        """Do nothing."""


def moment(number: int) -> datetime:
    """Return the time of a user's n-th message: a minute after the one before, with a pause after every fifty."""
    return BEGIN + timedelta(minutes=number, hours=number // SESSION)


def messages(size: int, way: Way) -> Iterator[tuple[int, Draft]]:
    """Yield all messages, user by user, each with the number of its user."""
    talk, each = SyntheticChat(seed=2), way.each or size
    for number in range(size):
        user, own = divmod(number, each)
        role = "user" if own % 2 == 0 else "assistant"
        yield user, draft(way.scope(user), role, talk.text(), at=moment(own))


async def fill(path: Path, size: int, way: Way) -> float:
    """Store messages in change sets of a thousand; return the seconds."""
    store, waiting = await open_store(path), messages(size, way)
    start = time.perf_counter()
    while batch := [AddMessage(new) for _, new in islice(waiting, BATCH)]:
        await store.apply(batch)
    taken = time.perf_counter() - start
    await store.close()
    return taken


def floor(path: Path, size: int, way: Way, calls: int) -> Figures:
    """Measure SQLite's own full-text search over the same texts: synced adds, and searches of one user."""
    chosen, texts = questions(calls + WARM), list(SyntheticChat(seed=9).texts(calls))
    with closing(apsw.Connection(str(path))) as database:
        database.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
        database.execute("CREATE VIRTUAL TABLE message USING fts5(text, user UNINDEXED)")
        with database:
            insert = "INSERT INTO message (user, text) VALUES (?, ?)"
            database.executemany(insert, ((user, new.text) for user, new in messages(size, way)))
        people, search = (
            way.people(size),
            "SELECT rowid FROM message WHERE message MATCH ? AND user = ? ORDER BY rank LIMIT 10",
        )
        adds, searches = [], []
        for number, text in enumerate(texts):
            start = time.perf_counter()
            database.execute(insert, (number * 7919 % people, text))
            adds.append((time.perf_counter() - start) * 1_000)
        for number, question in enumerate(chosen):
            words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", question))
            start = time.perf_counter()
            list(database.execute(search, (words, number * 7919 % people)))
            searches.append((time.perf_counter() - start) * 1_000)
    return {"floor_add": _spread(adds), "floor_search": _spread(searches[WARM:])}


async def once(call: Callable[[], Awaitable[object]]) -> float:
    """Return how long a call took, in milliseconds."""
    start = time.perf_counter()
    await call()
    return (time.perf_counter() - start) * 1000


async def opening(path: Path, way: Way, rounds: int = 7) -> float:
    """Return the median time to open and read the newest message, in milliseconds."""
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        memory = await connect(path, embedder="none")
        await memory.user(way.scope(0).user, space=way.scope(0).space).history(1)
        taken.append((time.perf_counter() - start) * 1000)
        await memory.close()
    return statistics.median(taken)


async def upkeep(memory: Memory, user: UserMemory, texts: list[str]) -> float:
    """Return the milliseconds of upkeep per new message."""
    for number, text in enumerate(texts):
        await user.add("user" if number % 2 == 0 else "assistant", text)
    return await once(memory.upkeep) / len(texts)


async def ask(path: Path, size: int, way: Way, calls: int) -> Figures:
    """Measure everything on a file that is filled."""
    found: Figures = {"open": await opening(path, way)}
    warm = min(WARM, calls)
    talk, asked = SyntheticChat(seed=9), questions(calls + warm)
    people = way.people(size)
    embedder, profile = Scattered() if way.meaning else "none", PLAIN if way.plain else None
    # Upkeep is called explicitly, so that no background work runs during a measurement.
    async with connect(path, embedder=embedder, profile=profile, settings={"background": False}) as memory:
        scopes = [way.scope(number * 7919 % people) for number in range(calls + warm)]
        users = [memory.user(scope.user, space=scope.space) for scope in scopes]
        start = time.perf_counter()
        await memory.upkeep()
        found["first_upkeep"] = (time.perf_counter() - start) * 1000 / size
        texts = list(talk.texts(calls + warm))
        found["add"] = _spread(await latencies(lambda n: users[n].add("user", texts[n]), calls, warm))
        await memory.upkeep()
        found["upkeep"] = statistics.median([await upkeep(memory, users[n], texts[:20]) for n in range(5)])
        found["nothing_due"] = statistics.median([await once(memory.upkeep) for _ in range(5)])
        found["first_search"] = await once(lambda: users[0].search(asked[0]))
        found["search"] = _spread(await latencies(lambda n: users[n].search(asked[n]), calls, warm))
        found["context"] = _spread(await latencies(lambda n: users[n].context(asked[n]), calls, warm))
        found["memory_mb"] = memory_used()
        if size <= MOST_VERIFIED:
            start = time.perf_counter()
            report = await memory.verify()
            found["verify"] = (time.perf_counter() - start) * 1000
            assert report.ok, report
    return found


def _spread(taken: list[float]) -> dict[str, float]:
    return {"p50": statistics.median(taken), "p99": statistics.quantiles(taken, n=100)[98]}


def one(path: Path, size: int, way: Way, calls: int) -> Figures:
    """Measure one size; an existing file is not filled again."""
    found: Figures = {} if path.exists() else {"fill": asyncio.run(fill(path, size, way)) * 1000 / size}
    found |= asyncio.run(ask(path, size, way, calls))
    return found | {"bytes": path.stat().st_size / size} | floor(path.with_suffix(".floor"), size, way, calls)


def run(options: argparse.Namespace) -> Figures:
    """Measure every size in its own process."""
    heading("How cost grows")
    results: Figures = {"machine": machine(), "ways": {}}
    if options.onto is not None:
        results["ways"] |= json.loads(options.onto.read_text(encoding="utf-8"))["ways"]
    for way in options.ways:
        found = results["ways"].setdefault(way, {})
        for size in options.sizes or WAYS[way].sizes:
            with tempfile.TemporaryDirectory(prefix="aforesaid-growth-", dir=options.folder) as folder:
                command = [sys.executable, __file__, "--one", way, str(size), "--calls", str(options.calls)]
                file = options.file or Path(folder) / "memory.db"
                ran = subprocess.run(  # noqa: S603 - this program
                    [*command, "--file", str(file)], stdout=subprocess.PIPE, text=True, check=True
                )
            found[str(size)] = json.loads(ran.stdout)
            line(f"{way}, {size:,}", ran.stdout.strip())
            write_results(options.results, results)
        for key, name in NAMES.items():
            grown = slope(found, key)
            line(name, "–" if grown is None else f"slope {grown:+.2f}")
    return results


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", help="sizes to measure instead of the default ones")
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--onto", type=Path, help="add to the results of this file")
    parser.add_argument("--calls", type=int, default=200, help="number of measured adds, searches and contexts")
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="folder for the databases, on a real disk")
    parser.add_argument("--results", type=Path, default=Path("bench/results"), help="folder for figures and charts")
    parser.add_argument("--page", type=Path, help="documentation page to update with tables and charts")
    parser.add_argument("--again", type=Path, help="measure nothing; rewrite tables and charts from this file")
    parser.add_argument("--one", nargs=2, metavar=("WAY", "SIZE"), help="measure one size and print it")
    parser.add_argument("--file", type=Path, help="file to measure; filled if it does not exist")
    parser.add_argument("--fill", action="store_true", help="with --one and --file: only fill the file")
    return parser.parse_args()


def main() -> None:
    """Measure, and write the results."""
    options = arguments()
    if options.one is not None:
        way, size = WAYS[options.one[0]], int(options.one[1])
        if options.fill:
            print(asyncio.run(fill(options.file, size, way)) * 1000 / size, "ms per message")
        else:
            print(json.dumps(one(options.file, size, way, options.calls)))
        return
    results = run(options) if options.again is None else json.loads(options.again.read_text(encoding="utf-8"))
    write_results(options.results, results)
    print(f"\n{table(results)}\n\nwrote {options.results}")
    if options.page is not None:
        write_page(options.page, results)


if __name__ == "__main__":
    main()
