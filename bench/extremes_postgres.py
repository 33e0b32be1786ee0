"""The PostgreSQL store at its extremes: one person with very many messages, and adds to very many spaces.

    python bench/extremes_postgres.py [--person 200000] [--spaces 1000] [--keep FOLDER]

Starts a server of its own with fsync on, or uses AFORESAID_TEST_DSN (an empty database). With `--keep`, the server's
folder stays, and a later run fills up only what is missing.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import numpy as np
import psycopg
from evaluation.datasets import load_datasets
from filled_postgres import Population, fill
from measuring import heading, latencies, percentiles, row
from on_postgres import add, conditions

from aforesaid.memory import connect
from aforesaid.models.embed import LocalEmbedder
from aforesaid.store.postgres import PostgresStore, search
from aforesaid.store.searches import SearchVector
from pg import Server

PROFILE = {"summaries": "none", "extract": False}
ROUNDS = 5
CALLERS = 64


async def one_person(dsn: str, messages: int, calls: int) -> None:
    """Measure searches and contexts of a person with all messages of the database."""
    heading(f"one person with {messages:,} messages")
    people, embedder = Population(1, 1), LocalEmbedder()
    store = await PostgresStore.open(dsn)
    labelled = load_datasets(Path(__file__).parent / "conversations")
    real = [turn.text for each in labelled for chat in each.conversations for turn in chat.turns]
    asked = [question.text for each in labelled for chat in each.conversations for question in chat.questions]
    rate = await fill(store, people, messages, embedder, real)
    if rate is not None:
        row("filled, with vectors, 1,000 in a change set", f"{rate:10,.0f} /s")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")  # as autovacuum does in time
    await compare(store, people, embedder, asked[:: max(len(asked) // (calls // 4), 1)])
    await store.close()
    async with connect(dsn, embedder=embedder, profile=PROFILE, settings={"background": False}) as memory:
        person = people.user(memory, 0)
        asked = [people.question() for _ in range(calls + 20)]
        start = time.perf_counter()
        await person.search(asked[0])
        row("first search", f"{(time.perf_counter() - start) * 1_000:10,.0f} ms")
        row("search", percentiles(await latencies(lambda number: person.search(asked[number]), calls, 10)))
        row(
            "context of 8,000 tokens",
            percentiles(await latencies(lambda number: person.context(asked[number]), calls, 10)),
        )
    await embedder.close()


async def compare(store: PostgresStore, people: Population, embedder: LocalEmbedder, asked: Sequence[str]) -> None:
    """Compare the shortlist by signs with an exact comparison of all vectors, in turns."""
    most, taken, found = search.EXACT, dict[str, list[float]](), dict[int, list[float]]()
    for number, text in enumerate(asked):
        vector = np.asarray((await embedder.embed([text]))[0])
        question = SearchVector(people.scope(0), embedder.name, vector, limit=200)
        answers = {}
        for name, exact in (("shortlist", most), ("exact", sys.maxsize)):
            search.EXACT = exact  # type: ignore[misc]
            start = time.perf_counter()
            answers[name] = await store.read(question)
            if number:  # the first one reads the signs
                taken.setdefault(name, []).append((time.perf_counter() - start) * 1_000)
            else:
                row(f"vectors alone, {name}, first", f"{(time.perf_counter() - start) * 1_000:10,.0f} ms")
        search.EXACT = most  # type: ignore[misc]
        short, whole = answers["shortlist"], answers["exact"]
        if short is None or whole is None:
            raise SystemExit("the person has no vectors")
        for count in (10, 100):
            common = np.intersect1d(short.seqs[:count], whole.seqs[:count])
            found.setdefault(count, []).append(len(common) / count)
    for name, times in taken.items():
        row(f"vectors alone, {name}", percentiles(times))
    for count, shares in found.items():
        row(f"of the {count} most similar, also in the shortlist", f"{statistics.mean(shares):10.1%}")


async def many_spaces(dsn: str, spaces: int, messages: int) -> None:
    """Measure durable adds to one space and to many, in turns, so that other load affects both equally."""
    heading(f"durable adds of {CALLERS} callers to 1 space and to {spaces:,} spaces")
    few, many = Population(spaces, 1), Population(spaces, spaces)
    rates: dict[str, list[float]] = {}
    async with connect(dsn, embedder="none", profile=PROFILE, settings={"background": False}) as memory:
        for turn in range(ROUNDS + 1):
            for name, people in (("1 space", few), (f"{spaces:,} spaces", many)):
                rate = await add(memory, people, CALLERS, list(people.talk.texts(messages)), people.users)
                if turn:  # people and spaces are new in the first round
                    rates.setdefault(name, []).append(rate)
    one, other = (statistics.median(found) for found in rates.values())
    for name, found in rates.items():
        row(name, f"{statistics.median(found):10,.0f} /s   (rounds: {', '.join(f'{each:,.0f}' for each in found)})")
    row("time for many spaces, relative to one", f"{one / other:10.2f}")


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--person", type=int, default=200_000, help="messages of one person; 0 to leave it out")
    parser.add_argument("--spaces", type=int, default=1_000, help="number of spaces; 0 to leave it out")
    parser.add_argument("--adds", type=int, default=5_000, help="messages per round of durable adds")
    parser.add_argument("--calls", type=int, default=200, help="number of searches and of contexts")
    parser.add_argument("--keep", type=Path, help="folder of a server that is kept for the next run")
    options = parser.parse_args()
    given = os.environ.get("AFORESAID_TEST_DSN")
    server = None if given else Server(durable=True, folder=options.keep)
    print(", ".join(f"{name} {value}" for name, value in conditions().items()))
    try:
        if options.person:
            dsn = given or (server.ensure("person") if server else "")
            asyncio.run(one_person(dsn, options.person, options.calls))
        if options.spaces:
            dsn = given or (server.ensure("spaces") if server else "")
            asyncio.run(many_spaces(dsn, options.spaces, options.adds))
    finally:
        if server is not None:
            server.stop() if options.keep else server.remove()


if __name__ == "__main__":
    main()
