"""A span for each request that the server answers, below the span of the client that sent it."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aforesaid.server.route_templates import OTHER, RouteTemplates, path_of
from aforesaid.server.state import AppState


class RequestSpans:
    """Makes the spans. The header `traceparent` of a request names the span above."""

    def __init__(self, app: ASGIApp, state: AppState, templates: RouteTemplates) -> None:
        self._app = app
        self._state = state
        self._templates = templates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request inside a span."""
        tracing = self._state.memory.metrics.tracing if scope["type"] == "http" else None
        if tracing is None:
            await self._app(scope, receive, send)
            return
        method, path = scope["method"], path_of(scope)
        with tracing.request(method, Headers(scope=scope), http__request__method=method) as span:

            async def noted(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.note(http__response__status_code=message["status"])
                await send(message)

            await self._app(scope, receive, noted)
            # A template has no ids of people in it, as the path of a request may.
            route = self._templates.of(scope, path)
            span.note(http__route=None if route == OTHER else route)
