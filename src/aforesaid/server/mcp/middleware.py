"""What happens to every request of an agent: who sends it, what lists show, and how a call is cancelled."""

from __future__ import annotations

from typing import Any, Final

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import ListResourcesResult, ListToolsResult

from aforesaid.server.mcp.access import CALLER, CredentialOf
from aforesaid.server.mcp.resources import Resources
from aforesaid.server.mcp.session_ids import session_of

_CANCELLED: Final = -32_800
"""The error code of a cancelled request, as in the Language Server Protocol. The client does not wait for it."""


class Callers:
    """Makes the credential of a request known to its handlers."""

    def __init__(self, credential_of: CredentialOf) -> None:
        self._credential_of = credential_of

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Handle a request."""
        before = CALLER.set(self._credential_of(ctx.request))
        try:
            return await call_next(ctx)
        finally:
            CALLER.reset(before)


class Lists:
    """Shows in lists what the caller may use: no tools that write to one who reads, and their own resources."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Handle a request."""
        result = await call_next(ctx)
        who = CALLER.get()
        if ctx.method == "resources/list" and result is not None:
            listed = ListResourcesResult.model_validate(result)
            return listed.model_copy(update={"resources": await self._resources.of_caller(who)})
        if ctx.method != "tools/list" or result is None or who.may("app"):
            return result
        tools = ListToolsResult.model_validate(result)
        reading = [tool for tool in tools.tools if tool.annotations is not None and tool.annotations.read_only_hint]
        return tools.model_copy(update={"tools": reading})


class Cancellations:
    """Cancels calls over HTTP that a client of an older protocol says it no longer waits for.

    Each request has a connection of its own, so the notice arrives apart from the call. It counts only in the same
    session. With the protocol of 2026-07-28 clients hang up instead, and over standard input and output the library
    does this itself.
    """

    def __init__(self) -> None:
        self._running: dict[tuple[str, str], anyio.CancelScope] = {}

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Handle a request so that it can be cancelled, or cancel one."""
        session = session_of(ctx.request)
        if session is None:
            return await call_next(ctx)
        if ctx.method == "notifications/cancelled":
            scope = self._running.get((session, repr((ctx.params or {}).get("requestId"))))
            if scope is not None:
                scope.cancel()
        if ctx.request_id is None:
            return await call_next(ctx)
        place = (session, repr(ctx.request_id))
        with anyio.CancelScope() as scope:
            self._running[place] = scope
            try:
                return await call_next(ctx)
            finally:
                self._running.pop(place, None)
        raise MCPError(_CANCELLED, "The request was cancelled.")
