"""Chooses the language of each request for a page."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from aforesaid.server.languages.current import using
from aforesaid.server.languages.offered import OfferedLanguages

COOKIE: Final = "aforesaid_language"
_NO_PAGES: Final = ("/api", "/v1", "/mcp", "/static")
"""Paths below these answer programs, in English."""


class Languages:
    """Sets the language that pages are written in."""

    def __init__(self, app: ASGIApp, offered: OfferedLanguages) -> None:
        self._app = app
        self._offered = offered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer in the language of the cookie, of the settings, or of the browser."""
        if scope["type"] != "http" or scope["path"].startswith(_NO_PAGES):
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        with using(self._offered.choose(request.cookies.get(COOKIE), request.headers.get("accept-language"))):
            await self._app(scope, receive, send)
