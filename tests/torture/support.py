"""Helpers for torture scenarios: their size, an open store, and a line with the results."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aforesaid.store import open_store
from aforesaid.store.sqlite import Options, SqliteStore

_FIGURES = os.environ.get("TORTURE_FIGURES")
"""A file to append the figures to: several processes may run scenarios at the same time."""


@dataclass(frozen=True, slots=True)
class Size:
    """How often a scenario goes round."""

    full: bool
    scale: float

    def of(self, *, small: int, full: int) -> int:
        """Return `small` in the plain test run, and `full` times the scale when torture was asked for."""
        return max(small, round(full * self.scale)) if self.full else small

    def step(self, *, small: int) -> int:
        """Return how many cases to go on at a time where each is to be tried once: every one when it counts."""
        return max(1, min(small, round(1 / self.scale))) if self.full else small


KINDS = ("sqlite", "json", "files")


@asynccontextmanager
async def opened(path: Path, options: Options | None = None, kind: str = "sqlite") -> AsyncIterator[SqliteStore]:
    """Open a store until the end of the block."""
    if kind == "sqlite":
        store = await SqliteStore.open(path, options)
    else:
        assert options is None, "a store in readable files is opened as it is; SQLite's default VFS can be set"
        found = await open_store(f"{kind}:{path}")
        assert isinstance(found, SqliteStore)
        store = found
    try:
        yield store
    finally:
        await store.close()


class Figures:
    """What a scenario counted, as one line at its end: printed, and in the file that `make torture` shows."""

    def __init__(self, scenario: str, *counted: str) -> None:
        """Name what is counted, in the order in which it is to be read."""
        self._scenario = scenario
        self._counts = dict.fromkeys(counted, 0)
        self._started = time.monotonic()

    def __getitem__(self, what: str) -> int:
        return self._counts[what]

    def add(self, what: str, number: int = 1) -> None:
        """Count something."""
        self._counts[what] += number

    def highest(self, what: str, number: int) -> None:
        """Keep the highest value of something."""
        self._counts[what] = max(self._counts[what], number)

    def show(self) -> None:
        """Print the line."""
        counted = ", ".join(f"{number:,} {what}" for what, number in self._counts.items())
        line = f"[torture] {self._scenario}: {counted}, {time.monotonic() - self._started:.1f} s\n"
        sys.stdout.write(f"\n{line}")
        sys.stdout.flush()
        if _FIGURES is not None:
            with Path(_FIGURES).open("a", encoding="utf-8") as file:
                file.write(line)
