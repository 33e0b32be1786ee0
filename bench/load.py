"""`make bench-load`: many callers at once, beside an import, beside idle event streams, and a panel of 20,000 people.

Prints what was measured, and fails (exit status 1) if a memory failed: a request that was refused, or that the proxy
passed on without memory. Requests whose search was left out (`X-Aforesaid-Memory: partial`) are counted apart. Figures
depend on the machine, whose load average stands beside each heading; the ratios compare measurements of the same run.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from measuring import heading as titled
from measuring import percentiles, row
from serving import WORDS, Caller, chat, process, serve_app, text, upstream

import aforesaid
from aforesaid.models.embed import embedder_of_a_server
from aforesaid.server import ServerOptions, create_app
from aforesaid.server.app import run as run_loop
from aforesaid.settings import Choice, Provider, Route, Serving, Settings

HISTORY = 500
BATCH = 500
STREAMS = 200
SETTLING = 10.0
"""Seconds after which the events of opening the streams have been sent."""
MOST_PAGE_MS = 300
TIMES = 5
PAGES = (
    "/", "/overview/savings", "/people", "/people?q=person-1", "/spaces", "/memories", "/search?text=Berlin", "/audit",
    "/health", "/settings", "/data", "/context?user=person-7&text=What+about+Berlin",
    "/person?user=person-7", "/person/portrait?user=person-7",
    "/person/memories?user=person-7", "/person/timeline?user=person-7", "/person/reminders?user=person-7",
    "/person/people?user=person-7", "/person/summaries?user=person-7",
    "/person/sessions?user=person-7", "/person/settings?user=person-7", "/person/audit?user=person-7",
)  # fmt: skip

Ask = Callable[[int], tuple[str, dict[str, Any] | None]]


def heading(text: str) -> None:
    titled(f"{text} (load {os.getloadavg()[0]:.1f})")


def served(ready: Any, folder: str, model: str, people: str) -> None:  # noqa: ANN401 - the end of a pipe
    """Serve a memory with one user who has a history, and many who said one thing."""

    async def run() -> None:
        settings = Settings(
            providers={"scripted": Provider("scripted", model)},
            routes={"chat": Route((Choice("scripted", "scripted"),))},
        )
        embedder = embedder_of_a_server(settings)
        async with aforesaid.connect(Path(folder) / "memory.db", settings=settings, embedder=embedder) as memory:
            ann = memory.user("ann")
            await ann.add_many({"role": ("user", "assistant")[n % 2], "text": text(n)} for n in range(HISTORY))
            for first in range(0, int(people), BATCH):
                numbers = range(first, min(first + BATCH, int(people)))
                await asyncio.gather(*(memory.user(f"person-{n}").add("user", text(n)) for n in numbers))
            await memory.upkeep()
            options = ServerOptions(Serving(requests_per_second=1e6, burst=1_000_000), settings=settings)
            app = create_app(memory, options)
            _, token = app.state.served.keys.add("bench", "admin")
            ready.send((str.__str__(token), os.getpid()))
            await serve_app(app, ready)

    run_loop(run)


class Load:
    """Callers of a server, and how many of their memories failed."""

    def __init__(self, port: int, token: str) -> None:
        self.port = port
        self.token = token
        self.failed = 0
        self.partial = 0

    async def run(self, ask: Ask, seconds: float, callers: int) -> list[float]:
        """Send requests without pause. Return the milliseconds of each."""
        taken: list[float] = []
        numbers = iter(range(10**9))

        async def keep_asking(until: float) -> None:
            async with Caller(self.port, self.token) as caller:
                while time.perf_counter() < until:
                    start = time.perf_counter()
                    head = await caller.call(*ask(next(numbers)), refused=True)
                    taken.append((time.perf_counter() - start) * 1000)
                    bad = int(head.split(" ", 2)[1]) >= 300 or "x-aforesaid-memory: failed" in head
                    self.failed += bad
                    self.partial += "x-aforesaid-memory: partial" in head

        await asyncio.gather(*(keep_asking(time.perf_counter() + seconds) for _ in range(callers)))
        return taken


def search(number: int) -> tuple[str, None]:
    return f"GET /api/search?user=ann&limit=10&q={WORDS[number % 10]}", None


def context(number: int) -> tuple[str, dict[str, Any]]:
    return "POST /api/context", {"user": "ann", "text": f"What about the {WORDS[number % 10]}?"}


async def many_callers(load: Load, seconds: float, callers: int) -> None:
    """Measure search, context and proxy with many callers at once."""
    heading(f"{callers} callers at a time, {seconds:g} s each")
    for label, ask in {"search": search, "context": context, "proxy": chat("ann")}.items():
        before, partial = load.failed, load.partial
        taken = await load.run(ask, seconds, callers)
        failed = f"{load.failed - before} failed, {load.partial - partial} without a search"
        row(label, f"{len(taken) / seconds:8,.0f}/s   {percentiles(taken)}   {failed}")


async def beside_an_import(load: Load, seconds: float) -> None:
    """Compare a search with the same search beside an import of another user's messages."""
    heading("One caller who searches, alone and beside an import (p50 should at most double)")
    alone = await load.run(search, seconds, 1)
    batches = 0

    def batch(number: int) -> tuple[str, dict[str, Any]]:
        nonlocal batches
        batches += 1
        messages = [{"role": "user", "text": text(number * BATCH + n), "id": f"i{number}-{n}"} for n in range(BATCH)]
        return "POST /api/messages/batch", {"user": "importer", "messages": messages}

    importing = asyncio.create_task(load.run(batch, seconds, 1))
    beside = await load.run(search, seconds, 1)
    await importing
    ratio = statistics.median(beside) / statistics.median(alone)
    row("alone", percentiles(alone))
    row(f"beside an import ({batches * BATCH / seconds:,.0f} messages/s)", percentiles(beside))
    row("ratio of the medians", f"{ratio:7.2f}")


async def idle_streams(load: Load, server: int, seconds: float) -> None:
    """Measure what open event streams without events cost the server."""
    heading(f"{STREAMS} idle event streams: CPU time of the server per second")
    row("without streams", f"{await _cpu(server, seconds):7.4f} s")
    head = f" HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {load.token}\r\n\r\n"

    async def opened() -> asyncio.StreamWriter:
        reader, writer = await asyncio.open_connection("127.0.0.1", load.port)
        writer.write(f"GET /api/events?user=ann{head}".encode())
        await reader.readuntil(b"\r\n\r\n")
        return writer

    streams = await asyncio.gather(*(opened() for _ in range(STREAMS)))
    # Whoever opens a stream is audited, which is an event for those who opened theirs before.
    await asyncio.sleep(SETTLING)
    row("with streams", f"{await _cpu(server, seconds):7.4f} s")
    for writer in streams:
        writer.close()


async def _cpu(server: int, seconds: float) -> float:
    """Return the CPU seconds that a process uses per second, while nobody calls it."""
    before = _used(server)
    await asyncio.sleep(seconds)
    return (_used(server) - before) / seconds


def _used(server: int) -> float:
    """Return the CPU seconds that a process has used."""
    fields = Path(f"/proc/{server}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def panel(load: Load, server: int, people: int) -> None:
    """Measure every page of the panel. On a machine with other work, the CPU time says more than the time."""
    heading(f"Pages of the panel with {people:,} people: first, median of {TIMES} (under {MOST_PAGE_MS} ms is wanted)")
    async with Caller(load.port, load.token, "Accept: text/html\r\n") as caller:
        for page in PAGES:
            taken, before = [], _used(server)
            for _ in range(TIMES):
                start = time.perf_counter()
                head = await caller.call(f"GET {page}", None, refused=True)
                taken.append((time.perf_counter() - start) * 1000)
            status = head.split(" ", 2)[1]
            cpu = (_used(server) - before) / TIMES * 1000
            odd = "" if status == "200" else f"   status {status}"
            row(page, f"{taken[0]:7.1f} ms {statistics.median(taken):7.1f} ms   {cpu:6.0f} ms of CPU time{odd}")


async def measure(arguments: argparse.Namespace, port: int, token: str, server: int) -> int:
    """Measure everything, one after the other. Return how many memories failed."""
    load = Load(port, token)
    await panel(load, server, arguments.people)
    await idle_streams(load, server, min(arguments.seconds, 10))
    await beside_an_import(load, arguments.seconds)
    await many_callers(load, arguments.seconds, arguments.callers)
    print(f"\n{load.failed} failed", flush=True)
    return load.failed


def main() -> None:
    """Measure the server under load."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="seconds per measurement (default: 30)")
    parser.add_argument("--callers", type=int, default=64, help="callers at a time (default: 64)")
    parser.add_argument("--people", type=int, default=20_000, help="people in the panel (default: 20000)")
    arguments = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with (
        tempfile.TemporaryDirectory() as folder,
        process(upstream) as model,
        process(served, folder, model.recv(), str(arguments.people)) as server,
    ):
        (token, number), port = server.recv(), server.recv()
        failed = asyncio.run(measure(arguments, port, token, number))
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
