from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

pytest.importorskip("google.adk", reason="Google's Agent Development Kit is not installed (make test-integrations)")

from google.adk.agents import LlmAgent
from google.adk.events import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService, Session
from google.adk.tools import load_memory
from google.genai import types

import aforesaid
from aforesaid.errors import NotFound
from aforesaid.integrations.google_adk import AforesaidMemoryService

ANN: dict[str, Any] = {"app_name": "app", "user_id": "ann"}


def said(author: str, *parts: types.Part, at: float = 1_760_000_000.0) -> Event:
    role = "user" if author == "user" else "model"
    return Event(id=f"{author}-{at}", author=author, timestamp=at, content=types.Content(role=role, parts=list(parts)))


TOOL_CONVERSATION = [
    said("user", types.Part(text="What is the weather in Bern?"), at=1.0),
    said("guide", types.Part.from_function_call(name="weather", args={"city": "Bern"}), at=2.0),
    said("guide", types.Part.from_function_response(name="weather", response={"sky": "sunny", "in": "Bern"}), at=3.0),
    said("guide", types.Part(text="Sunny in Bern."), types.Part(text="hidden", thought=True), at=4.0),
]


def session(events: list[Event]) -> Session:
    return Session(id="s1", events=events, **ANN)


@pytest.mark.anyio
async def test_the_events_of_a_session_are_found_as_they_were_said(memory: aforesaid.SyncMemory) -> None:
    service = AforesaidMemoryService(memory)
    await service.add_session_to_memory(session(TOOL_CONVERSATION))
    found = (await service.search_memory(**ANN, query="sunny weather in Bern")).memories
    for said_with_words in (0, 2, 3):
        assert TOOL_CONVERSATION[said_with_words].content in [each.content for each in found]
    assert {each.author for each in found} <= {"ann", "guide"}


@pytest.mark.anyio
async def test_tool_calls_and_results_are_messages_of_the_session(memory: aforesaid.SyncMemory) -> None:
    await AforesaidMemoryService(memory).add_session_to_memory(session(TOOL_CONVERSATION))
    stored = memory.user("ann", space="app").chat("s1").history(within="thread")
    assert [each.role for each in stored] == ["user", "assistant", "tool", "assistant"]
    assert stored[1].tool_calls[0].arguments == '{"city": "Bern"}'
    assert stored[2].text == '{"in": "Bern", "sky": "sunny"}'
    assert [types.Content.model_validate(each.metadata["google_adk"]) for each in stored] == [
        event.content for event in TOOL_CONVERSATION
    ]


@pytest.mark.anyio
async def test_a_session_that_is_added_again_stores_its_new_events_only(memory: aforesaid.SyncMemory) -> None:
    service = AforesaidMemoryService(memory)
    await service.add_session_to_memory(session(TOOL_CONVERSATION[:2]))
    await service.add_session_to_memory(session(TOOL_CONVERSATION))
    await service.add_events_to_memory(**ANN, events=TOOL_CONVERSATION[2:], session_id="s1")
    assert memory.user("ann", space="app").count() == 4


@pytest.mark.anyio
async def test_users_and_apps_see_nothing_of_one_another(memory: aforesaid.SyncMemory) -> None:
    service = AforesaidMemoryService(memory)
    await service.add_session_to_memory(session(TOOL_CONVERSATION))
    for other in ({"app_name": "app", "user_id": "bob"}, {"app_name": "other", "user_id": "ann"}):
        assert (await service.search_memory(**other, query="weather in Bern")).memories == []


@pytest.mark.anyio
async def test_entries_are_deleted_by_the_id_that_a_search_returns(memory: aforesaid.SyncMemory) -> None:
    service = AforesaidMemoryService(memory)
    await service.add_events_to_memory(**ANN, events=[said("user", types.Part(text="I have a tortoise."))])
    entry = MemoryEntry(content=types.Content(parts=[types.Part(text="The tortoise is called Rex.")]))
    await service.add_memory(**ANN, memories=[entry])
    found = (await service.search_memory(**ANN, query="tortoise")).memories
    assert {(each.id or "").partition(":")[0] for each in found} == {"message", "memory"}
    for each in found:
        await service.delete_memory(**ANN, memory_id=each.id)
    assert (await service.search_memory(**ANN, query="tortoise")).memories == []
    with pytest.raises(NotFound):
        await service.delete_memory(**ANN, memory_id="nothing")


class Scripted(BaseLlm):
    """Loads the memory, and answers with what it found."""

    async def generate_content_async(self, llm_request: LlmRequest, **_: object) -> AsyncIterator[LlmResponse]:
        last = llm_request.contents[-1].parts[-1]
        if last.function_response is None:
            part = types.Part.from_function_call(name="load_memory", args={"query": "tortoise"})
        else:
            part = types.Part(text=str(last.function_response.response))
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


@pytest.mark.anyio
async def test_an_agent_loads_what_was_said_in_another_session() -> None:
    async with aforesaid.connect(":memory:") as opened:
        service = AforesaidMemoryService(opened)
        await service.add_events_to_memory(**ANN, events=[said("user", types.Part(text="My tortoise is Rex."))])
        sessions = InMemorySessionService()
        await sessions.create_session(**ANN, session_id="s2")
        agent = LlmAgent(name="guide", model=Scripted(model="scripted"), tools=[load_memory])
        runner = Runner(agent=agent, app_name="app", session_service=sessions, memory_service=service)
        question = types.Content(role="user", parts=[types.Part(text="What is my tortoise called?")])
        events = [event async for event in runner.run_async(user_id="ann", session_id="s2", new_message=question)]
        assert "My tortoise is Rex." in events[-1].content.parts[0].text
