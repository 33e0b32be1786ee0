"""The PostgreSQL store at 100,000 and 1,000,000 messages of many users, beside raw inserts of the same rows.

    python bench/on_postgres.py [MESSAGES …]

Starts a server of its own with fsync on, or uses RECOLLECT_TEST_DSN (an empty database).
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from pathlib import Path

import psycopg

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from pg import Server
from recollect.domain.change import AddMessage
from recollect.domain.message import draft
from recollect.domain.scope import Scope
from recollect.store.postgres import PostgresStore

WORDS = [f"word{number}" for number in range(5_000)]
SPACES = 100
CALLERS = 256


def text(source: random.Random) -> str:
    return " ".join(source.choices(WORDS, k=source.randint(4, 24)))


def scope(number: int, users: int) -> Scope:
    user = number % users
    return Scope.of(f"user{user}", space=f"space{user % SPACES}")


async def fill(store: PostgresStore, first: int, last: int, users: int) -> float:
    """Store messages from many callers at once; return how many a second were acknowledged."""
    source = random.Random(first)
    numbers = iter(range(first, last))

    async def call() -> None:
        for number in numbers:
            await store.apply([AddMessage(draft(scope(number, users), "user", text(source)))])

    started = time.perf_counter()
    await asyncio.gather(*[call() for _ in range(CALLERS)])
    return (last - first) / (time.perf_counter() - started)


async def latencies(store: PostgresStore, users: int, count: int = 300) -> tuple[list[float], list[float]]:
    """Search as users who were not searched before do, and then once more."""
    source = random.Random(5)
    cold: list[float] = []
    warm: list[float] = []
    for _ in range(count):
        where, words = scope(source.randrange(users), users), " ".join(source.choices(WORDS, k=3))
        for times in (cold, warm):
            started = time.perf_counter()
            await store.search_text(where, words)
            times.append(time.perf_counter() - started)
    return cold, warm


def raw(dsn: str, count: int) -> float:
    """Insert the same texts with psycopg alone, 256 in a transaction, into a table with one key."""
    source = random.Random(1)
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "CREATE TABLE raw_rows (space text, seq bigint, owner text, text text, PRIMARY KEY (space, seq))"
        )
        connection.commit()
        started = time.perf_counter()
        for start in range(0, count, CALLERS):
            rows = [(f"space{n % SPACES}", n, f"user{n}", text(source)) for n in range(start, start + CALLERS)]
            with connection.cursor() as cursor:
                cursor.executemany("INSERT INTO raw_rows VALUES (%s, %s, %s, %s)", rows)
            connection.commit()
        return count / (time.perf_counter() - started)


def shown(times: list[float]) -> str:
    ordered = sorted(times)
    return f"p50 {ordered[len(ordered) // 2] * 1000:.1f} ms, p99 {ordered[int(len(ordered) * 0.99)] * 1000:.1f} ms"


async def main(sizes: list[int]) -> None:
    given = os.environ.get("RECOLLECT_TEST_DSN")
    server = None if given else Server(durable=True)
    dsn = given or (server.create("bench") if server else "")
    print(f"raw psycopg inserts, {CALLERS} a transaction: {raw(dsn, 20_000):,.0f} rows/s")
    store = await PostgresStore.open(dsn)
    stored = 0
    for size in sizes:
        users = max(SPACES, size // 100)
        rate = await fill(store, stored, size, users)
        stored = size
        cold, warm = await latencies(store, users)
        stats = await store.stats()
        print(
            f"{size:,} messages, {users:,} users in {SPACES} spaces: {rate:,.0f} durable adds/s from {CALLERS} callers"
        )
        print(f"  search, first of a user: {shown(cold)}; again: {shown(warm)}")
        print(f"  {stats.bytes / max(stats.messages, 1):,.0f} bytes a message in the database")
    await store.close()
    if server is not None:
        server.remove()


if __name__ == "__main__":
    asyncio.run(main([int(size) for size in sys.argv[1:]] or [100_000, 1_000_000]))
