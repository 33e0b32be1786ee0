"""What happens to every request of an agent: who sends it, what lists show, and how a call is cancelled."""

from __future__ import annotations

from typing import Any, Final

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import ListPromptsResult, ListResourcesResult, ListToolsResult, Prompt, Tool

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
    """Shows in lists what the caller may use: no tools that write to one who reads, and their own resources.

    On a connection for several users, tools and prompts need the argument `user`.
    """

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Handle a request."""
        result = await call_next(ctx)
        who = CALLER.get()
        if ctx.method == "resources/list" and result is not None:
            resources = ListResourcesResult.model_validate(result)
            return resources.model_copy(update={"resources": await self._resources.of_caller(who)})
        if ctx.method == "prompts/list" and result is not None and who.user is None:
            prompts = ListPromptsResult.model_validate(result)
            return prompts.model_copy(update={"prompts": list(map(_prompt_for_several, prompts.prompts))})
        if ctx.method != "tools/list" or result is None:
            return result
        listed = ListToolsResult.model_validate(result)
        tools = listed.tools
        if not who.may("app"):
            tools = [tool for tool in tools if tool.annotations is not None and tool.annotations.read_only_hint]
        if who.user is None:
            tools = list(map(_tool_for_several, tools))
        return listed.model_copy(update={"tools": tools})


def _prompt_for_several(prompt: Prompt) -> Prompt:
    arguments = [
        each.model_copy(update={"required": True}) if each.name == "user" else each for each in prompt.arguments or ()
    ]
    return prompt.model_copy(update={"arguments": arguments})


def _tool_for_several(tool: Tool) -> Tool:
    if "user" not in tool.input_schema.get("properties", {}):
        return tool
    required = [*tool.input_schema.get("required", ()), "user"]
    return tool.model_copy(update={"input_schema": {**tool.input_schema, "required": required}})


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
