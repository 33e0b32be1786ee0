"""`make bench-proxy OLD=…`: the proxy of another checkout compared with this one, in one run.

Both servers run at the same time and get the same requests in alternation, so what else the machine does slows down
both. Beside the time that a request takes, the processor time that the server uses until its reply is compared: it
hardly depends on the load of the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from measuring import heading, row
from serving import WORDS, Caller, process, upstream
from versions import line_of, running

STORED = 300
"""Messages of the person before the first request."""
_TURNS = 20
"""Questions of a chat before a new one begins."""
_PAUSE_SECONDS = 0.35
"""Between requests, so that the work in the background after one is not measured with the next."""
_SERVER = """
import asyncio, sys
from pathlib import Path
import aforesaid
import uvicorn
from aforesaid.server import ServerOptions, create_app
from aforesaid.server.app import listen, run
from aforesaid.settings import Choice, Provider, Route, Serving, Settings

def text(n):
    return f"Message {n}: we talked about the {WORDS[n % 10]}, then about the {WORDS[n // 10 % 10]}, and what to do."

async def main(model, folder, stored):
    settings = Settings(
        providers={"scripted": Provider("scripted", model)}, routes={"chat": Route((Choice("scripted", "scripted"),))}
    )
    async with aforesaid.connect(Path(folder) / "memory.db", settings=settings, embedder="deterministic") as memory:
        ann = memory.user("ann")
        await asyncio.gather(*(ann.add(("user", "assistant")[n % 2], text(n)) for n in range(int(stored))))
        await memory.upkeep()
        app = create_app(memory, ServerOptions(Serving(requests_per_second=1e6, burst=1_000_000), settings=settings))
        _, token = app.state.served.keys.add("bench", "app", space="default")
        listening = listen("127.0.0.1", 0)
        print(str.__str__(token), listening.getsockname()[1], flush=True)
        await uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False)).serve(sockets=[listening])

WORDS = sys.argv[4].split()
run(main, *sys.argv[1:4])
"""
"""Runs with the code of either checkout, so it uses only what both have."""


class Server(NamedTuple):
    """A running server."""

    process: subprocess.Popen[str]
    caller: Caller

    def cpu_ms(self) -> float:
        """Return the processor time of all threads so far."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(each.read_text().split()[0]) for each in tasks) / 1e6


def request(number: int) -> dict[str, Any]:
    """Return a request of a chat that grows question by question, and begins anew after some of them."""
    messages: list[dict[str, str]] = [{"role": "system", "content": "Be brief."}]
    for each in range(number - number % _TURNS, number + 1):
        messages.append({"role": "user", "content": f"Question {each}: what about the {WORDS[each % 10]}?"})
        messages.append({"role": "assistant", "content": "Certainly."})
    return {"model": "scripted", "user": "ann", "messages": messages[:-1]}


async def measure(servers: dict[str, Server], direct: Caller, requests: int) -> None:
    """Send the requests to all in turn, and print what each server adds to a direct call of the model."""
    took: dict[str, list[float]] = {name: [] for name in (*servers, "direct")}
    used: dict[str, list[float]] = {name: [] for name in servers}
    line, warm = "POST /v1/chat/completions", _TURNS
    async with direct:
        for each in servers.values():
            await each.caller.__aenter__()
        for number in range(warm + requests):
            body = request(number)
            for name in (*servers, "direct") if number % 2 else ("direct", *reversed(servers)):
                server = servers.get(name)
                before, start_at = 0.0 if server is None else server.cpu_ms(), time.perf_counter()
                await (direct if server is None else server.caller).call(line, body)
                if number >= warm:
                    took[name].append((time.perf_counter() - start_at) * 1_000)
                    if server is not None:
                        used[name].append(server.cpu_ms() - before)
                await asyncio.sleep(0 if server is None else _PAUSE_SECONDS)
    usual = statistics.median(took["direct"])
    added = {name: statistics.median(took[name]) - usual for name in servers}
    cpu = {name: statistics.median(used[name]) for name in servers}
    heading(
        f"What the proxy adds to a direct call, at the median of {requests} requests; load {os.getloadavg()[0]:.1f}"
    )
    for name in servers:
        row(name, f"{added[name]:7.2f} ms   processor time until the reply {cpu[name]:7.2f} ms")
    row(
        "this checkout, relative to the other",
        f"{added['this'] / added['other']:7.3f}   {cpu['this'] / cpu['other']:7.3f}",
    )


def main() -> None:
    """Compare two checkouts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, help="another checkout of the project")
    parser.add_argument("--requests", type=int, default=100, help="requests per server")
    options = parser.parse_args()
    checkouts = {"other": options.other, "this": Path(__file__).parent.parent}
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        address = stack.enter_context(process(upstream)).recv()
        servers: dict[str, Server] = {}
        for name, source in checkouts.items():
            (Path(folder) / name).mkdir()
            arguments = address, f"{folder}/{name}", str(STORED), " ".join(WORDS)
            started = stack.enter_context(running(source, _SERVER, *arguments))
            token, port = line_of(started).split()
            servers[name] = Server(started, Caller(int(port), token))
        direct = Caller(int(address.rpartition(":")[2].partition("/")[0]))
        asyncio.run(measure(servers, direct, options.requests))


if __name__ == "__main__":
    main()
