"""What agents ask for over MCP: reminders, people, the timeline, history; and answers that stay small."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp_types import INVALID_PARAMS, ResourceTemplateReference, TextContent

from aforesaid.models.tokens import count_tokens
from aforesaid.settings import Serving
from server.agents import call, every_page, over_http, refusal
from server.serving import Live, live

pytestmark = pytest.mark.anyio

TOKENS = 600


@pytest.fixture(scope="module")
def server() -> Iterator[Live]:
    with live(serving=Serving(requests_per_second=1e6, burst=1_000_000, mcp_tokens=TOKENS)) as running:
        yield running


async def test_a_reminder_is_set_moved_and_cancelled(server: Live) -> None:
    async with over_http(server, server.key(space="reminders", user="ann")) as client:
        made = await call(client, "set_reminder", text="call mum", when="tomorrow at 9")
        tomorrow = datetime.now(UTC) + timedelta(days=1)
        assert made["day"].startswith(f"{tomorrow:%A}")
        assert "at 09:00" in made["day"]
        moved = await call(client, "move_reminder", id=made["id"], when="tomorrow at 17:30")
        assert "at 17:30" in moved["day"]
        (listed,) = (await call(client, "list_reminders"))["reminders"]
        assert (listed["id"], listed["text"], listed["when"]) == (made["id"], "call mum", moved["when"])
        assert (await call(client, "list_reminders", due=True))["reminders"] == []
        await call(client, "cancel_reminder", id=made["id"])
        assert (await call(client, "list_reminders"))["reminders"] == []
        assert "list_reminders" in await refusal(client, "move_reminder", id=made["id"], when="tomorrow at 9")


async def test_a_reminder_of_somebody_else_cannot_be_moved_or_cancelled(server: Live) -> None:
    async with over_http(server, server.key(space="others", user="bob")) as bob:
        made = await call(bob, "set_reminder", text="the word is zanzibar", when="tomorrow at 9")
    for key in (server.key(space="others", user="ann"), server.key(space="elsewhere")):
        async with over_http(server, key) as client:
            for tool, more in (("move_reminder", {"when": "tomorrow at 10"}), ("cancel_reminder", {})):
                theirs = await refusal(client, tool, id=made["id"], **more)
                unknown = await refusal(client, tool, id=999_999, **more)
                assert theirs.replace(str(made["id"]), "N") == unknown.replace("999999", "N")
    async with over_http(server, server.key(space="others", user="bob")) as bob:
        assert len((await call(bob, "list_reminders"))["reminders"]) == 1


async def test_a_memory_that_is_no_reminder_is_not_cancelled_as_one(server: Live) -> None:
    async with over_http(server, server.key(space="no-reminder", user="ann")) as client:
        made = await call(client, "add_memory", content="likes tea", category="preference")
        assert "no reminder" in await refusal(client, "cancel_reminder", id=made["id"])


async def test_a_person_is_recalled_with_all_that_is_known(server: Live) -> None:
    async with over_http(server, server.key(space="people", user="ann")) as client:
        await call(client, "add_memory", content="Tom is Ann's brother", category="relationship", about="Tom")
        await call(client, "add_memory", content="Tom plays the cello", about="Tom")
        said = [{"role": "user", "text": "Tom broke his cello bow yesterday."}]
        await call(client, "add_messages", messages=said)
        tom = await call(client, "recall_person", name="Tom")
        assert (tom["found"], tom["name"]) == (True, "Tom")
        assert {"Tom plays the cello", "Tom is Ann's brother"} <= {each["content"] for each in tom["statements"]}
        assert [each["text"] for each in tom["said"]] == ["Tom broke his cello bow yesterday."]
        assert (await call(client, "recall_person", name="Zacharias"))["found"] is False
        assert "Tom" in {each["name"] for each in (await call(client, "get_people"))["people"]}


async def fill(client: Any, words: int = 60) -> None:  # noqa: ANN401
    """Store more than an answer has room for."""
    filler = "and then we spoke about the harbour and its boats " * (words // 10)
    messages = [
        {"role": "user", "text": f"Story {n}: {filler}", "id": f"s{n}", "at": f"2026-01-{n + 1:02}T09:00:00Z"}
        for n in range(20)
    ]
    await call(client, "add_messages", messages=messages)
    for number in range(20):
        content = f"Ann sailed boat {number} on 2025-01-{number + 1:02} {filler}"
        await call(client, "add_memory", content=content, category="event")
        await call(client, "set_reminder", text=f"paint boat {number} {filler}", when=f"2099-01-{number + 1:02} at 9")


@pytest.mark.client("MCP (streamable HTTP)", "mcp (Python)", "paging")
async def test_every_list_is_answered_in_pages_below_the_token_limit(server: Live) -> None:
    async with over_http(server, server.key(space="small", user="ann")) as client:
        await fill(client)
        for tool, items, arguments, key, total in (
            ("get_messages", "messages", {"limit": 200}, "id", 20),
            ("get_memories", "memories", {"limit": 200}, "id", 40),
            ("get_timeline", "events", {"until": "2026-01-01T00:00:00Z"}, "memory", 20),
            ("get_timeline", "events", {"since": "2025-01-01T00:00:00Z"}, "memory", 20),
            ("list_reminders", "reminders", {}, "id", 20),
            ("search_memories", "hits", {"query": "boats in the harbour", "limit": 200, "min_score": 0}, "id", 20),
        ):  # fmt: skip
            answer = await client.call_tool(tool, arguments)
            assert isinstance(answer.content[0], TextContent)
            assert 0 < count_tokens(answer.content[0].text) <= TOKENS, tool
            assert answer.structured_content is not None
            assert answer.structured_content["next"] is not None, tool
            found = [each[key] for each in await every_page(client, tool, items, **arguments)]
            assert len(found) == len(set(found)), tool
            assert len(found) >= total, tool


async def test_a_text_that_is_longer_than_an_answer_is_cut_and_can_be_read_whole(server: Live) -> None:
    async with over_http(server, server.key(space="long", user="ann")) as client:
        text = 'He said "no".\n' * 2_000
        await call(client, "add_messages", messages=[{"role": "user", "text": text, "id": "long one"}])
        answer = await client.call_tool("get_messages", {})
        assert isinstance(answer.content[0], TextContent)
        assert count_tokens(answer.content[0].text) <= TOKENS
        assert answer.structured_content is not None
        (message,) = answer.structured_content["messages"]
        assert message["cut"] is True
        assert text.startswith(message["text"].removesuffix(" …"))
        whole = await client.read_resource("aforesaid://users/ann/messages/long%20one")
        assert whole.contents[0].text == text  # type: ignore[union-attr]


async def test_a_long_portrait_comes_in_parts(server: Live) -> None:
    async with over_http(server, server.key(space="portrait", user="ann")) as client:
        for number in range(36):
            await call(client, "remember", fact=f"has a friend called Tom{number} who lives in house number {number}")
        part = await call(client, "portrait")
        text = part["portrait"]
        assert part["next"] is not None
        while part["next"] is not None:
            assert count_tokens(part["portrait"]) <= TOKENS
            part = await call(client, "portrait", cursor=part["next"])
            text += part["portrait"]
        assert all(f"Tom{number} " in text for number in range(36))


@pytest.mark.client("MCP (streamable HTTP)", "mcp (Python)", "completion")
async def test_users_and_threads_are_completed_within_what_the_key_may_reach(server: Live) -> None:
    everybody = server.key(space="complete")
    async with over_http(server, everybody) as client:
        for user, thread in (("ann", "harbour"), ("anton", "harbour"), ("bob", "work")):
            said = [{"role": "user", "text": f"hello from {user}"}]
            await call(client, "add_messages", messages=said, thread=thread, user=user)
        template = ResourceTemplateReference(uri="aforesaid://users/{user}/threads/{thread}")
        users = await client.complete(template, {"name": "user", "value": "An"})
        assert users.completion.values == ["ann", "anton"]
        threads = await client.complete(template, {"name": "thread", "value": "w"}, {"user": "bob"})
        assert threads.completion.values == ["work"]
    async with over_http(server, server.key(space="complete", user="ann")) as client:
        own = await client.complete(template, {"name": "user", "value": ""})
        assert own.completion.values == ["ann"]
        theirs = await client.complete(template, {"name": "thread", "value": ""}, {"user": "bob"})
        assert "work" not in theirs.completion.values


async def test_the_resources_of_the_user_of_a_key_are_listed_and_can_be_read(server: Live) -> None:
    async with over_http(server, server.key(space="resources", user="ann")) as client:
        said = [{"role": "user", "text": "The boat is blue.", "at": "2026-03-01T09:30:00Z"}]
        await call(client, "add_messages", messages=said, thread="harbour?")
        await call(client, "add_memory", content="Ann bought a boat on 2025-05-01", category="event")
        listed = {each.uri: each for each in (await client.list_resources()).resources}
        texts = {}
        for uri in listed:
            (content,) = (await client.read_resource(uri)).contents
            texts[uri] = content.text  # type: ignore[union-attr]
        assert "Ann bought a boat" in texts["aforesaid://users/ann/timeline"]
        assert "The boat is blue." in texts["aforesaid://users/ann/threads/ann%2Fharbour%3F"]
        for uri in ("aforesaid://users/bob/timeline", "aforesaid://users/ann/threads/nowhere"):
            with pytest.raises(MCPError, match=r"there (is|are) no"):
                await client.read_resource(uri)
    async with over_http(server, server.key(space="resources")) as client:
        assert (await client.list_resources()).resources == [], "it is for several users"


async def test_a_direct_chat_of_somebody_else_is_not_read_by_its_name(server: Live) -> None:
    async with over_http(server, server.key(space="direct")) as client:
        for user in ("ann", "bob"):
            said = [{"role": "user", "text": f"the secret of {user}"}]
            await call(client, "add_messages", messages=said, user=user)
        (thread,) = (await call(client, "list_threads", user="bob"))["threads"]
    async with over_http(server, server.key(space="direct", user="ann")) as ann:
        read = await ann.call_tool("get_messages", {"thread": thread["id"]})
        assert "secret of bob" not in str(read)
        with pytest.raises(MCPError):
            await ann.read_resource(f"aforesaid://users/ann/threads/{thread['id'].replace('/', '%2F')}")


async def test_prompts_carry_what_is_remembered(server: Live) -> None:
    async with over_http(server, server.key(space="prompts", user="ann")) as client:
        await call(client, "add_memory", content="Tom plays the cello", about="Tom")
        await call(client, "set_reminder", text="water the plants", when="tomorrow at 9")
        about = await client.get_prompt("about_person", {"name": "Tom"})
        assert "cello" in about.messages[0].content.text  # type: ignore[union-attr]
        ahead = await client.get_prompt("coming_up", {})
        assert "water the plants" in ahead.messages[0].content.text  # type: ignore[union-attr]


ARGUMENTS = {"with_memory": {"message": "What does Tom play?"}, "about_person": {"name": "Tom"}, "coming_up": {}}


@pytest.mark.defect("S11")
async def test_the_listed_arguments_of_prompts_are_those_that_they_need(server: Live) -> None:
    async def listed(client: Client) -> dict[str, set[str]]:
        found = (await client.list_prompts()).prompts
        return {each.name: {one.name for one in each.arguments or () if one.required} for each in found}

    async with over_http(server, server.key(space="prompts", user="ann")) as client:
        assert await listed(client) == {name: set(given) for name, given in ARGUMENTS.items()}
        for name, given in ARGUMENTS.items():
            assert (await client.get_prompt(name, given)).messages
    async with over_http(server, server.key(space="prompts")) as client:
        assert await listed(client) == {name: {*given, "user"} for name, given in ARGUMENTS.items()}
        for name, given in ARGUMENTS.items():
            assert (await client.get_prompt(name, {**given, "user": "ann"})).messages
            for argument in (*given, "user"):
                rest = {each: value for each, value in {**given, "user": "ann"}.items() if each != argument}
                with pytest.raises(MCPError, match=f"{name} needs the argument `{argument}`") as error:
                    await client.get_prompt(name, rest)
                assert error.value.error.code == INVALID_PARAMS
        with pytest.raises(MCPError, match="coming_up has no argument 'when'; its arguments are user"):
            await client.get_prompt("coming_up", {"user": "ann", "when": "today"})
        with pytest.raises(MCPError, match="There is no prompt 'coming'; the prompts are with_memory"):
            await client.get_prompt("coming", {"user": "ann"})


@pytest.mark.defect("S11")
async def test_tools_need_the_user_on_a_connection_for_several(server: Live) -> None:
    async with over_http(server, server.key(space="prompts")) as client:
        for tool in (await client.list_tools()).tools:
            assert ("user" in tool.input_schema["properties"]) == ("user" in tool.input_schema.get("required", ()))
    async with over_http(server, server.key(space="prompts", user="ann")) as client:
        for tool in (await client.list_tools()).tools:
            assert "user" not in tool.input_schema.get("required", ())
