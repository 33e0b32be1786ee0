"""`make bench-server`: the server over loopback, compared with an empty route, and the proxy with a direct call.

Server, load and scripted model are processes of their own. The load is written here, over plain sockets: a client
library would be slower than what it measures.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

sys.path.insert(0, str(Path(__file__).parent))

import uvicorn
from fastapi import FastAPI
from measuring import heading, percentiles, row

import aforesaid
from aforesaid.models.embed import embedder_of_a_server
from aforesaid.server import ServerOptions, create_app
from aforesaid.server.app import listen
from aforesaid.server.app import run as run_loop
from aforesaid.settings import Choice, Provider, Route, Serving, Settings
from aforesaid.testing import ScriptedModel

HISTORY = 500
_SETTLING_SECONDS = 20
TALKERS = {"few": 300, "many": 10_000}
"""The user of the proxy benchmark, and the number of their stored messages."""
WORDS = ("Berlin", "tea", "dentist", "garden", "train", "parrot", "violin", "Monday", "island", "soup")


def text(number: int) -> str:
    first, second = WORDS[number % 10], WORDS[number // 10 % 10]
    return f"Message {number}: we talked about the {first} and then about the {second}, and what to do next week."


async def serve_app(app: FastAPI, ready: Any) -> None:  # noqa: ANN401 - the end of a pipe
    """Serve an application on a free port, and send the port."""
    config = uvicorn.Config(app, log_config=None, access_log=False, server_header=False)
    listening = listen("127.0.0.1", 0)
    ready.send(listening.getsockname()[1])
    await uvicorn.Server(config).serve(sockets=[listening])


def bare(ready: Any) -> None:  # noqa: ANN401
    """Serve an empty route, as an upper bound."""
    app = FastAPI()

    @app.post("/nothing")
    async def nothing(body: dict[str, Any]) -> dict[str, Any]:
        return body

    run_loop(serve_app, app, ready)


def served(ready: Any, folder: str, model: str) -> None:  # noqa: ANN401
    """Serve a memory with a history."""

    async def run() -> None:
        settings = Settings(
            providers={"scripted": Provider("scripted", model)},
            routes={"chat": Route((Choice("scripted", "scripted"),))},
        )
        embedder = embedder_of_a_server(settings)
        async with aforesaid.connect(Path(folder) / "memory.db", settings=settings, embedder=embedder) as memory:
            for user, size in {"ann": HISTORY, **TALKERS}.items():
                person = memory.user(user)
                for first in range(0, size, 1_000):
                    numbers = range(first, min(first + 1_000, size))
                    await asyncio.gather(*(person.add(("user", "assistant")[n % 2], text(n)) for n in numbers))
            await memory.upkeep()
            options = ServerOptions(Serving(requests_per_second=1e6, burst=1_000_000), settings=settings)
            app = create_app(memory, options)
            _, token = app.state.served.keys.add("bench", "app", space="default")
            ready.send(str.__str__(token))
            await serve_app(app, ready)

    run_loop(run)


def upstream(ready: Any) -> None:  # noqa: ANN401
    """Serve a model that answers immediately."""
    with ScriptedModel(lambda _: "Certainly.") as model:
        ready.send(model.base_url)
        time.sleep(1e6)


@contextmanager
def process(target: Callable[..., None], *arguments: str) -> Iterator[Any]:
    """Run a function in a child process until the end of the block; yield its pipe."""
    mine, theirs = multiprocessing.get_context("spawn").Pipe()
    started = multiprocessing.get_context("spawn").Process(target=target, args=(theirs, *arguments), daemon=True)
    started.start()
    try:
        yield mine
    finally:
        started.kill()
        started.join()


class Caller:
    """A persistent connection."""

    def __init__(self, port: int, token: str = "", more: str = "") -> None:
        self._port = port
        key = f"Authorization: Bearer {token}\r\n" if token else ""
        self._head = f" HTTP/1.1\r\nHost: 127.0.0.1\r\n{key}{more}Content-Type: application/json\r\n"

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    async def call(self, line: str, body: dict[str, Any] | None, *, refused: bool = False) -> str:
        """Send a request and return the head of its answer in lower case. An error status fails without `refused`."""
        data = b"" if body is None else json.dumps(body).encode()
        self._writer.write(f"{line}{self._head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        status = int(head.split(" ", 2)[1])
        if "content-length:" in head:
            await self._reader.readexactly(int(head.partition("content-length:")[2].split("\r\n")[0]))
        else:
            while size := int((await self._reader.readline()).strip(), 16):
                await self._reader.readexactly(size + 2)
            await self._reader.readline()
        assert refused or status < 300, head
        return head


async def load(
    port: int,
    ask: Callable[[int], tuple[str, dict[str, Any] | None]],
    token: str,
    seconds: float,
    callers: int,
    pause: float = 0.0,
    more: str = "",
) -> tuple[float, list[float]]:
    """Send requests without pause, or with pauses. Return requests per second, and the milliseconds of each."""
    taken: list[float] = []
    numbers = iter(range(10**9))

    async def keep_asking(until: float) -> None:
        async with Caller(port, token, more) as caller:
            while time.perf_counter() < until:
                start = time.perf_counter()
                await caller.call(*ask(next(numbers)))
                taken.append((time.perf_counter() - start) * 1000)
                await asyncio.sleep(pause)

    await asyncio.gather(*(keep_asking(time.perf_counter() + 0.5) for _ in range(callers)))  # warm
    taken.clear()
    began = time.perf_counter()
    await asyncio.gather(*(keep_asking(began + seconds) for _ in range(callers)))
    return len(taken) / (time.perf_counter() - began), taken


def chat(user: str) -> Callable[[int], tuple[str, dict[str, Any]]]:
    """Return a function that sends a new question of a user on each call."""

    def ask(number: int) -> tuple[str, dict[str, Any]]:
        question = {"role": "user", "content": f"Question {number}: what about the {WORDS[number % 10]}?"}
        messages = [{"role": "system", "content": "Be brief."}, question]
        return "POST /v1/chat/completions", {"model": "scripted", "user": user, "messages": messages}

    return ask


async def measure_proxy(seconds: float, port: int, token: str, model_port: int) -> None:
    """Measure what the proxy adds to a direct call of the model."""
    heading(
        "The proxy, one caller: what it adds to a direct call of the model (at most 15 ms at the median are wanted)"
    )
    _, direct = await load(model_port, chat("few"), "", seconds, 1)
    usual = statistics.median(direct)
    row("direct", percentiles(direct))

    async def through(label: str, user: str, pause: float, more: str = "") -> None:
        _, taken = await load(port, chat(user), token, seconds * (4 if pause else 1), 1, pause, more)
        added = statistics.median(taken) - usual
        row(label, f"{percentiles(taken)}   added, p50 {added:7.3f} ms ({added / usual:4.0f} times a direct call)")

    await through("through the proxy, memory off", "few", 0.0, "X-Aforesaid-Memory: off\r\n")
    # Stored messages are processed in the background by the embedder that questions need.
    await load(port, chat("few"), token, 1, 1)
    await asyncio.sleep(_SETTLING_SECONDS)
    for user, size in TALKERS.items():
        # Pauses between requests, as with people and models, in which messages are embedded and processed.
        await through(f"with {size:,} messages, requests half a second apart", user, 0.5)
        await through(f"with {size:,} messages, requests without a pause", user, 0.0)


async def measure(seconds: float, bare_port: int, port: int, token: str, model_port: int) -> None:
    """Measure everything, one after the other."""
    routes: dict[str, tuple[int, Callable[[int], tuple[str, dict[str, Any] | None]]]] = {
        "a bare route that does nothing (the limit)": (
            bare_port,
            lambda n: ("POST /nothing", {"user": "ann", "text": text(n)}),
        ),
        f"search: GET /api/search, of {HISTORY:,} messages": (
            port,
            lambda n: (f"GET /api/search?user=ann&limit=10&q={WORDS[n % 10]}", None),
        ),
        f"context: POST /api/context, of {HISTORY:,} messages": (
            port,
            lambda n: ("POST /api/context", {"user": "ann", "text": f"What about the {WORDS[n % 10]}?"}),
        ),
        # Last, because added messages are processed in the background, which would slow down the others.
        "add: POST /api/messages, durable": (
            port,
            lambda n: ("POST /api/messages", {"user": f"u{n % 50}", "role": "user", "text": text(n)}),
        ),
    }
    await measure_proxy(seconds, port, token, model_port)
    for callers in (1, 16):
        heading(f"{callers} caller{'s' * (callers > 1)} at a time, {seconds:g} s each")
        for label, (where, ask) in routes.items():
            rate, taken = await load(where, ask, token, seconds, callers)
            row(label, f"{rate:8,.0f}/s   {percentiles(taken)}")


def main() -> None:
    """Measure the server."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="seconds per measurement")
    seconds = parser.parse_args().seconds
    print(
        f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f}"
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        process(upstream) as model,
        process(bare) as limit,
    ):
        address = model.recv()
        with process(served, folder, address) as server:
            token, port = server.recv(), server.recv()
            model_port = int(address.rpartition(":")[2].partition("/")[0])
            asyncio.run(measure(seconds, limit.recv(), port, token, model_port))


if __name__ == "__main__":
    main()
