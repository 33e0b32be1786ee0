"""Search by words and meaning in a large file, compared with a plain scan of the same vectors."""

from __future__ import annotations

import asyncio
import random
import resource
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np
from evaluation.synthetic_chat import SyntheticChat
from measuring import heading, latencies, percentiles, row, stopwatch
from numpy.typing import NDArray

from aforesaid.domain.hit import VectorRow
from aforesaid.domain.message import draft
from aforesaid.domain.scope import Scope
from aforesaid.memory import UserMemory, connect
from aforesaid.models.embed import LocalEmbedder, token_vectors
from aforesaid.store import open_store
from aforesaid.store.messages import AddMessage, UserLedger
from aforesaid.store.searches import AddVectors

BATCH = 1_000
TEXTS = 2_000
"""Number of texts embedded by a real model. The other vectors are spread around theirs, as those of real texts are; the
vectors of their tokens are theirs."""

Floats = NDArray[np.float32]


def sizes(messages: int) -> dict[str, int]:
    """Return the messages per user: one has a tenth of all, one has 2,000, the others share the rest."""
    large, usual = messages // 10, min(2_000, messages // 100)
    others = max((messages - large - usual) // 1_000, 1)
    rest = {f"user{number}": 1_000 for number in range(others)}
    return {"large": large, "usual": usual, **rest}


async def fill(path: Path, messages: int, embedder: LocalEmbedder) -> dict[str, Floats]:
    """Store the messages and their vectors; return the vectors of the two measured users."""
    talk, chance = SyntheticChat(seed=4), np.random.default_rng(5)
    texts = [talk.text() for _ in range(TEXTS)]
    centres = await embedder.embed(texts)
    tokens = [made.packed() for made in await embedder.tokens(texts)]
    store, kept = await open_store(path), {}
    for user, count in sizes(messages).items():
        scope, mine = Scope.of(user), []
        for start in range(0, count, BATCH):
            size = min(BATCH, count - start)
            drafts = [
                draft(scope, "user" if number % 2 == 0 else "assistant", talk.text())
                for number in range(start, start + size)
            ]
            stored = (await store.apply([AddMessage(each) for each in drafts])).results
            noise = chance.standard_normal((size, centres.shape[1])).astype(np.float32) * 0.03
            nearest = chance.integers(0, TEXTS, size)
            vectors = centres[nearest] + noise
            vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)
            rows = tuple(
                VectorRow(result.message.seq, result.message.text, vector.tobytes())  # type: ignore[union-attr]
                for result, vector in zip(stored, vectors, strict=True)
            )
            words = tuple(row._replace(value=tokens[centre]) for row, centre in zip(rows, nearest, strict=True))
            last = rows[-1].seq
            await store.apply([AddVectors(embedder.name, rows, last), AddVectors(token_vectors.NAME, words, last)])
            if user in {"large", "usual"}:
                mine.append(vectors)
        if mine:
            kept[user] = np.concatenate(mine).astype(np.float32)
    await store.close()
    return kept


async def plain_scan(embedder: LocalEmbedder, vectors: Floats, question: str) -> None:
    """Run the minimal search for the ten nearest: embed the question and compare all vectors."""
    vector = (await embedder.embed([question]))[0]
    scores = vectors @ vector
    np.argpartition(-scores, 10)[:10]


def scanning(embedder: LocalEmbedder, vectors: Floats, asked: list[str]) -> Callable[[int], Awaitable[object]]:
    return lambda number: plain_scan(embedder, vectors, asked[number])


def searching(user: UserMemory, asked: list[str]) -> Callable[[int], Awaitable[object]]:
    return lambda number: user.search(asked[number])


def asking(user: UserMemory, asked: list[str]) -> Callable[[int], Awaitable[object]]:
    return lambda number: user.context(asked[number])


def memory_used() -> float:
    """Return the resident memory of the process, in megabytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


async def run(folder: Path, messages: int) -> None:
    """Measure the largest user and a typical one."""
    heading(f"search by words and meaning, {messages:,} messages")
    path, embedder = folder / "search.db", LocalEmbedder()
    with stopwatch() as seconds:
        vectors = await fill(path, messages, embedder)
        row("stored with their vectors", f"{messages / seconds():10,.0f} /s")
    await asyncio.sleep(1)
    scans = {}
    talk, chance = SyntheticChat(seed=6), random.Random(7)
    # Realistic queries: one or two frequent words, and one or two rare ones.
    forms = ("When did I tell you about {0} and {1}?", "What was {0} with the {1} {2}?", "Who brought {0} {1} to {2}?")
    words = [[*talk.text().split()[:2], *talk.question().split()] for _ in range(1_000)]
    asked = [chance.choice(forms).format(*chance.sample(each, 3)) for each in words]
    for user, mine in vectors.items():
        scans[user] = await latencies(scanning(embedder, mine, asked), 200, 20)
    vectors.clear()
    before = memory_used()
    # Without summaries and extraction, which would run in the background.
    profile = {"summaries": "none", "extract": False}
    async with connect(path, embedder=embedder, profile=profile) as memory:
        for user, wanted in (("usual", "p50 up to 10 ms"), ("large", "p50 up to 25 ms, p99 up to 80 ms")):
            ann = memory.user(user)
            count = (await memory.store.read(UserLedger(ann.scope))).messages
            with stopwatch() as seconds:
                await ann.search(asked[0])
                row(f"first search of a user with {count:,} messages", f"{seconds() * 1000:10.1f} ms")
            taken = await latencies(searching(ann, asked), 500, 50)
            row(f"search, user of {count:,}", f"{percentiles(taken)}   target: {wanted}")
            row("  a plain scan of their vectors (the limit)", percentiles(scans[user]))
            taken = await latencies(asking(ann, asked), 200, 20)
            row(f"context of 8,000 tokens, user of {count:,}", f"{percentiles(taken)}   target: p50 up to 35 ms")
        row("memory of the process", f"{memory_used():10,.0f} MB   (before the searches {before:,.0f}; target: 600)")
    await embedder.close()


if __name__ == "__main__":
    import sys
    import tempfile

    with tempfile.TemporaryDirectory() as temporary:
        asyncio.run(run(Path(temporary), int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000))
