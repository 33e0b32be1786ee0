"""Tool calls and parts inside contexts: providers get whole exchanges or words, never half of one."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import aforesaid
from aforesaid import Part, ToolCall
from aforesaid.domain.chat_message import answered_calls
from aforesaid.memory import UserMemory
from making import minutes

WEATHER = ToolCall("c1", "weather", '{"city": "Berlin"}')
TIME = ToolCall("c2", "time", "{}")


def refused(messages: list[Any]) -> list[str]:
    """Return why OpenAI's API would refuse messages."""
    found: list[str] = []
    open_calls: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                found.append(f"a result without its call: {message}")
            else:
                open_calls.remove(message["tool_call_id"])
            continue
        found += [f"a call without its result: {call}" for call in open_calls]
        open_calls = [call["id"] for call in message.get("tool_calls", [])]
        if message["content"] is None and not open_calls:
            found.append(f"a message without content: {message}")
    return found + [f"a call without its result: {call}" for call in open_calls]


async def exchange(ann: UserMemory, minute: int = 0, more: str = "") -> None:
    await ann.add("user", "What is the weather, and what time is it?", at=minutes(minute))
    await ann.add("assistant", tool_calls=[WEATHER, TIME], at=minutes(minute + 1))
    await ann.add("tool", f"12 degrees{more}", tool_call_id="c1", at=minutes(minute + 2))
    await ann.add("tool", f"half past nine{more}", tool_call_id="c2", at=minutes(minute + 3))
    await ann.add("assistant", "12 degrees, and half past nine.", at=minutes(minute + 4))


async def test_an_exchange_in_the_recent_window_is_sent_as_it_was() -> None:
    async with aforesaid.connect(":memory:") as memory:
        ann = memory.user("ann")
        await exchange(ann)
        context = await ann.context("Thanks! And tomorrow?", budget=2000, at=minutes(5))
        roles = [message["role"] for message in context.messages if message["role"] != "system"]
        assert roles == ["user", "assistant", "tool", "tool", "assistant", "user"]
        called = next(message for message in context.messages if "tool_calls" in message)
        assert called["content"] is None
        assert [call["function"] for call in called["tool_calls"]] == [
            {"name": "weather", "arguments": '{"city": "Berlin"}'},
            {"name": "time", "arguments": "{}"},
        ]
        results = [message for message in context.messages if message["role"] == "tool"]
        assert [(each["tool_call_id"], each["content"]) for each in results] == [
            ("c1", "12 degrees"),
            ("c2", "half past nine"),
        ]
        assert refused(context.messages) == []
        assert "[called weather" in context.text
        assert refused(await ann.messages_for_llm()) == []
        assert len([each for each in await ann.messages_for_llm() if each["role"] == "tool"]) == 2


async def test_no_budget_tears_an_exchange_apart() -> None:
    async with aforesaid.connect(":memory:", embedder="none") as memory:
        ann = memory.user("ann")
        whole, in_words = 0, 0
        for count in range(3):
            await exchange(ann, 30 * count, " It is mild and dry, with a light wind from the west." * 4)
        for budget in range(256, 1400, 16):
            context = await ann.context("And tomorrow?", budget=budget, at=minutes(90))
            assert refused(context.messages) == []
            assert context.tokens <= budget
            whole += any("tool_calls" in message for message in context.messages)
            in_words += "[called" in str(context.messages) or "tool: " in str(context.messages)
        assert whole
        assert in_words


async def test_half_an_exchange_is_told_in_words() -> None:
    async with aforesaid.connect(":memory:") as memory:
        ann = memory.user("ann")
        await ann.add("tool", "a lost result", tool_call_id="c0", at=minutes(0))
        await ann.add("assistant", "One moment.", tool_calls=[WEATHER], at=minutes(1))
        await ann.add("user", "Still there?", at=minutes(2))
        context = await ann.context("Hello?", budget=1000, at=minutes(3))
        assert refused(context.messages) == []
        assert all("tool_calls" not in message for message in context.messages)
        written = str(context.messages)
        for words in ("a lost result", "One moment.", "[called weather"):
            assert words in written
        assert refused(await ann.messages_for_llm()) == []


async def test_pictures_are_named_in_words() -> None:
    async with aforesaid.connect(":memory:") as memory:
        ann = memory.user("ann")
        await ann.add("user", "Look!", parts=[Part("image", "a cat on a roof", "https://x/cat.png")], at=minutes(0))
        await ann.add("user", parts=[Part("file", name="plan.pdf")], at=minutes(1))
        context = await ann.context("What is on the roof?", budget=1000, at=minutes(2))
        assert "Look!\n[image: a cat on a roof]" in str(context.messages[-1]["content"])
        assert "[file: plan.pdf]" in str(context.messages[-1]["content"])


async def test_pictures_are_content_parts_for_callers_who_want_them() -> None:
    async with aforesaid.connect(":memory:") as memory:
        ann = memory.user("ann")
        await ann.add("user", "Look!", parts=[Part("image", "a cat", "https://x/cat.png")], at=minutes(0))
        await ann.add("user", parts=[Part("file", name="plan.pdf")], at=minutes(1))
        context = await ann.context("What is it?", budget=3000, at=minutes(2), parts=True)
        content = context.messages[-1]["content"]
        assert [part["type"] for part in content] == ["text", "image_url", "text"]
        assert "Look!" in content[0]["text"]
        assert content[1]["image_url"] == {"url": "https://x/cat.png"}
        assert "What is it?" in content[-1]["text"]
        assert context.tokens <= 3000


async def test_all_of_it_is_words_for_models_without_tools() -> None:
    async with aforesaid.connect(":memory:") as memory:
        ann = memory.user("ann")
        await exchange(ann)
        context = await ann.context("Thanks!", budget=2000, at=minutes(5), tools=False)
        assert {message["role"] for message in context.messages} <= {"system", "user", "assistant"}
        assert all(isinstance(message["content"], str) for message in context.messages)
        assert "[called weather" in str(context.messages)


ids = st.sampled_from(["a", "b", "c"])


@settings(max_examples=200)
@given(st.lists(st.lists(ids, max_size=2), max_size=6), st.data())
def test_only_whole_exchanges_are_found(calls: list[list[str]], data: st.DataObject) -> None:
    answers = [None if wanted else data.draw(st.none() | ids) for wanted in calls]
    sent: list[Any] = []
    whole = answered_calls(calls, answers)
    results = {place for places in whole.values() for place in places}
    for place, wanted in enumerate(calls):
        if place in whole:
            sent.append({"role": "assistant", "content": None, "tool_calls": [{"id": each} for each in wanted]})
        elif place in results:
            sent.append({"role": "tool", "content": "", "tool_call_id": answers[place]})
        else:
            sent.append({"role": "user", "content": "words"})
    assert refused(sent) == []
