from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

agents = pytest.importorskip("agents", reason="the OpenAI Agents SDK is not installed (make test-integrations)")

from openai import AsyncOpenAI  # noqa: E402

import aforesaid  # noqa: E402
from aforesaid.errors import InvalidInput  # noqa: E402
from aforesaid.integrations.openai_agents import AforesaidSession  # noqa: E402
from aforesaid.testing import ScriptedModel, Writes  # noqa: E402

TOOL_CONVERSATION: list[Any] = [
    {"role": "user", "content": "What is the weather in Bern?"},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
    {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "weather",
        "arguments": '{"city": "Bern"}',
        "status": "completed",
    },
    {"type": "function_call_output", "call_id": "call_1", "output": "Sunny, 21 °C"},
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "It is sunny in Bern.", "annotations": [], "logprobs": []}],
    },
    {
        "role": "user",
        "content": [
            {"type": "input_text", "text": "And here?"},
            {"type": "input_image", "image_url": "https://example.org/sky.png", "detail": "auto"},
        ],
    },
    {"role": "assistant", "content": "Clouds."},
    {"role": "developer", "content": "Answer briefly."},
]


@pytest.mark.anyio
async def test_a_conversation_with_tools_comes_back_as_it_was_added(memory: aforesaid.SyncMemory) -> None:
    session = AforesaidSession(memory.user("ann").chat("chat-1"))
    await session.add_items(TOOL_CONVERSATION)
    assert await session.get_items() == TOOL_CONVERSATION
    assert await session.get_items(limit=2) == TOOL_CONVERSATION[-2:]


@pytest.mark.anyio
async def test_items_are_messages_with_their_tool_calls(memory: aforesaid.SyncMemory) -> None:
    ann = memory.user("ann").chat("chat-1")
    await AforesaidSession(ann).add_items(TOOL_CONVERSATION)
    messages = ann.history(within="thread")
    assert [each.role for each in messages] == [
        "user", "assistant", "assistant", "tool", "assistant", "user", "assistant", "system",
    ]  # fmt: skip
    assert messages[2].tool_calls[0].name == "weather"
    assert messages[3].tool_call_id == "call_1"
    assert ann.search("sunny in Bern")[0].text == "It is sunny in Bern."


@pytest.mark.anyio
async def test_items_are_popped_from_the_end_until_none_is_left(memory: aforesaid.SyncMemory) -> None:
    session = AforesaidSession(memory.user("ann").chat("chat-1"))
    await session.add_items(TOOL_CONVERSATION)
    popped = [await session.pop_item() for _ in TOOL_CONVERSATION]
    assert popped == TOOL_CONVERSATION[::-1]
    assert await session.pop_item() is None


@pytest.mark.anyio
async def test_clearing_one_session_leaves_the_others(memory: aforesaid.SyncMemory) -> None:
    one, other = (AforesaidSession(memory.user("ann").chat(name)) for name in ("one", "other"))
    for session in (one, other):
        await session.add_items([{"role": "user", "content": session.session_id}])
    await one.clear_session()
    assert await one.get_items() == []
    assert await other.get_items() == [{"role": "user", "content": "other"}]


@pytest.mark.anyio
async def test_a_session_holds_only_the_messages_of_its_user(memory: aforesaid.SyncMemory) -> None:
    ann, bob = (AforesaidSession(memory.user(name, thread="shared")) for name in ("ann", "bob"))
    await ann.add_items([{"role": "user", "content": "I am Ann"}])
    await bob.add_items([{"role": "user", "content": "I am Bob"}])
    assert await ann.get_items() == [{"role": "user", "content": "I am Ann"}]
    await bob.pop_item()
    assert await ann.get_items() == [{"role": "user", "content": "I am Ann"}]


@pytest.mark.anyio
async def test_messages_from_elsewhere_become_items(memory: aforesaid.SyncMemory) -> None:
    ann = memory.user("ann").chat("chat-1")
    ann.add("user", "Weather?")
    call = {"id": "c1", "name": "weather", "arguments": "{}"}
    ann.add("assistant", "One moment.", tool_calls=[call])
    ann.add("tool", "Sunny", tool_call_id="c1")
    assert await AforesaidSession(ann).get_items() == [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": "One moment."},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "Sunny"},
    ]


@pytest.mark.anyio
async def test_a_message_that_was_edited_comes_back_edited(memory: aforesaid.SyncMemory) -> None:
    ann = memory.user("ann").chat("chat-1")
    session = AforesaidSession(ann)
    await session.add_items(TOOL_CONVERSATION)
    ann.edit(ann.history(within="thread")[4], "It is raining in Bern.")
    assert (await session.get_items())[4] == {"role": "assistant", "content": "It is raining in Bern."}


@pytest.mark.anyio
async def test_a_memory_from_connect_works_on_its_own_event_loop() -> None:
    async with aforesaid.connect(":memory:") as opened:
        session = AforesaidSession(opened.user("ann").chat("chat-1"))
        await session.add_items(TOOL_CONVERSATION)
        assert await session.get_items() == TOOL_CONVERSATION


def test_a_whole_memory_is_refused(memory: aforesaid.SyncMemory) -> None:
    with pytest.raises(InvalidInput, match=r"memory\.user"):
        AforesaidSession(cast("Any", memory))


@pytest.mark.anyio
async def test_an_agent_calls_a_tool_and_remembers_it_in_the_next_run(memory: aforesaid.SyncMemory) -> None:
    @agents.function_tool
    def weather(city: str) -> str:
        return f"Sunny in {city}"

    replies: list[Any] = [Writes("", tools={"weather": {"city": "Bern"}}), "It is sunny.", "You asked about Bern."]
    with ScriptedModel(replies) as server:
        client = AsyncOpenAI(base_url=server.base_url, api_key="none")
        model = agents.OpenAIChatCompletionsModel(model="scripted", openai_client=client)
        agent = agents.Agent(name="assistant", model=model, tools=[weather])
        session = AforesaidSession(memory.user("ann").chat("chat-1"))
        await agents.Runner.run(agent, "How is the weather in Bern?", session=session)
        result = await agents.Runner.run(agent, "What did I ask?", session=session)
        assert result.final_output == "You asked about Bern."
        roles = [each["role"] for each in server.requests[-1].messages]
        await client.close()
    assert roles == ["user", "assistant", "tool", "assistant", "user"]


@pytest.mark.anyio
async def test_an_empty_text_is_an_item_too(memory: aforesaid.SyncMemory) -> None:
    session = AforesaidSession(memory.user("ann").chat("chat-1"))
    items: list[Any] = [{"role": "user", "content": ""}, {"role": "user", "content": "Still there?"}]
    await session.add_items(items)
    assert await session.get_items() == items


LONG: list[Any] = [
    {"type": "function_call_output", "call_id": "c", "output": "weather " * 2_000},
    {"type": "function_call_output", "call_id": "c", "output": "weather " * 20_000},
    {"role": "user", "content": "What is wrong here? " + "ü" * 70_000},
]


@pytest.mark.anyio
async def test_long_texts_come_back_whole_and_are_found_by_their_beginning(memory: aforesaid.SyncMemory) -> None:
    ann = memory.user("ann").chat("chat-1")
    session = AforesaidSession(ann)
    await session.add_items(LONG)
    assert await session.get_items() == LONG
    assert ann.search("wrong", kinds=("message",))[0].text.startswith("What is wrong here?")
    assert await session.pop_item() == LONG[-1]


@pytest.mark.anyio
async def test_a_long_text_is_stored_once(memory: aforesaid.SyncMemory) -> None:
    ann = memory.user("ann").chat("chat-1")
    await AforesaidSession(ann).add_items(LONG[:1])
    (stored,) = ann.history(within="thread")
    assert stored.text == LONG[0]["output"]
    assert len(stored.details or "") < 1_000


@pytest.mark.anyio
@pytest.mark.parametrize("item", LONG)
async def test_a_long_text_that_was_edited_comes_back_edited(
    memory: aforesaid.SyncMemory, item: dict[str, Any]
) -> None:
    ann = memory.user("ann").chat("chat-1")
    session = AforesaidSession(ann)
    await session.add_items(cast("Any", [item]))
    (stored,) = ann.history(within="thread")
    for text in (stored.text[:500], "short"):
        ann.edit(stored, text)
        (found,) = cast("list[dict[str, Any]]", await session.get_items())
        assert found.get("output", found.get("content")) == text


@pytest.mark.anyio
async def test_the_limit_of_texts_is_that_of_the_profile(tmp_path: Path) -> None:
    with aforesaid.open(tmp_path / "memory.db", profile={"message_bytes": 100}) as memory:
        ann = memory.user("ann").chat("chat-1")
        await AforesaidSession(ann).add_items(LONG[2:])
        assert await AforesaidSession(ann).get_items() == LONG[2:]
        assert len(ann.history(within="thread")[0].text.encode()) == 100
