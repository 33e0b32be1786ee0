from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("claude_agent_sdk", reason="the Claude Agent SDK is not installed (make test-integrations)")

import claude_agent_sdk as sdk
from claude_agent_sdk.testing import run_session_store_conformance

import aforesaid
from aforesaid.integrations.claude_agent import AforesaidSessionStore

KEY: Any = {"project_key": "-home-ann", "session_id": "5a"}
TOOL_CONVERSATION: list[Any] = [
    {"type": "mode", "mode": "normal"},
    {"type": "user", "uuid": "u1", "parentUuid": None, "message": {"role": "user", "content": "Weather in Bern?"}},
    {
        "type": "assistant",
        "uuid": "u2",
        "parentUuid": "u1",
        "message": {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "I should look.", "signature": "x"},
                {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Bern"}},
            ],
            "usage": {"output_tokens": 7},
        },
    },
    {
        "type": "user",
        "uuid": "u3",
        "message": {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "Sunny"}]}],
        },
    },
    {
        "type": "assistant",
        "uuid": "u4",
        "message": {"role": "assistant", "content": [{"type": "text", "text": "Sunny."}]},
    },
]


@pytest.mark.anyio
async def test_the_contracts_of_the_sdk_hold() -> None:
    opened = []

    def fresh() -> AforesaidSessionStore:
        opened.append(aforesaid.open(":memory:"))
        return AforesaidSessionStore(opened[-1], "ann")

    await run_session_store_conformance(fresh)
    for memory in opened:
        memory.close()


@pytest.mark.anyio
async def test_a_transcript_with_tools_comes_back_as_it_was_appended(memory: aforesaid.SyncMemory) -> None:
    store = AforesaidSessionStore(memory, "ann")
    await store.append(KEY, TOOL_CONVERSATION)
    await store.append(KEY, TOOL_CONVERSATION[1:])  # a batch that is sent again
    assert await store.load(KEY) == TOOL_CONVERSATION
    stored = memory.user("ann").history()
    assert [each.role for each in stored] == ["system", "user", "assistant", "tool", "assistant"]
    assert stored[2].tool_calls[0].arguments == '{"city": "Bern"}'
    assert (stored[3].text, stored[3].tool_call_id) == ("Sunny", "t1")
    assert memory.user("ann").search("weather Bern")[0].text == "Weather in Bern?"


@pytest.mark.anyio
async def test_users_do_not_see_the_transcripts_of_others(memory: aforesaid.SyncMemory) -> None:
    await AforesaidSessionStore(memory, "ann").append(KEY, TOOL_CONVERSATION)
    other = AforesaidSessionStore(memory, "bob")
    assert await other.load(KEY) is None
    assert await other.list_sessions("-home-ann") == []


@pytest.mark.anyio
async def test_the_sdk_lists_and_reads_sessions_from_the_store(memory: aforesaid.SyncMemory) -> None:
    store = AforesaidSessionStore(memory, "ann")
    session = "11111111-2222-4333-8444-555555555555"
    key: Any = {"project_key": sdk.project_key_for_directory("/home/ann"), "session_id": session}
    await store.append(key, [{**entry, "sessionId": session} for entry in TOOL_CONVERSATION[1:]])
    (listed,) = await sdk.list_sessions_from_store(store, directory="/home/ann")
    assert listed.session_id == session


@pytest.mark.anyio
async def test_other_chats_of_the_user_are_no_transcripts(memory: aforesaid.SyncMemory) -> None:
    store = AforesaidSessionStore(memory, "ann")
    await store.append(KEY, TOOL_CONVERSATION)
    others = ("[not json", '["alone"]', "[1,2]", '["p",2]', "notes")
    for name in others:
        memory.user("ann").chat(name).add("user", "hello")
    assert [each["session_id"] for each in await store.list_sessions("-home-ann")] == ["5a"]
    assert await store.list_subkeys(KEY) == []
    await store.delete(KEY)
    assert await store.load(KEY) is None
    assert all(memory.user("ann").chat(name).history(within="thread") for name in others)


@pytest.mark.anyio
async def test_edited_entries_come_back_edited(memory: aforesaid.SyncMemory) -> None:
    store = AforesaidSessionStore(memory, "ann")
    await store.append(KEY, TOOL_CONVERSATION)
    ann = memory.user("ann")
    for number, message in enumerate(ann.history()):
        if message.text:
            ann.edit(message, f"edited {number}")
    loaded: Any = await store.load(KEY)
    assert [each["type"] for each in loaded] == [each["type"] for each in TOOL_CONVERSATION]
    assert loaded[:1] + loaded[2:3] == TOOL_CONVERSATION[:1] + TOOL_CONVERSATION[2:3]
    assert loaded[1]["message"]["content"] == "edited 1"
    assert loaded[3]["message"]["content"] == [{"type": "tool_result", "tool_use_id": "t1", "content": "edited 3"}]
    assert loaded[4]["message"]["content"] == [{"type": "text", "text": "edited 4"}]


@pytest.mark.anyio
@pytest.mark.parametrize("size", [60_000, 70_000])
async def test_a_long_result_that_an_entry_holds_twice_comes_back(memory: aforesaid.SyncMemory, size: int) -> None:
    store = AforesaidSessionStore(memory, "ann")
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "y" * size}
    entry: Any = {"type": "user", "uuid": "u9", "message": {"role": "user", "content": [result]}}
    entry["toolUseResult"] = {"stdout": "y" * size, "stderr": ""}
    await store.append(KEY, [entry])
    assert await store.load(KEY) == [entry]
