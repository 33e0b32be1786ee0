"""What stands before every route: access log, metrics and spans of requests; hosts, origins, sizes, rates, headers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from re import Pattern
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from fastapi import routing
from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Mount, compile_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aforesaid.server import ANY_ORIGIN
from aforesaid.server.problems import Refusal, protocol_problem
from aforesaid.telemetry.tracing import Tracing

OTHER: Final = "other"
"""Stands for all paths without a route: everybody can make up as many as they like."""


class _Known(NamedTuple):
    path: Pattern[str]
    methods: frozenset[str]
    template: str


class RouteTemplates:
    """The templates of an application's routes, with the prefixes of the routers that they are in."""

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        """Take the list of an application's routes. It is read at the first request, when it is complete."""
        self._routes = routes
        self._all: list[_Known] = []
        self._selected: dict[int, str] = {}

    def of(self, scope: Scope, path: str) -> str:
        """Return the template for a request, whether it was answered or refused; `other` if it has no route.

        `path` is that of the request when it came: where a mounted application answers, its scope changes. A request
        with a wrong method has the route of its path.
        """
        if not self._all:
            self._read()
        selected = self._selected.get(id(scope.get("route")))
        if selected is not None:
            return selected
        # It was refused before a route was selected, or its route is one of Starlette's own, which the scope does not
        # name.
        found = [known for known in self._all if known.path.match(path)]
        fitting = (known.template for known in found if not known.methods or scope["method"] in known.methods)
        return next(fitting, found[0].template if found else OTHER)

    def _read(self) -> None:
        # FastAPI selects the routes of an included router without their prefix; older versions copy and prefix them.
        unfold = getattr(routing, "iter_route_contexts", None)
        for found in self._routes if unfold is None else unfold(self._routes):
            route: Any = found
            original = getattr(route, "original_route", route)
            below = "/{path:path}" if isinstance(original, Mount) else ""
            methods = frozenset(getattr(route, "methods", None) or ())
            known = _Known(compile_path(route.path + below)[0], methods, route.path)
            self._all.append(known)
            self._selected[id(original)] = known.template


_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class HttpMetrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "aforesaid_http_requests",
            "Requests that were answered.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "aforesaid_http_request_seconds",
            "How long answers took, to their last byte.",
            ("method", "route"),
            buckets=_SECONDS,
            registry=self.registry,
        )

    def seen(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)


_log: Final = logging.getLogger("aforesaid.server.access")


class Access:
    """Logs and counts requests, and makes a span for each if tracing is on."""

    def __init__(
        self, app: ASGIApp, http: HttpMetrics, templates: RouteTemplates, tracing: Callable[[], Tracing | None]
    ) -> None:
        self._app = app
        self._http = http
        self._templates = templates
        self._tracing = tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 500
        method: str = scope["method"]
        # Where a mounted application answers, the scope changes.
        path: str = scope["path"].removeprefix(scope.get("root_path", ""))
        tracing = self._tracing()
        began = time.perf_counter()

        async def send_seen(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if span is not None:
                    span.note(http__response__status_code=status)
            await send(message)

        headers = Headers(scope=scope)
        opened = nullcontext() if tracing is None else tracing.request(method, headers, http__request__method=method)
        try:
            with opened as span:
                await self._app(scope, receive, send_seen)
                if span is not None:
                    route = self._templates.of(scope, path)
                    span.note(http__route=None if route == OTHER else route)
        finally:
            took = time.perf_counter() - began
            # The route, not the path: a path can hold a user's name.
            route = self._templates.of(scope, path)
            self._http.seen(method, route, status, took)
            _log.info("%s %s %d %.1f ms %s", method, route, status, took * 1000, scope.get("caller", "-"))


_LEAST_BYTES_PER_SECOND: Final = 1024
"""How fast a body must arrive on average once `server.body_seconds` are over."""


class Bodies:
    """Refuses bodies that are too large (413) or arrive too slowly (408)."""

    def __init__(self, app: ASGIApp, most_bytes: int, seconds: float = 30.0) -> None:
        self._app = app
        self._most_bytes = most_bytes
        self._too_large = f"The request has more than {most_bytes:,} bytes (server.body_bytes)."
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "0")
        if declared.isdecimal() and int(declared) > self._most_bytes:
            answer = protocol_problem(
                scope, Refusal(413, "too-large", self._too_large, headers={"Connection": "close"})
            )
            await answer(scope, receive, send)
            return
        seen, complete = 0, False
        began = asyncio.get_running_loop().time()

        async def receive_bounded() -> Message:
            nonlocal seen, complete
            if complete:
                return await receive()  # The client may wait for the answer as long as it likes.
            try:
                async with asyncio.timeout_at(began + self._seconds + seen / _LEAST_BYTES_PER_SECOND):
                    message = await receive()
            except TimeoutError:
                words = "The body of the request arrives too slowly (server.body_seconds)."
                raise HTTPException(408, words, {"Connection": "close"}) from None
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                complete = not message.get("more_body", False)
                if seen > self._most_bytes:
                    raise HTTPException(413, self._too_large, {"Connection": "close"})
            return message

        await self._app(scope, receive_bounded, send)


POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Files of our own, and nothing else: whatever a chat contains, nothing of it runs."""

_ALWAYS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With `no-referrer`, browsers would not say that a form of ours is ours: its Origin would be `null`.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class SecurityHeaders:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_more(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _ALWAYS.items():
                    headers[name] = value
                # What is remembered about people stays out of caches.
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, send_more)


_BELOW: Final = ("/api/", "/v1/", "/mcp")
"""Where keys are used. Pages of the panel, which use cookies, are never open to other pages."""
_EXPOSED: Final = (
    "X-Aforesaid-Memory", "X-Aforesaid-Reason", "X-Aforesaid-Tokens", "X-Request-Id", "Request-Id", "Retry-After",
    "ETag", "Link",
)  # fmt: skip
"""Headers of answers that a page may read."""
_PREFLIGHT_SECONDS: Final = 600


def cors(origins: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of Starlette's middleware. Cookies are never accepted from other pages."""
    return {
        "allow_origins": list(origins),
        "allow_methods": ["GET", "POST", "PUT", "PATCH", "DELETE"],
        "allow_headers": ["*"],
        "expose_headers": list(_EXPOSED),
        "max_age": _PREFLIGHT_SECONDS,
        "allow_private_network": True,  # browsers ask before a public page may call a server in a private network
    }


OTHER_ORIGIN: Final = "aforesaid.other_origin"
"""The key in the ASGI scope of requests that an allowed page of another origin makes."""
UNGUARDED: Final = ("/healthz", "/readyz")
"""What asks these calls the server by whatever address it has, and learns nothing but that it runs."""


class Hosts:
    """Refuses requests under a foreign name, and from foreign pages."""

    def __init__(self, app: ASGIApp, names: frozenset[str], origins: Sequence[str] = ()) -> None:
        self._app = app
        self._names = names
        self._origins = origins
        """Origins of other servers' pages that may call the API."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in UNGUARDED:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        name, colon, port = host.rpartition(":")
        if (name if colon and port.isdecimal() else host) not in self._names:
            words = "This server is not called that. If it should be, add the name to server.hosts."
            answer = protocol_problem(scope, Refusal(421, "wrong-host", words))
        elif _own_page(headers, host):
            await self._app(scope, receive, send)
            return
        elif scope["path"].startswith(_BELOW) and (
            ANY_ORIGIN in self._origins or headers.get("origin", "").lower() in self._origins
        ):
            scope[OTHER_ORIGIN] = True
            await self._app(scope, receive, send)
            return
        else:
            words = "Requests from pages of other sites are refused."
            answer = protocol_problem(scope, Refusal(403, "wrong-origin", words))
        await answer(scope, receive, send)


def _own_page(headers: Headers, host: str) -> bool:
    """Return whether a request comes from a page of this server, or from no page at all."""
    origin = headers.get("origin")
    if origin is not None:
        # Another port of the same machine is another site.
        return urlsplit(origin).netloc.lower() == host
    # A link on another page may lead here; anything else that a browser says comes from elsewhere may not.
    elsewhere = headers.get("sec-fetch-site") in {"cross-site", "same-site"}
    return not elsewhere or headers.get("sec-fetch-mode") == "navigate"


_MOST_CALLERS: Final = 10_000


class Rates:
    """A bucket of allowances for each caller: it fills steadily, and a request takes one out."""

    def __init__(self, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._burst = float(burst)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> float:
        """Take an allowance. Return 0, or in how many seconds there will be one."""
        left = self._left(caller)
        if left < 1:
            return (1 - left) / self._per_second
        self._buckets[caller] = (left - 1, self._clock())
        self._buckets.move_to_end(caller)
        if len(self._buckets) > _MOST_CALLERS:
            self._buckets.popitem(last=False)
        return 0.0

    def empty(self, caller: str) -> float:
        """Say, without taking one, in how many seconds there will be an allowance; 0 for now."""
        return max(1 - self._left(caller), 0.0) / self._per_second

    def _left(self, caller: str) -> float:
        left, at = self._buckets.get(caller, (self._burst, self._clock()))
        return min(self._burst, left + (self._clock() - at) * self._per_second)
