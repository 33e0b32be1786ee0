"""A server for tests, asked through a client that speaks to it as any program does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
from fastapi import FastAPI

import recollect
from recollect.memory import Memory
from recollect.server import ServerOptions, create_app
from recollect.server.needs import Served
from recollect.settings import Serving, Settings

ADDRESS = "http://127.0.0.1:5002"


@dataclass
class Running:
    """An application, and what it serves."""

    app: FastAPI
    memory: Memory

    @property
    def here(self) -> Served:
        served: Served = self.app.state.served
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
    async with recollect.connect(location, settings=chosen, embedder="deterministic") as memory:
        # Tests ask more often than people do; the limits have tests of their own.
        allowed = serving or Serving(requests_per_second=1e6, burst=1_000_000)
        options = ServerOptions(allowed, auth=auth, keys=keys, settings=chosen)
        yield Running(create_app(memory, options), memory)
