from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

import pytest

pytest.importorskip("agent_framework", reason="the Agent Framework is not installed (make test-integrations)")

from agent_framework import Agent, BaseChatClient, ChatResponse, Content, Message

import aforesaid
from aforesaid.integrations.agent_framework import AforesaidContextProvider, AforesaidHistoryProvider

TOOL_CONVERSATION = [
    Message("system", ["Be brief."]),
    Message("user", ["What is the weather in Bern?"], author_name="Ann", message_id="m1"),
    Message(
        "assistant",
        [
            Content.from_text_reasoning(text="I should ask."),
            Content.from_function_call("c1", "weather", arguments={"city": "Bern"}),
        ],
    ),
    Message("tool", [Content.from_function_result("c1", result="Sunny")]),
    Message("assistant", ["It is sunny."], additional_properties={"mood": "good"}),
    Message("user", ["And here?", Content.from_uri("https://example.org/sky.png", media_type="image/png")]),
]


def as_dicts(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return [message.to_dict() for message in messages]


@pytest.mark.anyio
async def test_a_conversation_with_tools_comes_back_as_it_was_saved(memory: aforesaid.SyncMemory) -> None:
    history = AforesaidHistoryProvider(memory, "ann")
    await history.save_messages("s1", TOOL_CONVERSATION)
    assert as_dicts(await history.get_messages("s1")) == as_dicts(TOOL_CONVERSATION)
    assert await history.get_messages("s2") == []
    stored = memory.user("ann").chat("s1").history(within="thread")
    assert stored[2].tool_calls[0].name == "weather"
    assert (stored[3].text, stored[3].tool_call_id) == ("Sunny", "c1")


@pytest.mark.anyio
async def test_messages_from_elsewhere_become_messages_of_the_framework(memory: aforesaid.SyncMemory) -> None:
    ann = memory.user("ann").chat("s1")
    ann.add("user", "Weather?")
    ann.add("assistant", tool_calls=[{"id": "c1", "name": "weather", "arguments": "{}"}])
    ann.add("tool", "Sunny", tool_call_id="c1")
    asked, called, returned = await AforesaidHistoryProvider(memory, "ann").get_messages("s1")
    assert asked.text == "Weather?"
    assert (called.contents[0].name, called.contents[0].call_id) == ("weather", "c1")
    assert returned.contents[0].result == "Sunny"


class Scripted(BaseChatClient):
    """Returns the answers of a script, and keeps what it was asked."""

    def __init__(self, answers: Sequence[Message]) -> None:
        super().__init__()
        self.answers = iter(answers)
        self.asked: list[tuple[list[str], str]] = []

    def _inner_get_response(
        self,
        *,
        messages: Sequence[Message],
        stream: bool = False,
        options: Mapping[str, Any],
        **_: object,
    ) -> Awaitable[ChatResponse]:
        assert not stream
        self.asked.append(([each.role for each in messages], str(options.get("instructions"))))

        async def answer() -> ChatResponse:
            return ChatResponse(messages=[next(self.answers)])

        return answer()


@pytest.mark.anyio
async def test_an_agent_recalls_what_was_said_in_another_session() -> None:
    async with aforesaid.connect(":memory:") as opened:
        await opened.user("ann").add("user", "My tortoise is called Rex.")
        client = Scripted([Message("assistant", ["Hello."]), Message("assistant", ["Rex."])])
        providers = [AforesaidHistoryProvider(opened, "ann"), AforesaidContextProvider(opened.user("ann").chat("s1"))]
        agent = Agent(client, instructions="Be brief.", context_providers=providers)
        session = agent.create_session(session_id="s1")
        await agent.run("Good morning", session=session)
        await agent.run("What is my tortoise called?", session=session)
        roles, instructions = client.asked[-1]
        assert [role for role in roles if role != "system"] == ["user", "assistant", "user"]
        assert "My tortoise is called Rex." in instructions
        assert await opened.user("ann").chat("s1").count(within="thread") == 4
