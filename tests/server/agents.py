"""Agents in tests: the official MCP client, over standard input and output and over HTTP."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import httpx2
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent

from server.serving import Live


def mcp_command(path: Path, *options: str) -> list[str]:
    """Return the command that serves a store to one agent."""
    return [sys.executable, "-m", "aforesaid", "mcp", "--store", str(path), *options]


def environment() -> dict[str, str]:
    """Return the environment variables that a server of a test needs."""
    wanted = ("AFORESAID", "XDG", "PATH", "PYTHONPATH", "HOME")
    return {name: value for name, value in os.environ.items() if name.startswith(wanted)}


@asynccontextmanager
async def over_stdio(path: Path, *options: str) -> AsyncIterator[Client]:
    """Start a server for an agent, as agents do."""
    command, *arguments = mcp_command(path, *options)
    started = StdioServerParameters(command=command, args=arguments, env=environment())
    async with Client(stdio_client(started)) as client:
        yield client


@asynccontextmanager
async def over_http(server: Live, key: str, mode: Literal["auto", "legacy"] = "auto") -> AsyncIterator[Client]:
    """Connect an agent to a server. With `legacy`, it speaks the protocol of 2025 with sessions."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=120) as http,
        Client(streamable_http_client(f"{server.address}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401
    """Call a tool and return its structured content."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    content: dict[str, Any] | None = result.structured_content
    assert content is not None
    return content


async def refusal(client: Client, tool: str, **arguments: Any) -> str:  # noqa: ANN401
    """Call a tool that refuses, and return what it says."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert isinstance(result.content[0], TextContent)
    return result.content[0].text


async def every_page(client: Client, tool: str, items: str, **arguments: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    """Return the items of all pages of a tool's answer, page after page."""
    found: list[dict[str, Any]] = []
    page = await call(client, tool, **arguments)
    while True:
        assert page[items] or not found, "no page but the first is empty"
        found += page[items]
        if page["next"] is None:
            return found
        page = await call(client, tool, cursor=page["next"], **arguments)
