"""The MCP server: built, served over HTTP or standard input, and guarded."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from difflib import get_close_matches
from typing import Any, Final

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolResult, GetPromptResult, InputRequiredResult, TextContent
from pydantic import ValidationError
from starlette.requests import Request

from aforesaid.background import beside
from aforesaid.errors import AforesaidError
from aforesaid.models.client import redact
from aforesaid.server.mcp.message_tools import CALLER

_HEARTBEAT_SECONDS: Final = 1.0
"""Seconds between two reports of progress. Clients that wait reset their timeout with each."""
_LEAST_ALIKE: Final = 0.5
_EMPTY: Final[tuple[object, ...]] = (None, [], {})


class AgentServer(MCPServer[None]):
    """An MCP server that tells agents in words what went wrong and what to do."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[None, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool for a caller who may use it. Raises ToolError, whose text the agent reads."""
        self._check(name, arguments)
        try:
            async with _progress(context):
                result = await super().call_tool(name, arguments, context)
        except UnexpectedToolError as error:
            if isinstance(error.__cause__, AforesaidError):
                raise ToolError(words_of(error.__cause__)) from error.__cause__
            raise UnexpectedToolError(
                f"{name} failed because of a defect in the server, whose log has the details. Nothing is wrong with "
                "the call; do not repeat it now."
            ) from error.__cause__
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                raise ToolError(_wrong_arguments(name, error.__cause__)) from error.__cause__
            raise
        if isinstance(result, CallToolResult) and result.structured_content is not None:
            return result.model_copy(update={"content": [_compact(result.structured_content)]})
        return result

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[None, Any] | None = None
    ) -> GetPromptResult | InputRequiredResult:
        """Return a prompt. Raises MCPError for one that does not exist, and for missing or unknown arguments."""
        prompt = self._prompt_manager.get_prompt(name)
        if prompt is None:
            known = ", ".join(each.name for each in self._prompt_manager.list_prompts())
            raise MCPError(INVALID_PARAMS, f"There is no prompt {name!r}; the prompts are {known}.")
        taken, given = prompt.arguments or [], arguments or {}
        for_several = CALLER.get().user is None
        needed = [each.name for each in taken if each.required or (each.name == "user" and for_several)]
        if missing := [f"`{each}`" for each in needed if not given.get(each)]:
            words = f"{name} needs the argument {' and the argument '.join(missing)}."
            if "`user`" in missing:
                words += " This connection is for several users: `user` says whose memory is meant."
            raise MCPError(INVALID_PARAMS, words)
        if unknown := sorted(given.keys() - {each.name for each in taken}):
            arguments_of = ", ".join(each.name for each in taken)
            raise MCPError(
                INVALID_PARAMS,
                f"{name} has no argument {', '.join(map(repr, unknown))}; its arguments are {arguments_of}.",
            )
        return await super().get_prompt(name, arguments, context)

    def _check(self, name: str, arguments: dict[str, Any]) -> None:
        """Raise ToolError for a tool that does not exist, that the caller may not use, or for unknown arguments."""
        tool = self._tool_manager.get_tool(name)
        who = CALLER.get()
        if tool is None:
            known = [each.name for each in self._tool_manager.list_tools()]
            alike = get_close_matches(name, known, n=3, cutoff=_LEAST_ALIKE)
            raise ToolError(f"There is no tool {name!r}. {_alternatives(alike) or 'tools/list has all of them.'}")
        reads = tool.annotations is not None and tool.annotations.read_only_hint
        if not reads and not who.may("app"):
            raise ToolError(
                f"{name} changes the memory, and this connection may only read (its key has the role {who.role}). Tell "
                "the user that writing needs a key with the role app."
            )
        known = list(tool.parameters.get("properties", {}))
        if unknown := [each for each in arguments if each not in known]:
            raise ToolError(
                f"{name} has no argument {', '.join(map(repr, unknown))}; its arguments are {', '.join(known)}. "
                "Correct the call and repeat it."
            )


def words_of(error: AforesaidError) -> str:
    """Return what an error says, without secrets, and in characters that can be sent."""
    return redact(str(error)).encode(errors="backslashreplace").decode()


def _alternatives(names: list[str]) -> str:
    return f"Did you mean {' or '.join(names)}?" if names else ""


def _wrong_arguments(tool: str, wrong: ValidationError) -> str:
    """Say which arguments of a tool are wrong, and why, without repeating their values."""
    told = [f"{'.'.join(map(str, each['loc'])) or 'the arguments'}: {each['msg']}" for each in wrong.errors()]
    return f"{tool} was called with wrong arguments. {'; '.join(told)}. Correct them and call it again."


def _compact(content: dict[str, Any]) -> TextContent:
    """Return structured content as JSON for models that read text: without spaces, and items without empty fields."""
    short = {name: _filled(value) for name, value in content.items() if name != "cut" or value}
    return TextContent(type="text", text=json.dumps(short, ensure_ascii=False, separators=(",", ":")))


def _filled(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, dict):
        return {name: _filled(each) for name, each in value.items() if each not in _EMPTY}
    return [_filled(each) for each in value] if isinstance(value, list) else value


@asynccontextmanager
async def _progress(context: Context[None, Any] | None) -> AsyncIterator[None]:
    """Report once a second how long a call has been running, if its caller asked for progress."""
    meta = None if context is None else context.request_context.meta
    if context is None or meta is None or meta.get("progress_token", meta.get("progressToken")) is None:
        yield
        return
    began = time.monotonic()

    async def report() -> None:
        while True:
            seconds = time.monotonic() - began
            await context.report_progress(seconds, message=f"working for {seconds:.0f} s")
            await anyio.sleep(_HEARTBEAT_SECONDS)

    async with beside(report(), "progress"):
        yield


SESSION_HEADER: Final = "mcp-session-id"
_NONCE_BYTES: Final = 16


def new_session(request: Request) -> str:
    """Return a new session id for the sender of a request."""
    nonce = secrets.token_hex(_NONCE_BYTES)
    return f"{nonce}.{_signature(request, nonce)}"


def is_own_session(request: Request) -> bool:
    """Return whether a request has no session id, or one that was made for the same key."""
    session = request.headers.get(SESSION_HEADER)
    if session is None:
        return True
    nonce, _, signature = session.partition(".")
    return hmac.compare_digest(signature.encode(), _signature(request, nonce).encode())


def session_of(request: object) -> str | None:
    """Return the session id of a request, which was checked before; None over standard input and output."""
    return request.headers.get(SESSION_HEADER) if isinstance(request, Request) else None


def _signature(request: Request, nonce: str) -> str:
    # Whatever the sender proved their identity with; a server without authentication has one session space for all.
    headers = request.headers
    key = headers.get("authorization") or headers.get("x-api-key") or headers.get("cookie") or ""
    return hmac.new(key.strip().encode(), nonce.encode(), hashlib.sha256).hexdigest()
