"""`make bench`: runs all benchmarks of the SQLite store on this machine."""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
# What the embedder sets in a program that has not loaded numpy yet. With two threads, both spin while they wait.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import adding
import apsw
import dead_model
import importing
import moving
import reading
import searching


def main() -> None:
    """Run all benchmarks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000, help="size of the large file")
    parser.add_argument("--adds", type=int, default=20_000, help="messages per round of durable adds")
    parser.add_argument("--folder", type=Path, help="folder for the databases (default: the temporary folder)")
    options = parser.parse_args()
    print(
        f"Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}, {platform.machine()}, "
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    )
    importing.run()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        adding.run(Path(folder), options.adds)
        asyncio.run(dead_model.run(Path(folder)))
        asyncio.run(reading.run(Path(folder), options.messages))
        asyncio.run(searching.run(Path(folder), options.messages))
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        asyncio.run(moving.run(Path(folder), options.messages))


if __name__ == "__main__":
    main()
