"""Only pages of our own, and those of `server.origins`, may call, and only by our own name.

A page somewhere in the web can make a browser send requests to this machine, under a name of its own that leads here
(DNS rebinding) or across sites. The Host header shows the first, Origin the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from aforesaid.server.guard.cors import may_call
from aforesaid.server.problems import protocol_problem

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
        """Pass a request on, or refuse it."""
        if scope["type"] != "http" or scope["path"] in UNGUARDED:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        if _name(host) not in self._names:
            answer = protocol_problem(
                scope,
                421,
                "wrong-host",
                "This server is not called that. If it should be, add the name to server.hosts.",
            )
        elif _own_page(headers, host):
            await self._app(scope, receive, send)
            return
        elif may_call(scope["path"], headers.get("origin", ""), self._origins):
            scope[OTHER_ORIGIN] = True
            await self._app(scope, receive, send)
            return
        else:
            words = "Requests from pages of other sites are refused."
            answer = protocol_problem(scope, 403, "wrong-origin", words)
        await answer(scope, receive, send)


def _name(host: str) -> str:
    """Return a host without its port."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host


def _own_page(headers: Headers, host: str) -> bool:
    """Return whether a request comes from a page of this server, or from no page at all."""
    origin = headers.get("origin")
    if origin is not None:
        # Another port of the same machine is another site.
        return urlsplit(origin).netloc.lower() == host
    # A link on another page may lead here; anything else that a browser says comes from elsewhere may not.
    elsewhere = headers.get("sec-fetch-site") in {"cross-site", "same-site"}
    return not elsewhere or headers.get("sec-fetch-mode") == "navigate"
