from __future__ import annotations

import pytest

pytest.importorskip("haystack", reason="Haystack is not installed (make test-integrations)")

from haystack import Pipeline
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.core.errors import DeserializationError
from haystack.dataclasses import ChatMessage, ImageContent, TextContent, ToolCall
from haystack.utils import Secret

import aforesaid
from aforesaid.integrations.haystack import (
    AforesaidChatHistory,
    AforesaidChatWriter,
    AforesaidRetriever,
    memory_for_loading,
)
from aforesaid.testing import ScriptedModel

TRUSTED = ["aforesaid.integrations.haystack"]
CALL = ToolCall("weather", {"city": "Bern"}, id="c1", extra={"index": 0})
TOOL_CONVERSATION = [
    ChatMessage.from_system("Be brief."),
    ChatMessage.from_user("What is the weather in Bern?", name="Ann", meta={"lang": "en"}),
    ChatMessage.from_assistant(tool_calls=[CALL], reasoning="I should ask."),
    ChatMessage.from_tool("Sunny", origin=CALL),
    ChatMessage.from_assistant("It is sunny.", meta={"model": "scripted", "usage": {"total_tokens": 7}}),
    ChatMessage.from_user(
        content_parts=[
            TextContent("And here?"),
            ImageContent(base64_image="aGVsbG8=", mime_type="image/png", validation=False),
        ]
    ),
    ChatMessage.from_assistant("Clouds."),
]


def test_a_conversation_with_tools_comes_back_as_it_was_written(memory: aforesaid.SyncMemory) -> None:
    ann = memory.user("ann").chat("chat-1")
    assert AforesaidChatWriter(ann).run(TOOL_CONVERSATION) == {"messages_written": len(TOOL_CONVERSATION)}
    assert AforesaidChatHistory(ann).run()["messages"] == TOOL_CONVERSATION
    assert AforesaidChatHistory(ann, last=2).run()["messages"] == TOOL_CONVERSATION[-2:]
    assert ann.history(within="thread")[2].tool_calls[0].name == "weather"


@pytest.mark.anyio
async def test_the_async_methods_do_the_same() -> None:
    async with aforesaid.connect(":memory:") as opened:
        ann = opened.user("ann").chat("chat-1")
        await AforesaidChatWriter(ann).run_async(TOOL_CONVERSATION)
        assert (await AforesaidChatHistory(ann).run_async())["messages"] == TOOL_CONVERSATION
        found = await AforesaidRetriever(ann).run_async("sunny")
        assert found["documents"][0].content in {"Sunny", "It is sunny."}


def test_messages_from_elsewhere_become_chat_messages(memory: aforesaid.SyncMemory) -> None:
    ann = memory.user("ann").chat("chat-1")
    ann.add("user", "Weather?")
    ann.add("assistant", tool_calls=[{"id": "c1", "name": "weather", "arguments": '{"city": "Bern"}'}])
    ann.add("tool", "Sunny", tool_call_id="c1")
    asked, called, returned = AforesaidChatHistory(ann).run()["messages"]
    assert asked == ChatMessage.from_user("Weather?")
    assert called.tool_call == ToolCall("weather", {"city": "Bern"}, id="c1")
    assert returned.tool_call_result.result == "Sunny"


def test_a_pipeline_answers_with_its_history(memory: aforesaid.SyncMemory) -> None:
    ann = memory.user("ann").chat("chat-1")
    with ScriptedModel(["Hello, Ann.", "You are Ann."]) as server:
        pipeline = Pipeline()
        pipeline.add_component("history", AforesaidChatHistory(ann))
        pipeline.add_component(
            "model",
            OpenAIChatGenerator(Secret.from_token("none"), model="scripted", api_base_url=server.base_url),
        )
        pipeline.add_component("writer", AforesaidChatWriter(ann))
        pipeline.connect("history.messages", "model.messages")
        pipeline.connect("model.replies", "writer.messages")
        for text in ("I am Ann.", "Who am I?"):
            said = [ChatMessage.from_user(text)]
            pipeline.run({"history": {"messages": said}})
            AforesaidChatWriter(ann).run(said)
    assert [each["content"] for each in server.requests[-1].messages] == ["Hello, Ann.", "I am Ann.", "Who am I?"]
    assert AforesaidRetriever(ann, top_k=1).run("Who is Ann?")["documents"]


@pytest.mark.defect("I5")
def test_a_pipeline_is_written_and_loaded_with_another_memory(memory: aforesaid.SyncMemory) -> None:
    ann = memory.user("ann", space="home").chat("chat-1")
    pipeline = Pipeline()
    pipeline.add_component("writer", AforesaidChatWriter(ann))
    pipeline.add_component("history", AforesaidChatHistory(ann, last=1))
    pipeline.add_component("retriever", AforesaidRetriever(ann, top_k=1))
    written = pipeline.dumps()
    with pytest.raises(DeserializationError, match="memory_for_loading"):
        Pipeline.loads(written, allowed_modules=TRUSTED)
    with aforesaid.open(":memory:") as other:
        with memory_for_loading(other):
            loaded = Pipeline.loads(written, allowed_modules=TRUSTED)
        assert loaded.to_dict() == pipeline.to_dict()
        for text in ("I have a tortoise.", "It is called Rex."):
            other.user("ann", space="home").chat("chat-1").add("user", text)
        found = loaded.run({"retriever": {"query": "tortoise"}, "writer": {"messages": []}})
        assert [each.text for each in found["history"]["messages"]] == ["It is called Rex."]
        assert [each.content for each in found["retriever"]["documents"]] == ["I have a tortoise."]
