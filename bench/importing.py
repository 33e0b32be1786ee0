"""The import time of the package."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from measuring import heading, row


def start(program: str) -> float:
    """Return how long Python takes to run a program, in milliseconds."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True)  # noqa: S603 - this interpreter
    return (time.perf_counter() - begin) * 1000


def run(rounds: int = 20) -> None:
    """Compare an empty Python program with one that imports the package, in turns."""
    heading("Import time (median of fresh interpreters)")
    programs = {
        "python alone": "pass",
        "import aforesaid": "import aforesaid",
        "import asyncio, for comparison": "import asyncio",
        "import aforesaid, then aforesaid.open": "import aforesaid; aforesaid.open",
    }
    taken: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, program in programs.items():
            taken[name].append(start(program))
    alone = statistics.median(taken["python alone"])
    for name, times in taken.items():
        row(name, f"{statistics.median(times):10.1f} ms   (+{statistics.median(times) - alone:.1f})")
