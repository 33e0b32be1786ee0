"""The PostgreSQL store with 100,000 and 1,000,000 messages of 10,000 users in 100 spaces, compared with plain psycopg.

    python bench/on_postgres.py [--messages 100000 1000000] [--keep FOLDER] [--json FILE]

Starts a server of its own with fsync on and its settings as they come, or uses AFORESAID_TEST_DSN (an empty database).
With `--keep`, the server's folder stays, and a later run fills up only what is missing: so a million messages can be
filled and measured in several runs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import statistics
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import psycopg
import raw_postgres
from filled_postgres import Population, fill
from measuring import heading, latencies, percentiles, row

from aforesaid.memory import Memory, connect
from aforesaid.models.embed import LocalEmbedder
from aforesaid.store.people import Totals
from aforesaid.store.postgres import PostgresStore
from pg import Server

CALLERS = (1, 64, 256)
CHATS = 64
RUNNING = f"durable adds, 1 caller, in {CHATS} chats that run"
ROUNDS = 3


@dataclass
class Measured:
    """The figures of one size."""

    messages: int
    figures: dict[str, float] = field(default_factory=dict)

    def times(self, name: str, taken: list[float]) -> None:
        """Record and print the latencies of an operation."""
        self.figures[f"{name} p50 ms"] = statistics.median(taken)
        self.figures[f"{name} p99 ms"] = statistics.quantiles(taken, n=100)[98]
        row(name, percentiles(taken))

    def rate(self, name: str, rounds: list[float]) -> float:
        """Record and print messages stored per second."""
        middle = statistics.median(rounds)
        self.figures[f"{name} /s"] = middle
        row(name, f"{middle:10,.0f} /s   (rounds: {', '.join(f'{each:,.0f}' for each in rounds)})")
        return middle


async def add(memory: Memory, people: Population, callers: int, texts: list[str], users: int) -> float:
    """Add messages of random users through the public API from concurrent callers; return messages per second."""
    waiting = iter(texts)
    chance = random.Random(callers)

    async def call() -> None:
        for text in waiting:
            await people.user(memory, chance.randrange(users)).add("user", text)

    started = time.perf_counter()
    await asyncio.gather(*[call() for _ in range(callers)])
    return len(texts) / (time.perf_counter() - started)


async def adds(memory: Memory, people: Population, measured: Measured, dsn: str, size: int) -> None:
    """Measure durable adds and plain inserts in turns, so that other load affects both equally."""
    rates: dict[str, list[float]] = {}
    for number in range(CHATS):
        await people.user(memory, number).add("user", "Hello, it is me.")
    for _ in range(ROUNDS):
        texts = list(people.talk.texts(size))
        few = texts[: max(size // 20, 50)]
        rates.setdefault(RUNNING, []).append(await add(memory, people, 1, few, CHATS))
        rates.setdefault(raw_postgres.ALONE, []).append(await raw_postgres.rate_alone(dsn, few))
        for callers in CALLERS:
            some = few if callers == 1 else texts
            rate = await add(memory, people, callers, some, people.users)
            rates.setdefault(f"durable adds, {callers} callers", []).append(rate)
        for name, rate in raw_postgres.rates(dsn, texts).items():
            rates.setdefault(name, []).append(rate)
    middle = {name: measured.rate(name, rounds) for name, rounds in rates.items()}
    alone = middle[RUNNING] / middle[raw_postgres.ALONE]
    measured.figures[f"1 caller, share of {raw_postgres.ALONE}"] = alone
    row(f"1 caller, share of {raw_postgres.ALONE}", f"{alone:10.0%}       target: at least 40%")
    best = middle["durable adds, 256 callers"]
    for name in raw_postgres.NAMES:
        share = best / middle[name]
        measured.figures[f"256 callers, share of {name}"] = share
        row(f"256 callers, share of {name}", f"{share:10.0%}")


async def reads(memory: Memory, people: Population, measured: Measured, count: int) -> None:
    """Measure searches and contexts of users that are not cached yet, and of the same users again."""
    chosen = random.Random(5).sample(range(people.users), count)
    questions = [people.question() for _ in range(count)]

    async def search(number: int) -> object:
        return await people.user(memory, chosen[number]).search(questions[number])

    async def context(number: int) -> object:
        return await people.user(memory, chosen[number]).context(questions[number])

    warm = min(20, count // 10)
    measured.times("search, first of a user", await latencies(search, count - warm, warm))
    measured.times("search, again", await latencies(search, count - warm, warm))
    measured.times("context of 8,000 tokens", await latencies(context, count - warm, warm))


async def measure(dsn: str, messages: int, options: argparse.Namespace) -> Measured:
    """Fill the database up to a size, and measure."""
    heading(f"{messages:,} messages of {options.users:,} users in {options.spaces} spaces")
    people, measured, embedder = Population(options.users, options.spaces), Measured(messages), LocalEmbedder()
    store = await PostgresStore.open(dsn)
    filled = await fill(store, people, messages, embedder)
    if filled is not None:
        measured.rate("filled, with vectors, 1,000 in a change set", [filled])
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")  # as autovacuum does in time
    stats = await store.read(Totals())
    await store.close()
    measured.figures["bytes a message, with its vector"] = stats.bytes / max(stats.messages, 1)
    row("bytes a message, with its vector", f"{stats.bytes / max(stats.messages, 1):10,.0f}")
    profile = {"summaries": "none", "extract": False}  # no background work during the measurement
    async with connect(dsn, embedder=embedder, profile=profile, settings={"background": False}) as memory:
        await reads(memory, people, measured, options.calls)
    async with connect(dsn, embedder="none", profile=profile, settings={"background": False}) as memory:
        await adds(memory, people, measured, dsn, options.adds)
    await embedder.close()
    return measured


def growth(small: Measured, large: Measured) -> None:
    """Print how each figure changes with the size."""
    heading(f"from {small.messages:,} to {large.messages:,} messages")
    for name, before in small.figures.items():
        if (after := large.figures.get(name)) is not None:
            row(name, f"{before:12,.2f} -> {after:12,.2f}   x {after / before:.2f}")


def table(measured: list[Measured]) -> str:
    """Return all figures as a table in Markdown."""
    names = list(dict.fromkeys(name for each in measured for name in each.figures))
    lines = [
        f"| | {' | '.join(f'{each.messages:,} messages' for each in measured)} |",
        "|---" * (len(measured) + 1) + "|",
    ]
    for name in names:
        found = [each.figures.get(name) for each in measured]
        cells = ["" if value is None else f"{value:,.2f}" if value < 100 else f"{value:,.0f}" for value in found]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def conditions() -> dict[str, Any]:
    """Describe the machine and the versions."""
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "load at the start": os.getloadavg()[0],
        "psycopg": psycopg.__version__,
    }


def main() -> None:
    """Measure all sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--users", type=int, default=10_000)
    parser.add_argument("--spaces", type=int, default=100)
    parser.add_argument("--adds", type=int, default=10_000, help="messages per round of durable adds")
    parser.add_argument("--calls", type=int, default=400, help="number of searches and of contexts")
    parser.add_argument("--keep", type=Path, help="folder of a server that is kept for the next run")
    parser.add_argument("--fill-only", action="store_true", help="fill up to the largest size without measuring")
    parser.add_argument("--json", type=Path, help="file for the figures; figures of other sizes in it are kept")
    options = parser.parse_args()
    given, about = os.environ.get("AFORESAID_TEST_DSN"), conditions()
    server = None if given else Server(durable=True, folder=options.keep)
    dsn = given or (server.ensure("bench") if server else "")
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    try:
        if options.fill_only:
            asyncio.run(only_fill(dsn, options))
            return
        measured = [asyncio.run(measure(dsn, size, options)) for size in sorted(options.messages)]
    finally:
        if server is not None:
            server.stop() if options.keep else server.remove()
    measured = merged(measured, options.json, about)
    if len(measured) > 1:
        growth(measured[0], measured[-1])
    print(f"\n{table(measured)}")


async def only_fill(dsn: str, options: argparse.Namespace) -> None:
    """Fill the database, for a later run that measures."""
    store, embedder = await PostgresStore.open(dsn), LocalEmbedder()
    rate = await fill(store, Population(options.users, options.spaces), max(options.messages), embedder)
    print("the store has enough messages" if rate is None else f"filled at {rate:,.0f} messages a second")
    await store.close()
    await embedder.close()


def merged(measured: list[Measured], path: Path | None, about: dict[str, Any]) -> list[Measured]:
    """Add the figures to those of other sizes in the file, and return all of them."""
    if path is None:
        return measured
    sizes = json.loads(path.read_text(encoding="utf-8"))["sizes"] if path.exists() else {}
    sizes.update({str(each.messages): each.figures for each in measured})
    path.write_text(json.dumps({"conditions": about, "sizes": sizes}, indent=2), encoding="utf-8")
    return [Measured(int(size), figures) for size, figures in sorted(sizes.items(), key=lambda each: int(each[0]))]


if __name__ == "__main__":
    main()
