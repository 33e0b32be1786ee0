"""Measure the speed of a memory on this machine, next to the speed of its disk."""

from __future__ import annotations

import asyncio
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw

from aforesaid.domain.checks import Role
from aforesaid.memory import Connecting, UserMemory, connect
from aforesaid.settings import Settings
from aforesaid.store import Progress
from aforesaid.store.sqlite.connection import kind_of_file_system
from evaluation.synthetic_chat import SyntheticChat

TOGETHER: Final = 16
"""Number of concurrent callers that add messages."""
BUDGET: Final = 8_000
_SEED: Final = 7
_SYNCS: Final = 200
_PAGE: Final = 4096
_ASKED: Final = 200
_OPENED: Final = 5
_USER: Final = "ann"
_QUIET: Final = Settings(background=False)
"""Default settings, so that no model is called. Background work is off, because it is measured separately."""


@dataclass(frozen=True, slots=True)
class Latency:
    """The latency of a call."""

    p50_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class SpeedReport:
    """The figures, and the machine they were measured on."""

    python: str
    sqlite: str
    machine: str
    cores: int | None
    folder: str
    file_system: str
    """`unknown` if the system does not say."""
    messages: int
    sync: Latency
    """Overwrite one page of a plain file and sync it: the lower bound for every durable store."""
    add: Latency
    """A durable add by a single caller."""
    adds_together_per_second: float
    """Durable adds per second by TOGETHER concurrent callers."""
    upkeep_per_second: float
    """Messages per second that are embedded, summarised and searched for memories, without a model."""
    open_ms: float
    """Milliseconds to open the memory and read the newest message."""
    first_search_ms: float
    """Milliseconds of the first search after opening, which loads the encoder."""
    search: Latency
    context: Latency
    """A context of BUDGET tokens."""
    bytes_per_message: float
    """Bytes on disk per message, including index, vectors and summaries."""
    sound: bool
    """Whether every acknowledged message is stored and matches its hash."""


async def measure_speed(messages: int, folder: Path | None, progress: Progress) -> SpeedReport:
    """Fill a temporary memory with made-up talk, ask it questions, and return how long everything took.

    The memory lies in `folder`, or where the system keeps temporary files, and is gone afterwards.
    """
    talk = SyntheticChat(_SEED)
    said = list(talk.texts(messages))
    with tempfile.TemporaryDirectory(prefix="aforesaid-bench-", dir=folder) as place:
        path = Path(place) / "memory.db"
        syncs = await asyncio.to_thread(_sync, Path(place) / "bare")
        async with _opened(path) as memory:
            ann = memory.user(_USER)
            half = len(said) // 2
            added = await _each(lambda number: ann.add(_role(number), said[number]), half, progress, "adding")
            together = await _add_together(ann, said[half:], progress)
            started = time.perf_counter()
            await memory.upkeep(progress)
            upkeep = messages / (time.perf_counter() - started)
            size = (await memory.stats()).bytes
        opened = statistics.median([await _open(path) for _ in range(_OPENED)])
        async with _opened(path) as memory:
            ann = memory.user(_USER)
            first = await _timed(ann.search(talk.question()))
            questions = [talk.question() for _ in range(_ASKED)]
            searched = await _each(lambda number: ann.search(questions[number]), _ASKED, progress, "searching")
            built = await _each(
                lambda number: ann.context(questions[number], BUDGET), _ASKED, progress, "building contexts"
            )
            verified = (await memory.verify(progress)).ok
            sound = verified and (await memory.stats()).messages == messages
        return SpeedReport(
            python=platform.python_version(),
            sqlite=apsw.sqlite_lib_version(),
            machine=f"{platform.system()} {platform.machine()}",
            cores=os.cpu_count(),
            folder=str(Path(place).parent),
            file_system=kind_of_file_system(Path(place)),
            messages=messages,
            sync=_latency(syncs),
            add=_latency(added),
            adds_together_per_second=together,
            upkeep_per_second=upkeep,
            open_ms=opened,
            first_search_ms=first,
            search=_latency(searched),
            context=_latency(built),
            bytes_per_message=size / messages,
            sound=sound,
        )


def _opened(path: Path) -> Connecting:
    return connect(path, profile="default", embedder="local", settings=_QUIET)


def _role(number: int) -> Role:
    return "user" if number % 2 == 0 else "assistant"


def _sync(path: Path) -> list[float]:
    """Return the time to write and sync each page, in milliseconds. The file does not grow, which would take longer."""
    sync = getattr(os, "fdatasync", os.fsync)
    taken = []
    with path.open("wb", buffering=0) as file:
        file.write(bytes(_SYNCS * _PAGE))
        os.fsync(file.fileno())
        file.seek(0)
        for number in range(_SYNCS):
            page = number.to_bytes(4) * (_PAGE // 4)
            started = time.perf_counter()
            file.write(page)
            sync(file.fileno())
            taken.append((time.perf_counter() - started) * 1000)
    return taken


async def _add_together(ann: UserMemory, texts: list[str], progress: Progress) -> float:
    waiting = iter(enumerate(texts))

    async def call() -> None:
        for number, text in waiting:
            await ann.add(_role(number), text)
            progress("adding together", number + 1, len(texts))

    started = time.perf_counter()
    async with asyncio.TaskGroup() as callers:
        for _ in range(TOGETHER):
            callers.create_task(call())
    return len(texts) / (time.perf_counter() - started)


async def _open(path: Path) -> float:
    async def look() -> None:
        async with _opened(path) as memory:
            await memory.user(_USER).history(1)

    return await _timed(look())


async def _each(call: Callable[[int], Awaitable[object]], count: int, progress: Progress, what: str) -> list[float]:
    taken = []
    for number in range(count):
        taken.append(await _timed(call(number)))
        progress(what, number + 1, count)
    return taken


async def _timed(work: Awaitable[object]) -> float:
    started = time.perf_counter()
    await work
    return (time.perf_counter() - started) * 1000


def _latency(taken: list[float]) -> Latency:
    return Latency(statistics.median(taken), statistics.quantiles(taken, n=100)[98])
