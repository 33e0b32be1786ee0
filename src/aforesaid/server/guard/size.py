"""How large a request may be."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aforesaid.server.problems import problem


class Sizes:
    """Refuses what is too large, before it is read where its length is told, else as soon as it is seen."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        told = Headers(scope=scope).get("content-length", "0")
        if told.isdecimal() and int(told) > self._most:
            await problem(413, "too-large", self._words)(scope, receive, send)
            return
        seen = 0

        async def receive_counted() -> Message:
            nonlocal seen
            message = await receive()
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                if seen > self._most:
                    raise HTTPException(413, self._words)
            return message

        await self._app(scope, receive_counted, send)

    @property
    def _words(self) -> str:
        return f"The request has more than {self._most:,} bytes (server.body_bytes)."
