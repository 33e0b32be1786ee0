"""Running a server: a port, a ready link, and a stop that loses nothing."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, Final

import anyio
import uvicorn

from aforesaid.errors import AforesaidError
from aforesaid.memory import Memory
from aforesaid.server.app import create_app
from aforesaid.server.connections import uvicorn_config
from aforesaid.server.options import ServerOptions
from aforesaid.server.state import AppState

_SHUTDOWN_SECONDS: Final = 30
"""Seconds that requests get to finish when the server stops."""
_COLLECT_AFTER: Final = 10_000
"""Objects that are made before the youngest are collected. A request makes several hundred, and few are in cycles."""


def run(main: Callable[..., Coroutine[Any, Any, None]], *given: object) -> None:
    """Run the event loop of a server: uvloop, which takes less time for the same, where it is installed.

    What is loaded by now stays as long as the process, so the garbage collector leaves it alone: to look through all of
    it took more than 100 ms, in which no request was answered.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)
    anyio.run(main, *given, backend_options={"use_uvloop": find_spec("uvloop") is not None})


async def serve(memory: Memory, options: ServerOptions, ready: Callable[[str], None]) -> None:
    """Serve a memory until somebody stops the process. `ready` is called with the link once requests are taken.

    Stops at SIGINT and SIGTERM: no more requests are taken, those that are being answered are finished.
    """
    listening = listen(options.serving.host, options.serving.port)
    with listening:
        # Port 0 means any that is free: from now on it is known which.
        port: int = listening.getsockname()[1]
        known = replace(options, serving=replace(options.serving, port=port))
        app = create_app(memory, known)
        here: AppState = app.state.served
        config = uvicorn_config(app, known.serving, timeout_graceful_shutdown=_SHUTDOWN_SECONDS)
        await _Server(config, here, lambda: ready(_link(known, here))).serve(sockets=[listening])


class _Server(uvicorn.Server):
    """A server that says when it is ready and when it stops, and returns when it has stopped."""

    def __init__(self, config: uvicorn.Config, here: AppState, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._here = here
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._here.stop_streams()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at a signal. Its original raises the signal again, and the memory is still to be closed."""
        loop = asyncio.get_running_loop()
        stopping = (signal.SIGINT, signal.SIGTERM)
        for number in stopping:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in stopping:
                loop.remove_signal_handler(number)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens, or say why that cannot be."""
    # The protocol is named: the event loop sends small answers at once (TCP_NODELAY) only where it knows it to be TCP.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(2048)
    except OSError as error:
        listening.close()
        raise AforesaidError(
            f"cannot listen on {host}, port {port}: {error.strerror or error}; "
            "stop what listens there, or choose another with --host and --port"
        ) from error
    return listening


def _link(options: ServerOptions, here: AppState) -> str:
    host = options.serving.host
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    address = f"http://{shown}:{options.serving.port}/"
    return f"{address}login?token={str.__str__(here.link)}" if options.auth else address
