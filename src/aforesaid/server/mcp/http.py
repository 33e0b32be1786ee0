"""MCP over streamable HTTP, at `/mcp`. The server keeps no sessions: every request says by its key who asks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio import create_task_group, sleep_forever
from anyio.abc import TaskGroup, TaskStatus
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import INVALID_REQUEST
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Message, Receive, Scope, Send

from aforesaid.memory import Memory
from aforesaid.server.auth import Credential
from aforesaid.server.authentication import CREDENTIAL
from aforesaid.server.dependencies import identify
from aforesaid.server.mcp.build import build
from aforesaid.server.mcp.session_ids import SESSION_HEADER, is_own_session, new_session


class McpEndpoint:
    """Passes requests with a valid credential on to an MCP server.

    It is built for the first request: that takes longer than all the rest of a server's start.
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
        """Serve requests until the context ends."""
        async with create_task_group() as self._tasks:
            yield
            self._tasks.cancel_scope.cancel()

    async def _started(self) -> StreamableHTTPSessionManager:
        async with self._starting:
            if self._manager is None:
                self._manager = await self._tasks.start(self._serve)
            return self._manager

    async def _serve(self, *, task_status: TaskStatus[StreamableHTTPSessionManager]) -> None:
        server = build(self._memory, _credential_of, self._tokens)
        # Foreign names and pages are refused for all routes alike, before they get here.
        security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        server.streamable_http_app(
            stateless_http=True, transport_security=security, max_request_body_size=self._body_bytes
        )
        # The library wants it to begin and to end in one task.
        async with server.session_manager.run():
            task_status.started(server.session_manager)
            await sleep_forever()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the request, and pass it on."""
        request = Request(scope, receive)
        await identify(request)
        if request.method != "POST":
            # Nothing is ever sent to a client that did not ask, so a stream for it would stay empty.
            await _refusal(405, "Send requests with POST.", Allow="POST")(scope, receive, send)
            return
        if not is_own_session(request):
            await _refusal(404, "There is no such session; initialize a new one.")(scope, receive, send)
            return
        body = await request.body()
        if _is_initialize(body):
            send = _with_session(send, new_session(request))
        manager = await self._started()
        await manager.handle_request(scope, _replayed(body, receive), send)


def _is_initialize(body: bytes) -> bool:
    """Return whether a request begins a session."""
    if b'"initialize"' not in body:
        return False
    try:
        sent = json.loads(body)
    except (ValueError, RecursionError):
        return False  # the library answers it
    return isinstance(sent, dict) and sent.get("method") == "initialize"


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a function that hands out a body that was read already, and then what comes after it."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return first.pop() if first else await receive()

    return again


def _with_session(send: Send, session: str) -> Send:
    """Return a function that sends an answer with a session id, if it is no error."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 200:  # noqa: PLR2004
            MutableHeaders(scope=message)[SESSION_HEADER] = session
        await send(message)

    return sent


def _refusal(status: int, words: str, **headers: str) -> JSONResponse:
    """Return a JSON-RPC error that belongs to no request."""
    error = {"code": INVALID_REQUEST, "message": words}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, status, headers=headers)


def _credential_of(request: object) -> Credential:
    if not isinstance(request, Request):
        raise PermissionError("the request came in by another way than HTTP")
    who: Credential = request.scope[CREDENTIAL]
    return who
