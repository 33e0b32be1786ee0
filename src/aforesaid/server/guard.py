"""Guards in front of every request: hosts, origins, sizes, rates, headers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aforesaid.server.options import ANY_ORIGIN
from aforesaid.server.problems import Refusal, protocol_problem
from aforesaid.server.prometheus import HttpMetrics
from aforesaid.server.route_templates import RouteTemplates, path_of

__all__ = ["Access", "Bodies", "Headers", "Hosts", "Rates"]


_log: Final = logging.getLogger("aforesaid.server.access")


class Access:
    """Logs and counts requests."""

    def __init__(self, app: ASGIApp, metrics: HttpMetrics, templates: RouteTemplates) -> None:
        self._app = app
        self._metrics = metrics
        self._templates = templates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
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


_LEAST_BYTES_PER_SECOND: Final = 1024
"""How fast a body must arrive on average once `server.body_seconds` are over."""


class Bodies:
    """Refuses bodies that are too large (413) or arrive too slowly (408)."""

    def __init__(self, app: ASGIApp, most_bytes: int, seconds: float = 30.0) -> None:
        self._app = app
        self._most_bytes = most_bytes
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

    @property
    def _too_large(self) -> str:
        return f"The request has more than {self._most_bytes:,} bytes (server.body_bytes)."


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


def may_call(path: str, origin: str, origins: Sequence[str]) -> bool:
    return path.startswith(_BELOW) and (ANY_ORIGIN in origins or origin.lower() in origins)


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
        elif may_call(scope["path"], headers.get("origin", ""), self._origins):
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
