"""MCP over HTTP: how clients learn to authenticate, sessions, progress and cancellation."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Literal

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.server.mcpserver import MCPServer

from aforesaid.memory import Memory, UserMemory
from aforesaid.server.mcp.build import CredentialOf, build
from aforesaid.settings import Serving
from server.agents import over_http, over_stdio
from server.serving import Live, live

ACCEPT = {"Accept": "application/json, text/event-stream"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}


@pytest.fixture(scope="module")
def server() -> Iterator[Live]:
    issuer = "https://login.example.com/realms/home"
    with live(serving=Serving(requests_per_second=1e6, burst=1_000_000, authorization_servers=(issuer,))) as running:
        yield running


class HeldPortrait:
    """A portrait that takes until it is let go."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.begun = threading.Event()
        self.let_go = threading.Event()
        self.cancelled = threading.Event()
        patch.setattr(UserMemory, "portrait", lambda _, **__: self._portrait())

    async def _portrait(self) -> str:
        self.begun.set()
        try:
            await asyncio.to_thread(self.let_go.wait, 60)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return "finished"


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeldPortrait]:
    portrait = HeldPortrait(monkeypatch)
    yield portrait
    portrait.let_go.set()


async def happens(event: threading.Event) -> None:
    assert await anyio.to_thread.run_sync(event.wait, 60)


async def progress_then_result(client: Client, held: HeldPortrait) -> None:
    """Call a tool that takes until its caller has heard of its progress."""

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        assert progress >= 0
        assert total is None
        assert message is not None
        held.let_go.set()

    result = await client.call_tool("portrait", {}, progress_callback=heard)
    assert result.structured_content == {"portrait": "finished", "next": None}


@pytest.mark.anyio
@pytest.mark.client("MCP (streamable HTTP)", "mcp (Python)", "progress")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_long_call_reports_progress(server: Live, held: HeldPortrait, mode: Literal["auto", "legacy"]) -> None:
    async with over_http(server, server.key(user="ann"), mode) as client:
        await progress_then_result(client, held)


@pytest.mark.anyio
@pytest.mark.client("MCP (streamable HTTP)", "mcp (Python)", "cancellation")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_call_that_its_client_gives_up_is_cancelled(
    server: Live, held: HeldPortrait, mode: Literal["auto", "legacy"]
) -> None:
    async with over_http(server, server.key(user="ann"), mode) as client, anyio.create_task_group() as group:
        group.start_soon(client.call_tool, "portrait", {})
        await happens(held.begun)
        group.cancel_scope.cancel()
    await happens(held.cancelled)


@pytest.mark.anyio
@pytest.mark.client("MCP (standard input and output)", "mcp (Python)", "progress")
async def test_progress_is_reported_over_standard_input_and_output(tmp_path: Path) -> None:
    heard: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        assert (progress >= 0, total) == (True, None)
        heard.append(message)

    async with over_stdio(tmp_path / "memory.db", "--user", "ann") as client:
        await client.call_tool("remember", {"fact": "prefers tea"}, progress_callback=hear)
    assert heard


def post(server: Live, message: object, key: str, **headers: str) -> httpx2.Response:
    sent = {**ACCEPT, "Authorization": f"Bearer {key}", **headers}
    return httpx2.post(f"{server.address}/mcp", json=message, headers=sent, timeout=120)


def test_clients_that_come_first_are_all_answered_and_one_that_fails_harms_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built: list[int] = []

    def build_at_the_second_attempt(memory: Memory, credential_of: CredentialOf, tokens: int) -> MCPServer[None]:
        built.append(tokens)
        if len(built) == 1:
            raise RuntimeError("not yet")
        return build(memory, credential_of, tokens)

    monkeypatch.setattr(import_module("aforesaid.server.mcp.build"), "build", build_at_the_second_attempt)
    with live() as server, ThreadPoolExecutor(8) as clients:
        key = server.key(user="ann")
        assert built == [], "a server that no agent asks needs none"
        answers = list(clients.map(lambda _: post(server, INITIALIZE, key).status_code, range(8)))
        assert sorted(answers) == [200] * 7 + [500]
        assert len(built) == 2


@pytest.mark.client("MCP (streamable HTTP)", "mcp (Python)", "session ids")
def test_a_session_is_only_known_with_the_key_that_began_it(server: Live) -> None:
    key, other = server.key(user="ann"), server.key(user="ann")
    session = post(server, INITIALIZE, key).headers["mcp-session-id"]
    assert post(server, INITIALIZE, key).headers["mcp-session-id"] != session
    own = {"Mcp-Session-Id": session}
    assert post(server, LIST, key, **own).status_code == 200
    assert post(server, LIST, other, **own).status_code == 404
    assert post(server, LIST, key, **{"Mcp-Session-Id": "made up"}).status_code == 404
    assert "initialize a new one" in post(server, LIST, other, **own).json()["error"]["message"]


def test_a_call_is_not_cancelled_from_another_session(server: Live, held: HeldPortrait) -> None:
    key = server.key(user="ann")
    sessions = [{"Mcp-Session-Id": post(server, INITIALIZE, key).headers["mcp-session-id"]} for _ in range(2)]
    portrait = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "portrait", "arguments": {}}}
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
    answers: list[httpx2.Response] = []
    caller = threading.Thread(target=lambda: answers.append(post(server, portrait, key, **sessions[0])))
    caller.start()
    assert held.begun.wait(60)
    assert post(server, cancelled, key, **sessions[1]).status_code == 202
    held.let_go.set()
    caller.join(60)
    assert "finished" in answers[0].text
    assert not held.cancelled.is_set()


def test_streams_that_would_stay_empty_are_not_opened(server: Live) -> None:
    key = {"Authorization": f"Bearer {server.key()}"}
    answer = httpx2.get(f"{server.address}/mcp", headers=key | {"Accept": "text/event-stream"})
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.client("MCP (streamable HTTP)", "mcp (Python)", "OAuth metadata")
def test_a_client_without_a_key_learns_where_the_metadata_are(server: Live) -> None:
    refused = httpx2.post(f"{server.address}/mcp", json=LIST, headers=ACCEPT)
    assert refused.status_code == 401
    told = refused.headers["www-authenticate"]
    assert told.startswith("Bearer ")
    address = told.partition('resource_metadata="')[2].partition('"')[0]
    metadata = httpx2.get(address).json()
    assert metadata["resource"] == f"{server.address}/mcp"
    assert metadata["authorization_servers"] == ["https://login.example.com/realms/home"]
    assert httpx2.get(f"{server.address}/.well-known/oauth-protected-resource").json() == metadata
    wrong = httpx2.post(f"{server.address}/mcp", json=LIST, headers=ACCEPT | {"Authorization": "Bearer ak_no"})
    assert 'error="invalid_token"' in wrong.headers["www-authenticate"]
    elsewhere = httpx2.get(f"{server.address}/api/users")
    assert elsewhere.headers["www-authenticate"] == "Bearer"


def test_metadata_name_no_authorization_server_where_there_is_none() -> None:
    with live() as plain:
        metadata = httpx2.get(f"{plain.address}/.well-known/oauth-protected-resource/mcp").json()
    assert "authorization_servers" not in metadata
    assert metadata["bearer_methods_supported"] == ["header"]
