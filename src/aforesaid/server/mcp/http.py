"""MCP over streamable HTTP, at `/mcp`. There are no sessions: every request says by its key who asks."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from functools import cached_property

from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from aforesaid.memory import Memory
from aforesaid.server.auth import Credential
from aforesaid.server.authentication import CREDENTIAL
from aforesaid.server.dependencies import identify
from aforesaid.server.mcp.build import build


class McpEndpoint:
    """Passes requests with a valid credential on to an MCP server, which is built when it is first needed."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    @cached_property
    def _server(self) -> MCPServer[None]:
        server = build(self._memory, _credential_of)
        # Foreign names and pages are refused for all routes alike, before they get here.
        security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        server.streamable_http_app(stateless_http=True, json_response=True, transport_security=security)
        return server

    def run(self) -> AbstractAsyncContextManager[None]:
        """Serve requests until the context ends."""
        return self._server.session_manager.run()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the request, and pass it on."""
        await identify(Request(scope, receive))
        await self._server.session_manager.handle_request(scope, receive, send)


def _credential_of(request: object) -> Credential:
    if not isinstance(request, Request):
        raise PermissionError("the request came in by another way than HTTP")
    who: Credential = request.scope[CREDENTIAL]
    return who
