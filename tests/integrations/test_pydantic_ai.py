from __future__ import annotations

import pytest

pytest.importorskip("pydantic_ai", reason="Pydantic AI is not installed (make test-integrations)")

from pydantic_ai import Agent, BinaryContent, ImageUrl
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

import aforesaid
from aforesaid.integrations.pydantic_ai import AforesaidHistory
from aforesaid.testing import ScriptedModel, Writes

TOOL_CONVERSATION: list[ModelMessage] = [
    ModelRequest(parts=[SystemPromptPart("Be brief."), UserPromptPart("What is the weather in Bern?")]),
    ModelResponse(
        parts=[
            ThinkingPart("I should ask."),
            ToolCallPart("weather", {"city": "Bern"}, tool_call_id="c1"),
            ToolCallPart("weather", '{"city": "Basel"}', tool_call_id="c2"),
        ],
        model_name="scripted",
    ),
    ModelRequest(
        parts=[
            ToolReturnPart("weather", {"celsius": 21}, tool_call_id="c1"),
            ToolReturnPart("weather", "No such city", tool_call_id="c2", outcome="retried"),
        ]
    ),
    ModelResponse(parts=[TextPart("It is sunny.")]),
    ModelRequest(
        parts=[
            UserPromptPart(
                ["And here?", ImageUrl("https://example.org/sky.png"), BinaryContent(b"\0\1", media_type="image/png")]
            )
        ]
    ),
    ModelResponse(parts=[]),
]


# The framework's own JSON gives images another class.
TOOL_CONVERSATION = ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(TOOL_CONVERSATION))


@pytest.mark.anyio
async def test_a_conversation_with_tools_comes_back_as_it_was_saved() -> None:
    async with aforesaid.connect(":memory:") as opened:
        chat = AforesaidHistory(opened.user("ann").chat("chat-1"))
        await chat.save(TOOL_CONVERSATION)
        assert await chat.load() == TOOL_CONVERSATION
        assert await chat.load(2) == TOOL_CONVERSATION[-2:]
        await chat.clear()
        assert await chat.load() == []


def test_the_sync_methods_do_the_same(memory: aforesaid.SyncMemory) -> None:
    ann = memory.user("ann").chat("chat-1")
    chat = AforesaidHistory(ann)
    chat.save_sync(TOOL_CONVERSATION)
    assert chat.load_sync() == TOOL_CONVERSATION
    stored = ann.history(within="thread")
    assert [each.role for each in stored] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert [call.arguments for call in stored[1].tool_calls] == ['{"city":"Bern"}', '{"city":"Basel"}']


def test_a_message_that_was_edited_comes_back_edited(memory: aforesaid.SyncMemory) -> None:
    ann = memory.user("ann").chat("chat-1")
    chat = AforesaidHistory(ann)
    chat.save_sync(TOOL_CONVERSATION)
    ann.edit(ann.history(within="thread")[3], "It is raining.")
    assert chat.load_sync()[3].parts[0].content == "It is raining."
    assert chat.load_sync()[:3] == TOOL_CONVERSATION[:3]


def test_messages_from_elsewhere_become_a_history(memory: aforesaid.SyncMemory) -> None:
    ann = memory.user("ann").chat("chat-1")
    ann.add("user", "Weather?")
    ann.add("assistant", tool_calls=[{"id": "c1", "name": "weather", "arguments": "{}"}])
    ann.add("tool", "Sunny", tool_call_id="c1")
    asked, called, returned = AforesaidHistory(ann).load_sync()
    assert asked.parts[0].content == "Weather?"
    assert (called.parts[0].tool_name, called.parts[0].tool_call_id) == ("weather", "c1")
    assert returned.parts[0].content == "Sunny"


@pytest.mark.anyio
async def test_an_agent_recalls_what_was_said_in_another_chat(memory: aforesaid.SyncMemory) -> None:
    memory.user("ann").add("user", "My tortoise is called Rex.")
    chat = AforesaidHistory(memory.user("ann").chat("chat-1"))
    with ScriptedModel([Writes("", tools={"weather": {"city": "Bern"}}), "Rex likes it.", "Rex."]) as server:
        model = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=server.base_url, api_key="none"))
        agent = Agent(model, instructions=chat.instructions)

        @agent.tool_plain
        def weather(city: str) -> str:
            return f"Sunny in {city}"

        for text in ("Does my tortoise like the weather?", "What is my tortoise called?"):
            result = await agent.run(text, message_history=await chat.load())
            await chat.save(result.new_messages())
    assert result.output == "Rex."
    assert "My tortoise is called Rex." in server.requests[0].messages[0]["content"]
    roles = [each["role"] for each in server.requests[-1].messages if each["role"] != "system"]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]
