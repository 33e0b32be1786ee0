"""Creates the ASGI application."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Final

from fastapi import APIRouter, FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route

from aforesaid import __version__
from aforesaid.background import beside
from aforesaid.extras import how_to_install
from aforesaid.memory import Memory
from aforesaid.models.client import guard_logs, hide
from aforesaid.server import api, panel, problems, resource_metadata, signin, status
from aforesaid.server.auth import Keys, Sessions
from aforesaid.server.authentication import Authentication
from aforesaid.server.describe import describe
from aforesaid.server.guard import Access, Bodies, Headers, Hosts, Rates
from aforesaid.server.guard.cors import cors
from aforesaid.server.languages import Languages, OfferedLanguages
from aforesaid.server.metrics import HttpMetrics
from aforesaid.server.options import ServerOptions
from aforesaid.server.pages import STATIC
from aforesaid.server.proxy import pass_through
from aforesaid.server.proxy.routes import CHATS
from aforesaid.server.request_spans import RequestSpans
from aforesaid.server.route_templates import RouteTemplates
from aforesaid.server.state import AppState
from aforesaid.settings import Serving
from aforesaid.telemetry import unmeasured

_log: Final = logging.getLogger("aforesaid.server")


def _all_routes() -> APIRouter:
    routes = APIRouter()
    # They are tried in this order. Somebody waits for the first word of a chat.
    routes.routes.extend(CHATS)
    for router in (status.router, api.router, signin.router, panel.router):
        routes.include_router(router)
    routes.routes.extend(pass_through.ROUTES)
    return routes


_ROUTES: Final = _all_routes()
"""Every route but /mcp, shared by all applications of the process: FastAPI needs 0.3 s to work them out."""


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    agents = app.state.agents
    here: AppState = app.state.served
    here.memory.components["upstream"] = here.upstream.health
    _prepare_routes(app)
    # The embedder and the token counter take seconds to load. A stopping server does not wait for them.
    async with (
        beside(_warm_up(here.memory), "warm-up"),
        agents.run() if agents is not None else nullcontext(),
    ):
        yield
    await here.close()


async def _warm_up(memory: Memory) -> None:
    try:
        with unmeasured():
            await memory.user("nobody").context("hello", sent=False)
            # From now on alerts are raised, also if nothing is stored.
            await memory.health()
    except Exception as error:  # an embedder of the operator's own may raise anything
        _log.warning("the first context failed: %s", error)


def _prepare_routes(app: FastAPI) -> None:
    """Have FastAPI work out the routes, which it does when a route is first asked for; a person would wait for it."""
    for route in app.router.routes:
        route.matches({"type": "http", "method": "GET", "path": "/", "root_path": "", "headers": []})


def _serve_agents(app: FastAPI, memory: Memory, serving: Serving) -> None:
    """Add MCP if the extra `mcp` is installed."""
    app.state.agents = None
    try:
        from aforesaid.server.mcp.http import McpEndpoint  # noqa: PLC0415
    except ImportError as error:
        _log.info("MCP is not served at /mcp (missing package: %s); %s", error.name, how_to_install("mcp"))
        return
    app.state.agents = McpEndpoint(memory, serving.mcp_tokens, serving.body_bytes)
    app.router.routes.append(Route("/mcp", app.state.agents, name="mcp", include_in_schema=False))
    app.router.routes.extend(resource_metadata.routes(serving.authorization_servers))


def create_app(memory: Memory, options: ServerOptions | None = None) -> FastAPI:
    """Return an ASGI application for an open memory. The caller closes the memory."""
    chosen = options or ServerOptions()
    keys = Keys(chosen.keys)
    http = HttpMetrics()
    app = FastAPI(
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
    describe(app)
    # The middleware added last sees a request first.
    app.add_middleware(Bodies, most_bytes=chosen.serving.body_bytes, seconds=chosen.serving.body_seconds)
    app.add_middleware(Authentication, state=app.state.served)
    if chosen.serving.origins:
        app.add_middleware(CORSMiddleware, **cors(chosen.serving.origins))
    app.add_middleware(Hosts, names=chosen.names, origins=chosen.serving.origins)
    app.add_middleware(Languages, offered=app.state.languages)
    templates = RouteTemplates(app.router.routes)
    app.add_middleware(RequestSpans, state=app.state.served, templates=templates)
    app.add_middleware(Headers)
    app.add_middleware(Access, metrics=http, templates=templates)
    return app
