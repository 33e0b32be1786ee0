"""The effect of an unreachable model on the latency of adds."""

from __future__ import annotations

import asyncio
import statistics
import time
from pathlib import Path

from measuring import heading, row

from aforesaid.memory import connect

MESSAGES = 5_000
WARM = 2_000
"""Number of calls that are not counted, because the client library is being loaded."""
ROUNDS = 3


async def adds(path: Path, address: str | None) -> list[float]:
    """Return the milliseconds of each add, in a profile that summarises after every exchange."""
    settings = {} if address is None else {"providers.dead.base_url": address, "models.default": "dead:model"}
    profile = {"extends": "archive", "tree_turns": 1, "summaries": "none" if address is None else "tree"}
    taken = []
    async with connect(path, profile=profile, embedder="none", settings=settings) as memory:
        ann = memory.user("ann")
        for number in range(-WARM, MESSAGES):
            start = time.perf_counter()
            await ann.add("user" if number % 2 == 0 else "assistant", f"message {number} about the garden")
            if number >= 0:
                taken.append((time.perf_counter() - start) * 1000)
    return taken


def p99(taken: list[float]) -> float:
    return statistics.quantiles(taken, n=100)[98]


async def run(folder: Path) -> None:
    """Compare adds without summaries and adds with a model whose port is closed, in turns."""
    heading(f"{MESSAGES:,} adds beside a model that does not answer")
    without, dead = [], []
    for number in range(ROUNDS):
        without += await adds(folder / f"none{number}.db", None)
        dead += await adds(folder / f"dead{number}.db", "http://127.0.0.1:9/v1")
    row("add, nothing to summarise", f"p50 {statistics.median(without):7.3f} ms   p99 {p99(without):7.3f} ms")
    row(
        "add, every exchange asks a dead model",
        f"p50 {statistics.median(dead):7.3f} ms   p99 {p99(dead):7.3f} ms   "
        f"({p99(dead) / p99(without):.2f} x; target: below 1.10 x)",
    )


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as temporary:
        asyncio.run(run(Path(temporary)))
