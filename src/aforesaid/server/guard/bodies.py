"""How large the body of a request may be, and how slowly it may arrive."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aforesaid.server.problems import protocol_problem

_LEAST_BYTES_PER_SECOND: Final = 1024
"""How fast a body must arrive on average once `server.body_seconds` are over."""


class Bodies:
    """Refuses bodies that are too large (413) or arrive too slowly (408)."""

    def __init__(self, app: ASGIApp, most_bytes: int, seconds: float = 30.0) -> None:
        self._app = app
        self._most_bytes = most_bytes
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it: before its body is read where its length is declared."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "0")
        if declared.isdecimal() and int(declared) > self._most_bytes:
            answer = protocol_problem(scope, 413, "too-large", self._too_large, headers={"Connection": "close"})
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
