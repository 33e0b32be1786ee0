"""What is written down about every request: never its query, its headers or its body, where secrets and talk are."""

from __future__ import annotations

import logging
import time
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aforesaid.server.metrics import HttpMetrics
from aforesaid.server.route_templates import RouteTemplates, path_of

_log: Final = logging.getLogger("aforesaid.server.access")


class Access:
    """Logs and counts requests."""

    def __init__(self, app: ASGIApp, metrics: HttpMetrics, templates: RouteTemplates) -> None:
        self._app = app
        self._metrics = metrics
        self._templates = templates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and say what became of it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 500
        path = path_of(scope)
        began = time.perf_counter()

        async def send_seen(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_seen)
        finally:
            took = time.perf_counter() - began
            route = self._templates.of(scope, path)
            self._metrics.seen(scope["method"], route, status, took)
            # The route, not the path: a path can hold a user's name.
            _log.info("%s %s %d %.1f ms %s", scope["method"], route, status, took * 1000, scope.get("caller", "-"))
