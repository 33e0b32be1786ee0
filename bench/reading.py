"""A large file: how long it takes to open, and to read and search for one user among a thousand."""

from __future__ import annotations

import random
import statistics
import time
from pathlib import Path

from evaluation.synthetic_chat import SyntheticChat
from measuring import heading, latencies, percentiles, row, stopwatch

from aforesaid.domain.message import draft
from aforesaid.domain.scope import Scope
from aforesaid.memory import connect
from aforesaid.store import open_store
from aforesaid.store.messages import AddMessage

USERS = 1_000
BATCH = 1_000


async def fill(path: Path, messages: int) -> float:
    """Store messages of a thousand users; return messages per second."""
    talk, scopes = SyntheticChat(seed=2), [Scope.of(f"user{number}") for number in range(USERS)]
    store = await open_store(path)
    with stopwatch() as seconds:
        for start in range(0, messages, BATCH):
            drafts = [
                draft(scopes[number % USERS], "user" if number // USERS % 2 == 0 else "assistant", talk.text())
                for number in range(start, min(start + BATCH, messages))
            ]
            await store.apply([AddMessage(each) for each in drafts])
        rate = messages / seconds()
    await store.close()
    return rate


async def opening(path: Path, rounds: int = 15) -> float:
    """Return the median time to open a memory and read one user's newest message, in milliseconds."""
    taken = []
    for number in range(rounds):
        start = time.perf_counter()
        memory = await connect(path, embedder="none")
        await memory.user(f"user{number}").history(1)
        taken.append((time.perf_counter() - start) * 1000)
        await memory.close()
    return statistics.median(taken)


async def run(folder: Path, messages: int) -> None:
    """Measure a small and a large file in one run."""
    heading(f"{messages:,} messages of {USERS:,} users")
    small, large = folder / "small.db", folder / "large.db"
    await fill(small, 1_000)
    row("stored in change sets of 1,000", f"{await fill(large, messages):10,.0f} /s")
    row("file", f"{large.stat().st_size / 1e6:10,.0f} MB   ({large.stat().st_size / messages:,.0f} bytes per message)")
    first, second = await opening(small), await opening(large)
    row("open a file of 1,000 messages", f"{first:10.2f} ms")
    row(
        f"open a file of {messages:,} messages",
        f"{second:10.2f} ms   ({second / first:.2f} x; target: independent of size)",
    )
    chance, talk = random.Random(3), SyntheticChat(seed=2)
    async with connect(large, embedder="none") as memory:
        users = [memory.user(f"user{number}") for number in chance.choices(range(USERS), k=3_000)]
        taken = await latencies(lambda number: users[number].history(50), 2_000, 500)
        row("history(50) of one user", percentiles(taken))
        questions = [talk.question() for _ in range(3_000)]
        taken = await latencies(lambda number: users[number].search(questions[number], arms="keyword"), 2_000, 500)
        row("keyword search, 2 to 5 words", f"{percentiles(taken)}   target: p50 under 5 ms")
        common = [" ".join(chance.sample(talk.words[:40], 4)) for _ in range(3_000)]
        taken = await latencies(lambda number: users[number].search(common[number], arms="keyword"), 2_000, 500)
        row("keyword search, 4 of the most frequent words", percentiles(taken))
        with stopwatch() as seconds:
            report = await memory.verify()
        row("verify everything", f"{seconds():10.1f} s    {'ok' if report.ok else 'DAMAGED'}")
