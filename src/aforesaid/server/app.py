"""The ASGI application: created, described, traced, and run on a port."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, Final

import anyio
import uvicorn
from fastapi import APIRouter, FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from aforesaid import __version__
from aforesaid.background import beside
from aforesaid.errors import AforesaidError
from aforesaid.extras import how_to_install
from aforesaid.memory import Memory
from aforesaid.models.client import guard_logs, hide
from aforesaid.server import ServerOptions, api, authentication, panel, problems, prometheus
from aforesaid.server.auth import Keys, Sessions
from aforesaid.server.authentication import Authentication
from aforesaid.server.guard import Access, Bodies, Hosts, HttpMetrics, Rates, RouteTemplates, SecurityHeaders, cors
from aforesaid.server.languages import Languages, OfferedLanguages
from aforesaid.server.mcp_endpoint import McpEndpoint
from aforesaid.server.problems import MEDIA_TYPE, STATIC, Problem, Refusal, Wrong, problem
from aforesaid.server.proxy.proxy_memory import warm_up
from aforesaid.server.proxy.routes import CHATS, PASSED_ON
from aforesaid.server.state import AppState
from aforesaid.settings import Serving

_description: Final[dict[str, Any]] = {}
"""The description, once it was made. All applications of a process have the same routes, and so share it."""


class _Application(FastAPI):
    def openapi(self) -> dict[str, Any]:
        """Return the description, with the problem responses in the place of the framework's own."""
        if not _description:
            made = super().openapi()
            schemas = made.setdefault("components", {}).setdefault("schemas", {})
            for model in (Problem, Wrong):
                schemas[model.__name__] = model.model_json_schema(ref_template="#/components/schemas/{model}")
                schemas[model.__name__].pop("$defs", None)
            for unused in ("HTTPValidationError", "ValidationError"):
                schemas.pop(unused, None)
            _description.update(made)
        self.openapi_schema = _description
        return _description


_log: Final = logging.getLogger("aforesaid.server")


def _all_routes() -> APIRouter:
    routes = APIRouter()
    # They are tried in this order. Somebody waits for the first word of a chat.
    routes.routes.extend(CHATS)
    for router in (prometheus.router, api.router, authentication.router, panel.router):
        routes.include_router(router)
    routes.routes.extend(PASSED_ON)
    return routes


_ROUTES: Final = _all_routes()
"""Every route but /mcp, shared by all applications of the process: FastAPI needs 0.3 s to work them out."""


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    agents = app.state.agents
    here: AppState = app.state.served
    here.memory.components["upstream"] = here.upstream.health
    # Have FastAPI work out the routes, which it does when a route is first asked for; a person would wait for it.
    for route in app.router.routes:
        route.matches({"type": "http", "method": "GET", "path": "/", "root_path": "", "headers": []})
    # The embedder and the token counter take seconds to load. A stopping server does not wait for them.
    async with (
        beside(warm_up(here.memory), "warm-up"),
        agents.run() if agents is not None else nullcontext(),
    ):
        yield
    await here.close()


def _serve_agents(app: FastAPI, memory: Memory, serving: Serving) -> None:
    app.state.agents = None
    if find_spec("mcp") is None:
        _log.info("MCP is not served at /mcp (missing package: mcp); %s", how_to_install("mcp"))
        return
    app.state.agents = McpEndpoint(memory, serving.mcp_tokens, serving.body_bytes)
    app.router.routes.append(Route("/mcp", app.state.agents, name="mcp", include_in_schema=False))
    app.router.routes.extend(authentication.routes(serving.authorization_servers))


def create_app(memory: Memory, options: ServerOptions | None = None) -> FastAPI:
    """Return an ASGI application for an open memory. The caller closes the memory."""
    chosen = options or ServerOptions()
    keys = Keys(chosen.keys)
    http = HttpMetrics()
    app = _Application(
        lifespan=_lifespan,
        title="Aforesaid",
        version=__version__,
        summary="Long-term memory for chat bots and assistants.",
        docs_url=None,  # they load their scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.languages = OfferedLanguages(chosen.serving.language, chosen.serving.languages)
    rates = Rates(chosen.serving.requests_per_second, chosen.serving.burst)
    app.state.served = AppState(memory, chosen, keys, Sessions(keys), http, rates)
    hide(app.state.served.link)
    guard_logs()
    problems.install(app)
    # Routes are tried one after the other: these take no time, those of a hundred pages do.
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    _serve_agents(app, memory, chosen.serving)
    app.router.routes.extend(_ROUTES.routes)
    # The middleware added last sees a request first.
    app.add_middleware(Bodies, most_bytes=chosen.serving.body_bytes, seconds=chosen.serving.body_seconds)
    app.add_middleware(Authentication, state=app.state.served)
    if chosen.serving.origins:
        app.add_middleware(CORSMiddleware, **cors(chosen.serving.origins))
    app.add_middleware(Hosts, names=chosen.names, origins=chosen.serving.origins)
    app.add_middleware(Languages, offered=app.state.languages)
    app.add_middleware(SecurityHeaders)
    app.state.templates = RouteTemplates(app.router.routes)
    app.add_middleware(Access, http=http, templates=app.state.templates, tracing=lambda: memory.metrics.tracing)
    return app


def uvicorn_config(app: FastAPI, serving: Serving, **more: Any) -> uvicorn.Config:  # noqa: ANN401 - uvicorn's options
    """Return the uvicorn configuration of every server, including those of tests."""
    return uvicorn.Config(
        app,
        http=type("Bounded", (_Bounded,), {"serving": serving}),
        lifespan="on",
        log_config=None,
        access_log=False,  # it would log the token of the sign-in link
        server_header=False,
        proxy_headers=bool(serving.trusted_proxies),
        forwarded_allow_ips=list(serving.trusted_proxies),
        **more,
    )


class _Bounded(AutoHTTPProtocol):  # type: ignore[misc, valid-type] # which of two classes is decided at run time
    """uvicorn's protocol with limits on connections."""

    serving: Serving
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        if len(self.connections) >= self.serving.connections:
            transport.abort()
            return
        super().connection_made(transport)
        self._await_headers()

    def data_received(self, data: bytes) -> None:
        if self.transport is None:
            return  # The connection was one too many; what it sent before it was closed is dropped.
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self.timeout_keep_alive_task is None and not self.transport.is_closing():
            self._await_headers()

    def send_400_response(self, msg: str) -> None:
        """Answer with problem details, as to every other bad request: no route has been looked up yet."""
        answer = problem(
            Refusal(400, "bad-request", f"{msg} It is not HTTP/1.1, or its address or headers are too long.")
        )
        head = f"HTTP/1.1 400 Bad Request\r\ncontent-type: {MEDIA_TYPE}\r\ncontent-length: {len(answer.body)}\r\n"
        self.transport.write(head.encode() + b"connection: close\r\n\r\n" + bytes(answer.body))
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        if self.transport is not None:
            super().connection_lost(exc)

    def _await_headers(self) -> None:
        """Close the connection unless the headers of a request are complete in time."""
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.serving.header_seconds, self._close_late)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _close_late(self) -> None:
        self._deadline = None
        # A request may have been received and answered since the last bytes: then uvicorn's keep-alive counts.
        if self.timeout_keep_alive_task is None and (self.cycle is None or self.cycle.response_complete):
            self.transport.close()


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
        host = known.serving.host
        shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
        link = f"http://{shown}:{port}/"
        if known.auth:
            link += f"login?token={str.__str__(here.link)}"
        await _Server(config, here, lambda: ready(link)).serve(sockets=[listening])


class _Server(uvicorn.Server):
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
