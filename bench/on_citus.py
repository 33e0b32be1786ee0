"""Adds per second on a real Citus cluster, with one worker and with two, next to tables that are not distributed.

    python bench/on_citus.py [--messages 2000] [--callers 64] [--spaces 32] [--rounds 3]

Starts a coordinator and two workers on this machine (as root, on arm64 or with Citus installed; see tests/citus.py).
All share its cores, so the processor time of each node says more about several machines than the rate does. Also prints
the number of statements on shards per call.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import psycopg
from filled_postgres import Population
from measuring import heading, row

from aforesaid.memory import Memory, connect
from aforesaid.settings import Settings
from citus import Cluster, distribute

NODES = ("coordinator", "worker1", "worker2")
# Tables with another number of shards are not placed beside the first ones.
SHARDS = {"one worker": 32, "two workers": 30}


def prepare(cluster: Cluster, name: str) -> str:
    """Create the tables in a schema of their own, distribute them as its name says, and return where they are."""
    schema = name.replace(" ", "_")
    with psycopg.connect(cluster.dsn, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
    dsn = f"{cluster.dsn}?options=-c%20search_path%3D{schema},public%20-c%20citus.shard_count%3D{SHARDS.get(name, 1)}"
    if name in SHARDS:
        with cluster.admin() as admin:
            admin.execute(
                "SELECT citus_set_node_property('127.0.0.1', %s, 'shouldhaveshards', %s)",
                (cluster.port + 2, name == "two workers"),
            )
        distribute(dsn)
    return dsn


def processor_seconds(cluster: Cluster) -> dict[str, float]:
    """Return the processor time of all processes of each node, and of those of them that have ended."""
    ticks, spent = os.sysconf("SC_CLK_TCK"), {}
    for node in NODES:
        postmaster = int((cluster.folder / node / "postmaster.pid").read_text().split()[0])
        total = 0
        for process in Path("/proc").iterdir():
            try:
                fields = (process / "stat").read_text().rpartition(")")[2].split() if process.name.isdigit() else None
            except OSError:
                continue  # it has ended
            if fields is not None and int(process.name) == postmaster:
                total += sum(map(int, fields[11:15]))
            elif fields is not None and int(fields[1]) == postmaster:
                total += sum(map(int, fields[11:13]))
        spent[node] = total / ticks
    return spent


async def add(memory: Memory, people: Population, callers: int, texts: list[str]) -> float:
    """Add messages from several concurrent callers; return messages per second."""
    waiting, chance = iter(texts), random.Random(callers)

    async def call() -> None:
        for text in waiting:
            await people.user(memory, chance.randrange(people.users)).add("user", text)

    started = time.perf_counter()
    await asyncio.gather(*[call() for _ in range(callers)])
    return len(texts) / (time.perf_counter() - started)


async def adds(cluster: Cluster, dsns: dict[str, str], options: argparse.Namespace) -> None:
    """Measure all in turns, so that other load affects them equally."""
    people = Population(options.spaces * 10, options.spaces)
    rates: dict[str, list[float]] = {name: [] for name in dsns}
    spent: dict[str, list[dict[str, float]]] = {name: [] for name in dsns}
    for _ in range(options.rounds):
        texts = list(people.talk.texts(options.messages))
        for name, dsn in dsns.items():
            async with connect(dsn, settings=Settings(background=False)) as memory:
                await add(memory, people, options.callers, texts[: options.callers])
                before = processor_seconds(cluster)
                rates[name].append(await add(memory, people, options.callers, texts))
                after = processor_seconds(cluster)
                spent[name].append({node: (after[node] - before[node]) / len(texts) for node in NODES})
    for name in dsns:
        row(f"{name}, {options.callers} callers", f"{statistics.median(rates[name]):10,.0f} adds/s")
        for node in NODES:
            milliseconds = statistics.median(each[node] for each in spent[name]) * 1000
            row(f"    processor time of {node}", f"{milliseconds:10.2f} ms per add")


async def statements(cluster: Cluster, dsn: str) -> None:
    """Count the statements that reach shards, per call."""
    async with connect(dsn, profile="archive", settings=Settings(background=False)) as memory:
        ann = memory.user("ann", space="statements")
        for turn in range(30):
            await ann.add("user", f"I saw {turn} birds near Oslo today.")
        await ann.note("schedule", "Dentist on Monday at 9am", importance=8)
        await ann.summarize()
        await memory.upkeep()
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "add": lambda: ann.add("user", "My sister lives in Oslo."),
            "search": lambda: ann.search("where does my sister live"),
            "context": lambda: ann.context("Where does my sister live?"),
            "history": ann.history,
            "remember": lambda: ann.remember("likes tea"),
            "upkeep, nothing to do": memory.upkeep,
            "upkeep, 1 new message": memory.upkeep,
            "stats": memory.stats,
            "health": memory.health,
        }
        for name, call in calls.items():
            if name.startswith("upkeep"):
                await memory.upkeep()
            if "new message" in name:
                await ann.add("user", "I like the sea.")
            cluster.forget_statements()
            await call()
            reached = cluster.shard_statements()
            total = sum(each.total() for each in reached.values())
            row(name, f"{total:5d} statements on {len(reached):2d} shards, at most "
                f"{max((each.total() for each in reached.values()), default=0)} on one")  # fmt: skip


async def main() -> None:
    """Run all measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=2_000)
    parser.add_argument("--callers", type=int, default=64)
    parser.add_argument("--spaces", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    cluster = Cluster()
    dsns = {name: prepare(cluster, name) for name in ("not distributed", *SHARDS)}
    heading(f"adds of {options.messages:,} messages to {options.spaces} spaces")
    await adds(cluster, dsns, options)
    heading("statements on shards, per call")
    await statements(cluster, dsns["two workers"])


if __name__ == "__main__":
    asyncio.run(main())
