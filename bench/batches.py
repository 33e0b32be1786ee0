"""Batches of messages, compared with batches of LangGraph's SqliteStore on the same disk with the same texts.

    python bench/batches.py --langgraph PYTHON [--messages 100000] [--rounds 1]

PYTHON is the interpreter of an environment that has langgraph-checkpoint-sqlite. Its store keeps JSON by key and does
not index it; here every message has a hash, a session and a place in time, and is indexed by its words. A batch is
indexed after it is stored, so there are two rates: until `add_many` returns, and until a search right after it has
returned, which waits for the index. Both CPU time and elapsed time are printed, because the second depends on what else
the machine does. The stores take turns, `--rounds` times, each in a new process.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TypeAlias

from measuring import heading, row

import aforesaid
from aforesaid import NewMessage

CONVERSATIONS = Path(__file__).parent / "conversations"
BATCHES = (100, 1_000, 4_000)
"""Messages per batch of the other store: SQLite binds at most 32,766 values to one statement."""
SAMPLE = 500
Seconds: TypeAlias = tuple[float, float]
"""CPU time and elapsed time."""
THEIRS = """
import json, sys, time
from langgraph.store.base import PutOp
from langgraph.store.sqlite import SqliteStore
path, size = sys.argv[1], int(sys.argv[2])
texts = json.load(sys.stdin)
with SqliteStore.from_conn_string(path) as store:
    store.setup()
    cpu, wall = time.process_time(), time.perf_counter()
    for start in range(0, len(texts), size):
        store.batch([
            PutOp(("ann", "messages"), f"m{start + place}", {"role": "user", "content": text})
            for place, text in enumerate(texts[start : start + size])
        ])
    print(json.dumps([time.process_time() - cpu, time.perf_counter() - wall]))
"""


def texts(count: int) -> list[str]:
    """Return turns in 15 languages, each of two halves of written ones, with a number of its own."""
    lines = [line for path in sorted(CONVERSATIONS.glob("*.txt")) for line in path.read_text().splitlines()]
    turns = [line.split(": ", 1)[1].split() for line in lines if ": " in line and line[0] not in "#="]
    chance = random.Random(3)
    pairs = ((chance.choice(turns), chance.choice(turns)) for _ in range(count))
    return [
        " ".join([*first[: (len(first) + 1) // 2], *second[len(second) // 2 :], f"n{number}"])
        for number, (first, second) in enumerate(pairs)
    ]


KINDS: dict[str, Callable[[int, str], NewMessage | dict[str, str]]] = {
    "mappings": lambda _, text: {"role": "user", "text": text},
    "mappings with id": lambda number, text: {"role": "user", "text": text, "id": f"m{number}"},
    "NewMessage": lambda _, text: NewMessage("user", text),
    "NewMessage with id": lambda number, text: NewMessage("user", text, id=f"m{number}"),
}
"""What a message of a batch is passed as. Making it is part of what is measured, as it is for the other store."""


def ours(path: Path, said: list[str], kind: str) -> tuple[Seconds, Seconds]:
    """Add all messages as one batch and return the times until they are stored, and until they are indexed."""
    with aforesaid.open(path, embedder="none", settings={"background": False}) as memory:
        ann = memory.user("ann")
        ann.search("nothing yet")  # loads what the first search loads
        cpu, wall = time.process_time(), time.perf_counter()
        receipt = ann.add_many([KINDS[kind](number, text) for number, text in enumerate(said)])
        stored = time.process_time() - cpu, time.perf_counter() - wall
        ann.search(f"n{len(said) - 1}", arms="keyword")
        indexed = time.process_time() - cpu, time.perf_counter() - wall
        assert receipt.durable
        assert (receipt.stored, ann.count()) == (len(said), len(said))
        for number in random.Random(5).sample(range(len(said)), SAMPLE):
            (hit,) = ann.search(f"n{number}", arms="keyword")
            assert hit.text == said[number]
        assert memory.verify().ok, "the index is compared with all messages"
    return stored, indexed


def theirs(python: str, path: Path, said: list[str], size: int) -> Seconds:
    """Store the texts with the other store and return CPU and elapsed seconds."""
    done = subprocess.run(  # noqa: S603 - the interpreter that was named
        [python, "-c", THEIRS, str(path), str(size)], input=json.dumps(said), text=True, capture_output=True, check=True
    )
    cpu, wall = json.loads(done.stdout)
    return cpu, wall


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--langgraph", metavar="PYTHON", help="an interpreter that has langgraph-checkpoint-sqlite")
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    said = texts(options.messages)
    heading(f"{len(said):,} messages in batches, messages per second: CPU time, elapsed time")
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            for kind in KINDS:
                with ProcessPoolExecutor(1, get_context("spawn")) as fresh:
                    stored, indexed = fresh.submit(ours, Path(folder) / f"{kind}.db", said, kind).result()
                show(f"add_many, one batch of {kind}", len(said), stored)
                show("  and a search right after it: indexed", len(said), indexed)
            for size in BATCHES if options.langgraph else ():
                taken = theirs(options.langgraph, Path(folder) / f"theirs-{size}.db", said, size)
                show(f"LangGraph SqliteStore, batches of {size:,}, not indexed", len(said), taken)


def show(label: str, count: int, taken: Seconds) -> None:
    """Print one rate."""
    cpu, wall = taken
    row(label, f"{count / cpu:10,.0f} {count / wall:10,.0f}")


if __name__ == "__main__":
    main()
