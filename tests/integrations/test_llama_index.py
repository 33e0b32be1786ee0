from __future__ import annotations

import pytest

pytest.importorskip("llama_index.core", reason="LlamaIndex is not installed (make test-integrations)")

from llama_index.core.base.llms.types import (
    ChatMessage,
    ImageBlock,
    MessageRole,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import MockLLM
from llama_index.core.memory import Memory

import aforesaid
from aforesaid.integrations.llama_index import AforesaidMemory, AforesaidMemoryBlock

TOOL_CONVERSATION = [
    ChatMessage(role="system", content="Be brief."),
    ChatMessage(role="user", content="What is the weather in Bern?"),
    ChatMessage(
        role="assistant",
        blocks=[
            ThinkingBlock(content="I should ask."),
            ToolCallBlock(tool_call_id="c1", tool_name="weather", tool_kwargs={"city": "Bern"}),
        ],
    ),
    ChatMessage(role="tool", content="Sunny", additional_kwargs={"tool_call_id": "c1"}),
    ChatMessage(role="assistant", content="It is sunny."),
    ChatMessage(role="user", blocks=[TextBlock(text="And here?"), ImageBlock(url="https://example.org/sky.png")]),
    ChatMessage(role="assistant", content="", additional_kwargs={"refusal": None}),
]


def test_a_conversation_with_tools_comes_back_as_it_was_put(memory: aforesaid.SyncMemory) -> None:
    chat = AforesaidMemory(user=memory.user("ann").chat("chat-1"))
    chat.put_messages(TOOL_CONVERSATION)
    assert chat.get_all() == TOOL_CONVERSATION
    assert chat.get() == TOOL_CONVERSATION
    chat.reset()
    assert chat.get_all() == []


@pytest.mark.anyio
async def test_the_async_methods_do_the_same() -> None:
    async with aforesaid.connect(":memory:") as opened:
        chat = AforesaidMemory(user=opened.user("ann").chat("chat-1"))
        await chat.aput_messages(TOOL_CONVERSATION)
        assert await chat.aget_all() == TOOL_CONVERSATION
        await chat.areset()
        assert await chat.aget_all() == []


def test_setting_the_messages_keeps_those_that_are_the_same(memory: aforesaid.SyncMemory) -> None:
    chat = AforesaidMemory(user=memory.user("ann").chat("chat-1"))
    chat.put_messages(TOOL_CONVERSATION)
    kept = memory.user("ann").chat("chat-1").history(within="thread")[:2]
    chat.set([*TOOL_CONVERSATION[:2], ChatMessage(role="assistant", content="I cannot say.")])
    assert [each.content for each in chat.get_all()] == ["Be brief.", "What is the weather in Bern?", "I cannot say."]
    assert memory.user("ann").chat("chat-1").history(within="thread")[:2] == kept


def test_what_is_remembered_for_the_question_comes_first(memory: aforesaid.SyncMemory) -> None:
    memory.user("ann").add("user", "My tortoise is called Rex.")
    chat = AforesaidMemory(user=memory.user("ann").chat("chat-1"))
    chat.put(ChatMessage(role="user", content="Hello"))
    first, *rest = chat.get("What is my tortoise called?")
    assert first.role == MessageRole.SYSTEM
    assert "Rex" in (first.content or "")
    assert [each.content for each in rest] == ["Hello"]


def test_a_chat_engine_keeps_its_history_in_the_memory(memory: aforesaid.SyncMemory) -> None:
    ann = memory.user("ann").chat("chat-1")
    engine = SimpleChatEngine.from_defaults(llm=MockLLM(), memory=AforesaidMemory(user=ann))
    engine.chat("Hello")
    assert next((each.role, each.text) for each in ann.history(within="thread")) == ("user", "Hello")
    assert len(ann.history(within="thread")) == 2


@pytest.mark.anyio
async def test_a_block_recalls_what_left_the_short_term_memory(memory: aforesaid.SyncMemory) -> None:
    block = AforesaidMemoryBlock(name="aforesaid", user=memory.user("ann"))
    chat = Memory.from_defaults(session_id="1", token_limit=80, token_flush_size=20, memory_blocks=[block])
    await chat.aput(ChatMessage(role="user", content="My tortoise is called Rex. " * 5))
    for role in ("assistant", "user", "assistant", "user"):
        await chat.aput(ChatMessage(role=role, content="Something else, and more of it. " * 3))
    assert "Rex" in memory.user("ann").history()[0].text
    assert "Rex" in await block.aget([ChatMessage(role="user", content="What is my tortoise called?")])
