"""A server for tests, called through an HTTP client."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import uvicorn
from fastapi import FastAPI

import aforesaid
from aforesaid.memory import Memory
from aforesaid.models.embed import Embedder
from aforesaid.server import ServerOptions, create_app
from aforesaid.server.app import listen, uvicorn_config
from aforesaid.server.app import run as run_loop
from aforesaid.server.state import AppState
from aforesaid.settings import Serving, Settings

ADDRESS = "http://127.0.0.1:5002"
T = TypeVar("T")


@dataclass
class Running:
    """An application and its state."""

    app: FastAPI
    memory: Memory

    @property
    def here(self) -> AppState:
        served: AppState = self.app.state.served
        return served

    def key(self, role: str = "app", space: str | None = "default", user: str | None = None) -> str:
        """Make a key and return its token."""
        _, token = self.here.keys.add(f"test {role}", role, space=space, user=user)
        return str.__str__(token)

    def client(self, token: str | None = None) -> httpx2.AsyncClient:
        """Return a client with a key, or without one."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        transport = httpx2.ASGITransport(self.app, raise_app_exceptions=False)
        return httpx2.AsyncClient(transport=transport, base_url=ADDRESS, headers=headers)

    def admin(self) -> httpx2.AsyncClient:
        """Return a client that may do everything."""
        return self.client(str.__str__(self.here.link))


@asynccontextmanager
async def running(
    location: str | Path = ":memory:",
    *,
    serving: Serving | None = None,
    settings: Settings | None = None,
    auth: bool = True,
    keys: Path | None = None,
) -> AsyncIterator[Running]:
    """Open a memory and serve it."""
    chosen = settings or Settings()
    async with aforesaid.connect(location, settings=chosen, embedder="deterministic") as memory:
        # Tests ask more often than people do; the limits have tests of their own.
        allowed = serving or Serving(requests_per_second=1e6, burst=1_000_000)
        options = ServerOptions(allowed, auth=auth, keys=keys, settings=chosen)
        yield Running(create_app(memory, options), memory)


@dataclass
class Live:
    """A server that listens on a port of this machine, for clients that need a real one."""

    address: str
    served: AppState
    loop: asyncio.AbstractEventLoop

    def key(self, role: str = "app", space: str | None = "default", user: str | None = None) -> str:
        """Make a key and return its token."""
        _, token = self.served.keys.add(f"test {role}", role, space=space, user=user)
        return str.__str__(token)

    @property
    def link(self) -> str:
        return str.__str__(self.served.link)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the server's event loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)


@contextmanager
def live(
    location: str | Path = ":memory:",
    *,
    settings: Settings | None = None,
    profile: str | None = None,
    serving: Serving | None = None,
    auth: bool = True,
    embedder: str | Embedder = "deterministic",
    keys: Path | None = None,
) -> Iterator[Live]:
    """Serve a memory on a free port, in a thread of its own."""
    ready: Future[Live] = Future()
    finished = threading.Event()

    async def run() -> None:
        chosen = settings or Settings()
        listening = listen("127.0.0.1", 0)
        port: int = listening.getsockname()[1]
        bounds = replace(serving or Serving(requests_per_second=1e6, burst=1_000_000), port=port)
        async with aforesaid.connect(location, settings=chosen, embedder=embedder, profile=profile) as memory:
            app = create_app(memory, ServerOptions(bounds, auth=auth, keys=keys, settings=chosen))
            config = uvicorn_config(app, bounds)
            server = uvicorn.Server(config)
            here: AppState = app.state.served
            loop = asyncio.get_running_loop()
            task = asyncio.create_task(server.serve(sockets=[listening]))
            while not server.started:
                await asyncio.sleep(0.01)
            ready.set_result(Live(f"http://127.0.0.1:{port}", here, loop))
            await asyncio.to_thread(finished.wait)
            here.stop_streams()
            server.should_exit = True
            await task

    def body() -> None:
        try:
            run_loop(run)
        except BaseException as error:
            if not ready.done():
                ready.set_exception(error)
            raise

    thread = threading.Thread(target=body, name="test-server", daemon=True)
    thread.start()
    try:
        yield ready.result(60)
    finally:
        finished.set()
        thread.join(60)
