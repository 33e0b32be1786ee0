"""Kinds, the timeline and the people around a user, over HTTP."""

from __future__ import annotations

import httpx2
import pytest

from aforesaid.domain.memory import MemoryDraft
from aforesaid.domain.scope import Scope
from aforesaid.store.memories import AddMemory
from server.serving import Running

pytestmark = pytest.mark.anyio

NOTED = [
    {"category": "event", "content": "Moved to Berlin", "when": "2020-05-01T10:00:00+00:00"},
    {"category": "event", "content": "Finished school", "when": "2010-06-30T10:00:00+00:00"},
    {"category": "relationship", "content": "My sister Sinéad lives in Cork", "about": "Sinéad"},
    {"category": "instruction", "content": "Always answers in metric units"},
]


async def write_down(client: httpx2.AsyncClient) -> None:
    for each in NOTED:
        made = await client.post("/api/memories", json={"user_name": "ann", **each})
        assert made.status_code == 201, made.text


async def test_memories_have_a_kind_and_can_be_listed_by_it(server: Running) -> None:
    async with server.client(server.key()) as client:
        await write_down(client)
        found = (await client.get("/api/memories", params={"user": "ann", "kind": "relationship"})).json()["memories"]
        assert [(each["kind"], each["category"], each["about"]) for each in found] == [
            ("relationship", "fact", "Sinéad")
        ]
        assert (found[0]["language"], found[0]["confidence"]) == ("english", 1.0)
        assert (found[0]["matter"], found[0]["value"]) == (None, None)
        corrected = await client.put(f"/api/memories/{found[0]['id']}", json={"category": "event", "about": "Carol"})
        assert (corrected.json()["kind"], corrected.json()["about"]) == ("event", "Carol")
        assert (await client.get("/api/memories", params={"kind": "rumour"})).status_code == 422


async def test_a_memory_is_shown_with_its_matter_and_value(server: Running) -> None:
    draft = MemoryDraft(Scope.of("ann"), "fact", "Ann cannot eat hazelnuts", matter="allergy", value="hazelnuts")
    await server.memory.store.apply([AddMemory(draft)])
    async with server.client(server.key()) as client:
        (found,) = (await client.get("/api/memories", params={"user": "ann"})).json()["memories"]
        assert (found["matter"], found["value"]) == ("allergy", "hazelnuts")


async def test_the_timeline_is_read_in_order_and_in_part(server: Running) -> None:
    async with server.client(server.key()) as client:
        await write_down(client)
        events = (await client.get("/api/timeline", params={"user": "ann"})).json()["events"]
        assert [(each["at"]["start"][:10], each["memory"]["content"]) for each in events] == [
            ("2010-06-30", "Finished school"),
            ("2020-05-01", "Moved to Berlin"),
        ]
        for part in ({"since": "2015-01-01T00:00:00Z"}, {"q": "Berlin"}, {"limit": 1}):
            found = (await client.get("/api/timeline", params={"user": "ann", **part})).json()["events"]
            assert [each["memory"]["content"] for each in found] == ["Moved to Berlin"], part


async def test_people_are_read_with_what_is_known_about_them(server: Running) -> None:
    async with server.client(server.key()) as client:
        await write_down(client)
        (sister,) = (await client.get("/api/people", params={"user": "ann", "name": "sister"})).json()["people"]
        assert (sister["name"], sister["relation"], sister["id"]) == ("Sinéad", "sister", None)
        assert [each["content"] for each in sister["memories"]] == ["My sister Sinéad lives in Cork"]
        assert (await client.get("/api/people", params={"user": "bob"})).json() == {"people": []}
