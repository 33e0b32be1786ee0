"""Agents: the official MCP client, over standard input and output and over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError

import aforesaid
from server.agents import call, every_page, over_http, over_stdio, refusal
from server.serving import Live, live

pytestmark = pytest.mark.anyio

READING = {
    "get_context", "search_memories", "recall_person", "portrait", "get_timeline", "get_people", "get_memories",
    "list_reminders", "get_messages", "count_messages", "list_threads",
}  # fmt: skip
WRITING = {
    "remember", "forget", "add_memory", "update_memory", "end_memory", "delete_memory", "set_reminder",
    "move_reminder", "cancel_reminder", "add_messages", "edit_message", "take_back_message", "erase_messages",
    "clear_thread",
}  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[Live]:
    with live() as running:
        yield running


async def use_everything(client: Client) -> None:
    """Do all that an agent can do, as one user."""
    listed = (await client.list_tools()).tools
    assert {tool.name for tool in listed} == READING | WRITING
    for tool in listed:
        assert tool.description
        assert len(tool.description) > 60, "an agent decides by it"
        assert tool.output_schema is not None
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is (tool.name in READING)
    assert (await call(client, "remember", fact="prefers tea over coffee"))["outcome"] == "stored"
    made = await call(client, "add_memory", content="Dentist on Monday at 9am", category="schedule", importance=8)
    assert (made["kind"], made["importance"], made["when"] is None) == ("schedule", 8, False)
    changed = await call(client, "update_memory", id=made["id"], importance=10)
    assert (changed["importance"], changed["content"]) == (10, "Dentist on Monday at 9am")
    memories = (await call(client, "get_memories", category="schedule"))["memories"]
    assert [each["id"] for each in memories] == [made["id"]]
    assert [each["memory"] for each in (await call(client, "get_timeline"))["events"]] == [made["id"]]
    assert (await call(client, "get_people", name="Tom"))["people"] == []
    assert "tea" in (await call(client, "portrait"))["portrait"]
    hits = (await call(client, "search_memories", query="dentist"))["hits"]
    assert "Dentist on Monday at 9am" in {hit["text"] for hit in hits}
    context = await call(client, "get_context", text="What do I have on Monday?", budget=1_000)
    assert "Dentist" in context["text"]
    assert context["tokens"] <= 1_000
    wrong = await refusal(client, "end_memory", id=made["id"], at="2126-01-01T00:00:00Z")
    assert "at lies in the future" in wrong
    assert (await call(client, "end_memory", id=made["id"]))["state"] == "expired"
    assert (await call(client, "delete_memory", id=made["id"]))["state"] == "deactivated"
    assert (await call(client, "forget", fact="tea"))["found"] is True
    assert (await call(client, "forget", fact="tea"))["found"] is False
    templates = {each.uri_template for each in (await client.list_resource_templates()).resource_templates}
    kinds = ("portrait", "summaries", "timeline", "threads/{thread}", "messages/{id}")
    assert templates == {f"aforesaid://users/{{user}}/{kind}" for kind in kinds}
    prompts = [each.name for each in (await client.list_prompts()).prompts]
    assert prompts == ["with_memory", "about_person", "coming_up"]


@pytest.mark.client("MCP (standard input and output)", "mcp (Python)", "tools", "resources", "prompts")
async def test_an_agent_uses_everything_over_standard_input_and_output(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with over_stdio(path, "--user", "ann") as client:
        assert client.instructions is not None
        await use_everything(client)
        await call(client, "remember", fact="lives in Berlin")
        read = await client.read_resource("aforesaid://users/ann/portrait")
        assert "Berlin" in read.contents[0].text  # type: ignore[union-attr]
        prompt = await client.get_prompt("with_memory", {"message": "Where do I live?"})
        assert "Berlin" in prompt.messages[0].content.text  # type: ignore[union-attr]
        with pytest.raises(MCPError):
            await client.read_resource("aforesaid://users/bob/portrait")
    with aforesaid.open(path, embedder="none") as memory:
        actors = {entry.actor for entry in memory.user("ann").audit()}
    assert "mcp an agent" in actors


def empty_store(folder: Path) -> Path:
    """Make a store, which an agent that may only read does not."""
    path = folder / "memory.db"
    with aforesaid.open(path, embedder="none"):
        return path


async def test_an_agent_that_may_only_read_changes_nothing(tmp_path: Path) -> None:
    path = empty_store(tmp_path)
    async with over_stdio(path, "--everybody", "--read-only") as client:
        assert (await call(client, "portrait", user="ann"))["portrait"] is None
        assert "role app" in await refusal(client, "remember", fact="x", user="ann")
        assert "argument `user`" in await refusal(client, "portrait")
        for tool in WRITING:
            assert "may only read" in await refusal(client, tool)


@pytest.mark.client("MCP (standard input and output)", "mcp (Python)", "read-only keys")
@pytest.mark.client("MCP (streamable HTTP)", "mcp (Python)", "read-only keys")
@pytest.mark.defect("P11")
async def test_an_agent_that_may_only_read_is_not_offered_what_it_cannot_do(tmp_path: Path, server: Live) -> None:
    async with over_stdio(empty_store(tmp_path), "--user", "ann", "--read-only") as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == READING
    async with over_http(server, server.key("reader", space="http", user="ann")) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == READING


async def test_a_memory_of_blanks_is_refused(server: Live) -> None:
    async with over_http(server, server.key(space="blanks", user="ann")) as client:
        assert "the text is empty" in await refusal(client, "add_memory", content=" \n ")
        assert (await call(client, "get_memories"))["memories"] == []


@pytest.mark.defect("P11")
async def test_memories_are_listed_in_small_pages(server: Live) -> None:
    async with over_http(server, server.key(space="pages", user="ann")) as client:
        for number in range(50):
            await call(client, "add_memory", content=f"Ann owns {number} books about the history of Portugal")
        assert len(str(await call(client, "get_memories"))) < 8_000
        found = [each["id"] for each in await every_page(client, "get_memories", "memories")]
    assert found == sorted(set(found), reverse=True)
    assert len(found) == 50


@pytest.mark.client("MCP (streamable HTTP)", "mcp (Python)", "tools", "resources", "prompts")
async def test_an_agent_uses_everything_over_http(server: Live) -> None:
    async with over_http(server, server.key(space="http", user="ann")) as client:
        await use_everything(client)
        read = await client.read_resource("aforesaid://users/ann/summaries")
        assert read.contents[0].text == "No summaries yet."  # type: ignore[union-attr]


async def test_a_key_keeps_an_agent_inside_its_walls(server: Live) -> None:
    async with over_http(server, server.key(space="theirs")) as theirs:
        made = await call(theirs, "add_memory", content="the word is zanzibar", user="bob")
    for key in (server.key(space="mine"), server.key(space="theirs", user="ann")):
        async with over_http(server, key) as client:
            for tool in ("update_memory", "end_memory", "delete_memory"):
                more = {"content": "x"} if tool == "update_memory" else {}
                told = await refusal(client, tool, id=made["id"], **more)
                unknown = await refusal(client, tool, id=999_999, **more)
                assert told.replace(str(made["id"]), "N") == unknown.replace("999999", "N")
    async with over_http(server, server.key(space="theirs", user="ann")) as client:
        for tool in ("portrait", "get_memories"):
            assert "no user 'bob'" in await refusal(client, tool, user="bob")
        assert "zanzibar" not in str(await call(client, "search_memories", query="zanzibar"))
    async with over_http(server, server.key(space="theirs")) as theirs:
        memories = (await call(theirs, "get_memories", user="bob"))["memories"]
        assert [each["content"] for each in memories] == ["the word is zanzibar"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("add_memory", {"content": "a\0b"}),
        ("add_memory", {"content": ""}),
        ("add_memory", {"content": "x", "category": "nonsense"}),
        ("add_memory", {"content": "x", "importance": 11}),
        ("update_memory", {"id": 1}),
        ("update_memory", {"id": 0}),
        ("remember", {"fact": "   "}),
        ("get_context", {"text": "x", "budget": 1}),
        ("portrait", {"person": "ann"}),
        ("get_memories", {"cursor": "never"}),
        ("set_reminder", {"text": "call mum", "when": "yesterday at 9"}),
        ("set_reminder", {"text": "call mum", "when": "soonish"}),
        ("cancel_reminder", {"id": 999}),
        ("nonsense", {}),
    ],
    ids=str,
)
@pytest.mark.client("MCP (streamable HTTP)", "mcp (Python)", "errors in words")
@pytest.mark.defect("P11")
async def test_what_an_agent_does_wrong_is_told(server: Live, tool: str, arguments: dict[str, Any]) -> None:
    async with over_http(server, server.key(space="wrong", user="ann")) as client:
        words = await refusal(client, tool, **arguments)
    assert words
    assert "pydantic" not in words
    assert "input_value" not in words
    assert "\n" not in words


def test_without_a_key_or_from_a_foreign_page_nobody_gets_in(server: Live) -> None:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accept = {"Accept": "application/json, text/event-stream"}
    address = f"{server.address}/mcp"
    key = {"Authorization": f"Bearer {server.key()}"}
    assert httpx2.post(address, json=hello, headers=accept).status_code == 401
    assert httpx2.post(address, json=hello, headers=accept | {"Authorization": "Bearer ak_no"}).status_code == 401
    foreign = accept | key | {"Origin": "https://evil.example"}
    assert httpx2.post(address, json=hello, headers=foreign).status_code == 403
    assert httpx2.post(address, json=hello, headers=accept | key | {"Host": "evil.example"}).status_code == 421
    assert httpx2.post(address, json=hello, headers=accept | key).status_code == 200


async def test_an_agent_stores_reads_counts_and_finds_messages(server: Live) -> None:
    async with over_http(server, server.key(space="messages", user="ann")) as client:
        batch = [
            {"role": "user", "text": "The boat is blue.", "id": "m1", "metadata": {"topic": "boats"}},
            {"role": "assistant", "text": "Which boat?", "at": "2026-03-01T09:30:00Z"},
            {"role": "user", "text": "The boat is blue.", "id": "m1"},
        ]
        stored = await call(client, "add_messages", messages=batch, thread="harbour")
        assert (stored["stored"], stored["duplicates"]) == (2, 1)
        assert await call(client, "count_messages") == {"count": 2}
        assert await call(client, "count_messages", until="2026-03-02T00:00:00Z") == {"count": 1}
        messages = (await call(client, "get_messages", metadata={"topic": "boats"}))["messages"]
        assert [(each["id"], each["text"], each["metadata"]) for each in messages] == [
            ("m1", "The boat is blue.", {"topic": "boats"})
        ]
        (thread,) = (await call(client, "list_threads"))["threads"]
        assert (thread["id"], thread["messages"], thread["last_text"]) == ("ann/harbour", 2, "The boat is blue.")
        for name in ("harbour", thread["id"]):
            read = (await call(client, "get_messages", thread=name))["messages"]
            assert [each["role"] for each in read] == ["assistant", "user"]
        hits = (await call(client, "search_memories", query="boat", role="assistant", min_score=0))["hits"]
        assert [hit["text"] for hit in hits] == ["Which boat?"]
        bad = [{"role": "user", "text": "one"}, {"role": "user", "text": ""}]
        assert "message 1 of the batch" in await refusal(client, "add_messages", messages=bad)
        assert await call(client, "count_messages") == {"count": 2}


async def test_an_agent_edits_takes_back_and_erases_messages(server: Live) -> None:
    async with over_http(server, server.key(space="changing", user="ann")) as client:
        batch = [{"role": "user", "text": text, "id": text} for text in ("one", "two", "three", "four")]
        await call(client, "add_messages", messages=batch)
        assert (await call(client, "edit_message", id="one", text="first"))["text"] == "first"
        await call(client, "take_back_message", id="two")
        assert (await call(client, "erase_messages", ids=["three"]))["messages"] == 1
        assert [each["text"] for each in (await call(client, "get_messages"))["messages"]] == ["first", "four"]
        assert "no message" in await refusal(client, "take_back_message", id="never")
        assert await call(client, "clear_thread") == {"count": 2}
        assert (await call(client, "get_messages"))["messages"] == []
