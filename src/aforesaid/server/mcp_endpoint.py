"""The endpoint of the MCP server over HTTP: its sessions, and what is refused before an agent's request reaches it."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Final

from anyio import create_task_group, sleep_forever
from anyio.abc import TaskGroup, TaskStatus
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Message, Receive, Scope, Send

from aforesaid.domain.checks import json_object
from aforesaid.memory import Memory
from aforesaid.server.auth import Credential
from aforesaid.server.authentication import CREDENTIAL, identify

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

SESSION_HEADER: Final = "mcp-session-id"
_NONCE_BYTES: Final = 16
_INVALID_REQUEST: Final = -32_600
"""JSON-RPC's error code for a request that is none."""


class McpEndpoint:
    """Passes requests with a valid credential on to an MCP server.

    It is built, and the library for it loaded, for the first request: that takes longer than all the rest of a
    server's start.
    """

    def __init__(self, memory: Memory, tokens: int, body_bytes: int) -> None:
        self._memory = memory
        self._tokens = tokens
        self._body_bytes = body_bytes
        self._starting = asyncio.Lock()
        self._manager: StreamableHTTPSessionManager | None = None
        self._tasks: TaskGroup

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        async with create_task_group() as self._tasks:
            yield
            self._tasks.cancel_scope.cancel()

    async def _serve(self, *, task_status: TaskStatus[StreamableHTTPSessionManager]) -> None:
        library = await asyncio.to_thread(import_module, "mcp.server.transport_security")
        ours = await asyncio.to_thread(import_module, "aforesaid.server.mcp.build")
        server: MCPServer[None] = ours.build(self._memory, _credential_of, self._tokens)
        # Foreign names and pages are refused for all routes alike, before they get here.
        security = library.TransportSecuritySettings(enable_dns_rebinding_protection=False)
        server.streamable_http_app(
            stateless_http=True, transport_security=security, max_request_body_size=self._body_bytes
        )
        # The library wants it to begin and to end in one task.
        async with server.session_manager.run():
            task_status.started(server.session_manager)
            await sleep_forever()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        await identify(request)
        if request.method != "POST":
            # Nothing is ever sent to a client that did not ask, so a stream for it would stay empty.
            await _refusal(405, "Send requests with POST.", Allow="POST")(scope, receive, send)
            return
        made, _, signature = request.headers.get(SESSION_HEADER, "").partition(".")
        if SESSION_HEADER in request.headers and not hmac.compare_digest(
            signature.encode(), _signature(request, made).encode()
        ):  # It was made for another key.
            await _refusal(404, "There is no such session; initialize a new one.")(scope, receive, send)
            return
        body = await request.body()
        initializes = b'"initialize"' in body and (json_object(body) or {}).get("method") == "initialize"
        first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_again() -> Message:
            return first.pop() if first else await receive()

        nonce = secrets.token_hex(_NONCE_BYTES)
        session = f"{nonce}.{_signature(request, nonce)}" if initializes else None

        async def send_session(message: Message) -> None:
            answered = message["type"] == "http.response.start" and message["status"] == 200  # noqa: PLR2004
            if session is not None and answered:
                MutableHeaders(scope=message)[SESSION_HEADER] = session
            await send(message)

        async with self._starting:
            if self._manager is None:
                self._manager = await self._tasks.start(self._serve)
        await self._manager.handle_request(scope, receive_again, send_session)


def _refusal(status: int, words: str, **headers: str) -> JSONResponse:
    """Return a JSON-RPC error that belongs to no request."""
    error = {"code": _INVALID_REQUEST, "message": words}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, status, headers=headers)


def _credential_of(request: object) -> Credential:
    if not isinstance(request, Request):
        raise PermissionError("the request came in by another way than HTTP")
    who: Credential = request.scope[CREDENTIAL]
    return who


def _signature(request: Request, nonce: str) -> str:
    # Whatever the sender proved their identity with; a server without authentication has one session space for all.
    headers = request.headers
    key = headers.get("authorization") or headers.get("x-api-key") or headers.get("cookie") or ""
    return hmac.new(key.strip().encode(), nonce.encode(), hashlib.sha256).hexdigest()
