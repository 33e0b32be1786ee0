from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("langchain", reason="LangChain is not installed (make test-integrations)")

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, AgentState, hook_config
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import RetrieversIntegrationTests
from langgraph.checkpoint.memory import InMemorySaver

import aforesaid
from aforesaid.errors import InvalidInput
from aforesaid.integrations.langchain import (
    AforesaidChatMessageHistory,
    AforesaidMiddleware,
    AforesaidRetriever,
)
from aforesaid.testing import ScriptedModel, Writes

TOOL_CONVERSATION = [
    SystemMessage(content="Be brief."),
    HumanMessage(content="What is the weather in Bern?", id="m1", name="Ann"),
    AIMessage(
        content="",
        id="run-1",
        tool_calls=[
            {"name": "weather", "args": {"city": "Bern", "days": [1, 2]}, "id": "c1", "type": "tool_call"},
            {"name": "weather", "args": {}, "id": "c2", "type": "tool_call"},
        ],
        usage_metadata={"input_tokens": 3, "output_tokens": 4, "total_tokens": 7},
        response_metadata={"model_name": "scripted"},
    ),
    ToolMessage(content="Sunny", tool_call_id="c1", artifact={"celsius": 21}),
    ToolMessage(content="", tool_call_id="c2", status="error"),
    AIMessage(content=[{"type": "text", "text": "It is sunny."}, {"type": "reasoning", "reasoning": "…"}]),
    HumanMessage(
        content=[
            {"type": "text", "text": "And here?"},
            {"type": "image_url", "image_url": {"url": "https://example.org/sky.png"}},
        ]
    ),
    AIMessage(content="Clouds."),
]


def test_a_conversation_with_tools_comes_back_as_it_was_added(memory: aforesaid.SyncMemory) -> None:
    history = AforesaidChatMessageHistory(memory.user("ann").chat("chat-1"))
    history.add_messages(TOOL_CONVERSATION)
    assert history.messages == TOOL_CONVERSATION
    history.clear()
    assert history.messages == []


def test_setting_the_messages_keeps_those_that_are_the_same(memory: aforesaid.SyncMemory) -> None:
    ann = memory.user("ann").chat("chat-1")
    history = AforesaidChatMessageHistory(ann)
    history.add_messages(TOOL_CONVERSATION)
    first = ann.history(within="thread")[:3]
    history.messages = [*TOOL_CONVERSATION[:3], AIMessage(content="Done.")]
    assert history.messages == [*TOOL_CONVERSATION[:3], AIMessage(content="Done.")]
    assert ann.history(within="thread")[:3] == first


@pytest.mark.anyio
async def test_the_async_methods_do_the_same() -> None:
    async with aforesaid.connect(":memory:") as opened:
        history = AforesaidChatMessageHistory(opened.user("ann").chat("chat-1"))
        await history.aadd_messages(TOOL_CONVERSATION)
        assert await history.aget_messages() == TOOL_CONVERSATION
        await history.aclear()
        assert await history.aget_messages() == []


def test_messages_from_elsewhere_become_langchain_messages(memory: aforesaid.SyncMemory) -> None:
    ann = memory.user("ann").chat("chat-1")
    ann.add("user", "Weather?")
    ann.add("assistant", tool_calls=[{"id": "c1", "name": "weather", "arguments": '{"city": "Bern"}'}])
    ann.add("tool", "Sunny", tool_call_id="c1")
    assert AforesaidChatMessageHistory(ann).messages == [
        HumanMessage(content="Weather?"),
        AIMessage(content="", tool_calls=[{"name": "weather", "args": {"city": "Bern"}, "id": "c1"}]),
        ToolMessage(content="Sunny", tool_call_id="c1"),
    ]


def test_an_order_to_remove_a_message_is_no_message(memory: aforesaid.SyncMemory) -> None:
    history = AforesaidChatMessageHistory(memory.user("ann"))
    with pytest.raises(InvalidInput, match="remove"):
        history.add_messages([HumanMessage(content="kept out too"), RemoveMessage(id="m1")])
    assert history.messages == []


def test_a_retriever_returns_what_a_search_finds(memory: aforesaid.SyncMemory) -> None:
    ann = memory.user("ann")
    ann.add("user", "I moved to Bern.")
    ann.add("user", "My tortoise is called Rex.")
    (found, *_) = AforesaidRetriever(user=ann, k=3).invoke("tortoise")
    assert found.page_content == "My tortoise is called Rex."
    assert found.metadata["kind"] == "message"
    assert found.metadata["role"] == "user"


def test_an_agent_recalls_what_was_said_in_another_thread(memory: aforesaid.SyncMemory) -> None:
    memory.user("ann").add("user", "My tortoise is called Rex.")

    @tool
    def weather(city: str) -> str:
        """Return the weather."""
        return f"Sunny in {city}"

    script: list[Any] = [Writes("", tools={"weather": {"city": "Bern"}}), "Rex likes the sun.", "Sunny, as I said."]
    with ScriptedModel(script) as server:
        model = ChatOpenAI(base_url=server.base_url, api_key="none", model="scripted")
        agent = create_agent(
            model,
            [weather],
            system_prompt="You are helpful.",
            middleware=[AforesaidMiddleware(lambda runtime: memory.user(runtime.context).chat("chat-1"))],
            checkpointer=InMemorySaver(),
        )
        config = {"configurable": {"thread_id": "1"}}
        for text in ("Does my tortoise like today's weather?", "How is it?"):
            agent.invoke({"messages": [{"role": "user", "content": text}]}, config, context="ann")
    prompt = server.requests[0].messages[0]
    assert prompt["role"] == "system"
    assert prompt["content"].startswith("You are helpful.")
    assert "My tortoise is called Rex." in prompt["content"]
    stored = memory.user("ann").chat("chat-1").history(within="thread")
    assert [each.role for each in stored] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert stored[1].tool_calls[0].name == "weather"


def test_empty_messages_come_back(memory: aforesaid.SyncMemory) -> None:
    history = AforesaidChatMessageHistory(memory.user("ann").chat("chat-1"))
    messages = [HumanMessage(content=""), AIMessage(content=""), SystemMessage(content="")]
    history.add_messages(messages)
    assert history.messages == messages


def test_long_messages_come_back(memory: aforesaid.SyncMemory) -> None:
    history = AforesaidChatMessageHistory(memory.user("ann").chat("chat-1"))
    messages = [HumanMessage(content="x" * 70_000), ToolMessage(content="y" * 70_000, tool_call_id="c1")]
    history.add_messages(messages)
    assert history.messages == messages


class Injecting(AgentMiddleware):
    """Adds a message of a person after the first answer of a run, and lets the model answer again."""

    @hook_config(can_jump_to=["model"])
    def after_model(self, state: AgentState[Any], runtime: object) -> dict[str, Any] | None:
        del runtime
        if any(each.text == "Be more polite." for each in state["messages"]):
            return None
        return {"messages": [HumanMessage(content="Be more polite.")], "jump_to": "model"}


@pytest.mark.anyio
@pytest.mark.parametrize("wait", [False, True])
async def test_all_messages_of_a_run_are_stored_once(memory: aforesaid.SyncMemory, *, wait: bool) -> None:
    ann = memory.user("ann").chat("chat-1")
    earlier = [SystemMessage(content="Be brief."), HumanMessage(content="Old?"), AIMessage(content="Old.")]
    with ScriptedModel(["Bern!", "Bern, please."]) as server:
        model = ChatOpenAI(base_url=server.base_url, api_key="none", model="scripted")
        agent = create_agent(model, middleware=[AforesaidMiddleware(ann), Injecting()])
        given: Any = {"messages": [*earlier, HumanMessage(content="Where?")]}
        result = await agent.ainvoke(given) if wait else agent.invoke(given)
    assert [each.text for each in ann.history(within="thread")] == [
        "Where?",
        "Bern!",
        "Be more polite.",
        "Bern, please.",
    ]
    assert "aforesaid_first" not in result


class TestRetriever(RetrieversIntegrationTests):
    """LangChain's own tests of retrievers."""

    @pytest.fixture(autouse=True)
    def _filled(self, memory: aforesaid.SyncMemory) -> None:
        self.ann = memory.user("ann")
        self.ann.add_many([{"role": "user", "text": f"Tortoise number {number}"} for number in range(5)])

    @property
    def retriever_constructor(self) -> type[AforesaidRetriever]:
        return AforesaidRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"user": self.ann, "min_score": 0.0}

    @property
    def retriever_query_example(self) -> str:
        return "tortoise"
