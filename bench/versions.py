"""`make bench-versions OLD=…`: the processor time of adds, searches and contexts, compared with another checkout.

Two processes, one for each checkout, get the same data and take turns: a block of operations in one, then the same
block in the other, within a second. So a block's ratio hardly depends on what else the machine does, which changes what
whole runs take by a quarter. With the same checkout twice (`--same`), it shows how far the ratios are to be trusted.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from measuring import heading, row

HERE = Path(__file__).parent.parent
_WARM = 2
"""Blocks of each operation before those that count."""
_RESAMPLES = 4_000
_WORKER = """
import asyncio, gc, json, sys, time
import aforesaid

async def main(folder, embedder, texts, sizes):
    settings = {"background": False}
    async with aforesaid.connect(folder + "/memory.db", embedder=embedder or None, settings=settings) as memory:
        for name, size in sizes.items():
            person = memory.user(name)
            for first in range(0, size, 500):
                numbers = range(first, min(first + 500, size))
                await asyncio.gather(*(person.add(("user", "assistant")[n % 2], texts[n]) for n in numbers))
        await memory.upkeep()
        writer = memory.user("writer")
        operations = {
            "add": lambda number, text: writer.add(("user", "assistant")[number % 2], text),
            "search": lambda name, text: memory.user(name).search(text),
            "context": lambda name, text: memory.user(name).context(text),
            "upkeep": lambda _, __: memory.upkeep(),
        }
        print("ready", flush=True)
        for line in sys.stdin:
            name, calls = json.loads(line)
            operation = operations[name]
            gc.collect()
            start = time.process_time_ns()
            for argument, text in calls:
                await operation(argument, text)
            print(time.process_time_ns() - start, flush=True)

with open(sys.argv[1] + "/data.json") as file:
    asyncio.run(main(*sys.argv[1:3], *json.load(file)))
"""
"""Runs with the code of either checkout, so it uses only what both have.

Without a background, what an add leaves to do is measured where it is done: by the operation `upkeep`.
"""

Calls = list[tuple[int | str, str]]


class Plan(NamedTuple):
    """What two processes are to do."""

    sizes: dict[str, int]
    """The messages of those who are searched."""
    rounds: int
    block: int
    """Operations per block."""
    seed: int
    """Of the hashes, which decide how sets are ordered: the same in both processes."""


class Measured(NamedTuple):
    """What blocks of one operation took in the two checkouts."""

    name: str
    """The operation, for the reader."""
    microseconds: tuple[float, float]
    """Per operation, at the median: other, this."""
    ratios: list[float]
    """This relative to the other, block by block."""


@contextmanager
def running(source: Path, script: str, *arguments: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """Run a script with the code of a checkout, and kill it at the end."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("AFORESAID_")}
    process = subprocess.Popen(  # noqa: S603 - the project's own code
        [sys.executable, "-c", script, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**inherited, **variables, "PYTHONPATH": str(source.resolve() / "src")},
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def line_of(process: subprocess.Popen[str]) -> str:
    """Return the next line that a process writes; end if it has ended."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        sys.exit("a process has ended: its error is above")
    return line


def interval(ratios: list[float]) -> tuple[float, float, float]:
    """Return the median, and between which values it is with 95 %, by a bootstrap over the blocks."""
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(_RESAMPLES))
    return statistics.median(ratios), medians[_RESAMPLES // 40], medians[-_RESAMPLES // 40]


def transcripts() -> tuple[list[str], list[str]]:
    """Return the messages of the benchmark's own transcripts, and the questions about them."""
    messages, questions = [], []
    for path in sorted((HERE / "bench" / "conversations").glob("*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            before, colon, text = line.partition(": ")
            if line.startswith("Q "):
                questions.append(line.split(" | ")[1])
            elif colon and not before.startswith(("#", "==")) and len(before) < 30:
                messages.append(text)
    return messages, questions


def blocks(plan: Plan, texts: list[str], questions: list[str]) -> Iterator[list[tuple[str, str, Calls]]]:
    """Yield rounds of blocks: what is measured, its operation and the calls."""
    random.Random(plan.seed).shuffle(questions)
    asked, said, size = cycle(questions), cycle(texts), plan.block
    for first in range(0, sys.maxsize, size):
        adds: Calls = [(first + number, f"{first + number}: {next(said)}") for number in range(size)]
        searches: list[tuple[str, str, Calls]] = [
            (f"search, {messages:,} messages", "search", [(name, each) for each in islice(asked, size)])
            for name, messages in plan.sizes.items()
        ]
        context: Calls = [("small", each) for each in islice(asked, size)]
        yield [
            ("add", "add", adds),
            *searches,
            (f"context, {plan.sizes['small']:,} messages", "context", context),
            ("upkeep of the messages of one block", "upkeep", [(0, "")]),
        ]


def block(worker: subprocess.Popen[str], operation: str, calls: Calls) -> float:
    """Return the processor time of a block, in microseconds per operation."""
    assert worker.stdin is not None
    worker.stdin.write(json.dumps([operation, calls]) + "\n")
    worker.stdin.flush()
    return int(line_of(worker)) / len(calls) / 1_000


def measure(sources: tuple[Path, Path], embedder: str, plan: Plan) -> list[Measured]:
    """Let both checkouts take turns; who begins changes with each round."""
    texts, questions = transcripts()
    # numpy's threads would wait for work in a loop.
    same = {"OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": str(plan.seed)}
    taken: dict[str, list[tuple[float, float]]] = {}
    with ExitStack() as stack:
        workers = []
        for source in sources:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            filled = texts[: max(plan.sizes.values())], plan.sizes
            Path(folder, "data.json").write_text(json.dumps(filled), encoding="utf-8")
            workers.append(stack.enter_context(running(source, _WORKER, folder, embedder, **same)))
        for worker in workers:
            line_of(worker)
        for number, planned in enumerate(islice(blocks(plan, texts, questions), plan.rounds + _WARM)):
            for name, operation, calls in planned:
                took = {turn: block(workers[turn], operation, calls) for turn in ((0, 1), (1, 0))[number % 2]}
                if number >= _WARM:
                    taken.setdefault(name, []).append((took[0], took[1]))
    return [
        Measured(
            name,
            (statistics.median(old for old, _ in pairs), statistics.median(new for _, new in pairs)),
            [new / old for old, new in pairs],
        )
        for name, pairs in taken.items()
    ]


def main() -> None:
    """Compare two checkouts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, help="another checkout of the project")
    parser.add_argument("--same", action="store_true", help="compare the other checkout with itself, to see the noise")
    parser.add_argument("--rounds", type=int, default=100, help="blocks per operation (default: 100)")
    parser.add_argument("--block", type=int, default=20, help="operations per block (default: 20)")
    parser.add_argument("--pairs", type=int, default=2, help="pairs of processes, one after the other (default: 2)")
    parser.add_argument("--small", type=int, default=1_500, help="messages of one person (default: 1500)")
    parser.add_argument("--large", type=int, default=10_000, help="messages of another (default: 10000)")
    parser.add_argument(
        "--embedder", nargs="+", default=["deterministic", "local"], help="embedders (default: deterministic local)"
    )
    options = parser.parse_args()
    sources = (options.other, options.other if options.same else HERE)
    compared = "the other checkout with itself" if options.same else "this checkout relative to the other"
    for embedder in options.embedder:
        heading(f"Processor time with the embedder `{embedder}`: {compared}; load {os.getloadavg()[0]:.1f}")
        sizes = {"small": options.small, "large": options.large}
        runs = [
            measure(sources, embedder, Plan(sizes, options.rounds, options.block, seed))
            for seed in range(options.pairs)
        ]
        for every in zip(*runs, strict=True):
            middle, low, high = interval([ratio for measured in every for ratio in measured.ratios])
            before, after = (statistics.median(measured.microseconds[which] for measured in every) for which in (0, 1))
            pairs = ", ".join(f"{statistics.median(measured.ratios):.3f}" for measured in every)
            ratio = f"{middle:6.3f}   95 %: {low:.3f} to {high:.3f}   (pairs: {pairs})"
            row(every[0].name, f"{ratio}   {before:9,.0f} -> {after:9,.0f} µs")


if __name__ == "__main__":
    main()
