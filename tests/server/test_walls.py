"""Nobody reaches what is not theirs: every route, with the ids of others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from server.belongings import fill_with_everything, state_of
from server.serving import Running

pytestmark = pytest.mark.anyio

SECRET = "zanzibar"  # noqa: S105 - a word that only one person ever said
UNKNOWN = 987_654_321
ENDLESS = {"/api/events"}


def operations(schema: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    # Those with a number first: what others make has numbers of its own.
    for path, methods in sorted(schema["paths"].items(), key=lambda each: "{number}" not in each[0]):
        if path.startswith("/api/") and path not in ENDLESS:
            for method, operation in methods.items():
                yield method.upper(), path, operation


def example(schema: dict[str, Any], shape: dict[str, Any], user: str) -> Any:  # noqa: ANN401
    """Make the smallest value of a shape; whoever it names is `user`."""
    if "$ref" in shape:
        return example(schema, schema["components"]["schemas"][shape["$ref"].rpartition("/")[2]], user)
    if "anyOf" in shape:
        return example(schema, shape["anyOf"][0], user)
    if "enum" in shape:
        return shape["enum"][0]
    if shape.get("type") == "object":
        if "properties" not in shape:
            return {"summary_every_n": 5}
        made = {}
        for name, inner in shape["properties"].items():
            if name in {"user", "user_name"}:
                made[name] = user
            elif name in shape.get("required", ()):
                made[name] = example(schema, inner, user)
        return made
    if shape.get("examples"):
        return shape["examples"][0]
    return {"string": "text", "integer": 1, "number": 1.0, "boolean": True, "array": []}.get(shape.get("type", ""))


async def call(
    client: httpx2.AsyncClient, method: str, path: str, operation: dict[str, Any], body: object, query: dict[str, str]
) -> httpx2.Response:
    required = [each for each in operation.get("parameters", ()) if each["in"] == "query" and each.get("required")]
    filled = {each["name"]: SECRET for each in required}
    names = {each["name"] for each in operation.get("parameters", ())}
    sent = {name: value for name, value in query.items() if name in names}
    return await client.request(method, path, params=filled | sent, json=body)


async def test_no_route_reaches_over_a_wall(server: Running) -> None:
    theirs = server.memory.user("bob", space="theirs")
    numbers = await fill_with_everything(theirs, SECRET)
    await server.memory.user("ann", space="theirs").add("user", "hello from Ann")
    before = await state_of(theirs)
    schema = server.app.openapi()
    walls = {
        "another space": (server.key("admin", space="mine"), {"user": "bob"}),
        "another space, named": (server.key("admin", space="mine"), {"user": "bob", "space": "theirs"}),
        "another user": (server.key("admin", space="theirs", user="ann"), {"user": "bob", "space": "theirs"}),
    }
    asked = 0
    for wall, (token, query) in walls.items():
        async with server.client(token) as client:
            for method, path, operation in operations(schema):
                body = None
                if "application/json" in operation.get("requestBody", {}).get("content", {}):
                    shape = operation["requestBody"]["content"]["application/json"]["schema"]
                    body = example(schema, shape, "bob")
                answers = []
                foreign = numbers.get(path.split("/")[2], 1)
                for number in (foreign, UNKNOWN):
                    filled = (
                        path.replace("{number}", str(number)).replace("{key_id}", "0a1b2c3d").replace("{user}", "bob")
                    )
                    answers.append(await call(client, method, filled, operation, body, query))
                for answer in answers:
                    asked += 1
                    where = f"{wall}: {method} {path}: {answer.status_code} {answer.text}"
                    assert answer.status_code < 500, where
                    if "remember" not in path and "memories" not in path:
                        assert SECRET not in re.sub(rf"\b(q|query|{SECRET}')\b", "", answer.text), where
                    assert f"go to {SECRET}" not in answer.text, where
                    assert f"in {SECRET} with" not in answer.text, where
                if "{number}" in path and answers[0].status_code != 403:
                    told = answers[0].text.replace(str(foreign), "N"), answers[1].text.replace(str(UNKNOWN), "N")
                    assert answers[0].status_code == answers[1].status_code == 404, f"{wall}: {method} {path}"
                    assert told[0] == told[1], "an id of another looks exactly like none"
                if wall == "another space, named":
                    assert {answer.status_code for answer in answers} <= {403, 404, 422}, f"{method} {path}"
    assert asked >= 100
    assert await state_of(theirs) == before


async def test_a_key_for_one_user_sees_that_user_alone(server: Running) -> None:
    await fill_with_everything(server.memory.user("bob"), SECRET)
    await server.memory.user("bob", thread="general").add("user", f"{SECRET} in the channel")
    await server.memory.user("ann").note("fact", "plays chess")
    async with server.client(server.key("app", user="ann")) as client:
        assert [user["id"] for user in (await client.get("/api/users")).json()["users"]] == ["ann"]
        assert [each["user_name"] for each in (await client.get("/api/memories")).json()["memories"]] == ["ann"]
        assert (await client.get("/api/portrait")).json()["user"] == "ann"
        assert (await client.get("/api/portrait", params={"user": "bob"})).status_code == 404
        for within in ("thread", "user"):
            answer = await client.get("/api/messages", params={"thread": "general", "within": within})
            assert SECRET not in answer.text
        context = await client.post("/api/context", json={"text": SECRET, "thread": "general"})
        assert "in the channel" not in context.text
        assert (await client.get("/api/stats")).json()["users"] == 1


async def test_a_key_for_all_spaces_says_which(server: Running) -> None:
    await server.memory.user("ann", space="north").note("fact", "Sails")
    async with server.client(server.key("reader", space=None)) as client:
        assert (await client.get("/api/memories")).json()["memories"] == []
        assert len((await client.get("/api/memories", params={"space": "north"})).json()["memories"]) == 1


@pytest.mark.defect("B5")
@pytest.mark.req("G4")
async def test_users_without_a_space_are_those_of_every_space_that_the_key_may_read(server: Running) -> None:
    for user, space, name in (("8", "north", "Ann"), ("7", "south", "Tom"), ("9", "north", "Kim"), ("7", "north", "T")):
        await server.memory.user(user, space=space).add("user", "hello", name=name)
    every = [("north", "7", "T"), ("north", "8", "Ann"), ("north", "9", "Kim"), ("south", "7", "Tom")]

    async def listed(token: str, limit: int = 500, **query: str) -> list[tuple[str, str, str]]:
        found: list[tuple[str, str, str]] = []
        more: dict[str, str] = {}
        async with server.client(token) as client:
            while True:
                page = (await client.get("/api/users", params={"limit": str(limit), **query, **more})).json()
                found += [(user["space"], user["id"], user["name"]) for user in page["users"]]
                if page["next"] is None:
                    return found
                more = {"cursor": page["next"]}

    whole = server.key("reader", space=None)
    assert await listed(whole) == every
    assert await listed(whole, 1) == every, "page by page"
    assert await listed(whole, space="south") == every[3:]
    assert await listed(server.key("reader", space="north")) == every[:3]
    assert await listed(server.key("reader", space="north", user="8")) == [("north", "8", "Ann")]
    async with server.client(whole) as client:
        assert (await client.get("/api/users", params={"cursor": "YW5u"})).status_code == 422, "no cursor of ours"


@pytest.mark.defect("B5")
@pytest.mark.req("G4")
async def test_memories_sessions_and_the_audit_log_carry_display_names(server: Running) -> None:
    ann = server.memory.user("8812", space="north", actor="tester")
    await ann.add("user", "hello", name="Ann")
    note = await ann.note("fact", "Sails")
    place = {"space": "north"}
    async with server.client(server.key("admin", space=None)) as client:
        for path, key in (("/api/memories", "memories"), ("/api/sessions", "sessions"), ("/api/audit", "entries")):
            answer = (await client.get(path, params=place | {"user": "8812"})).json()
            assert {each["name"] for each in answer[key]} == {"Ann"}, path
        assert (await client.get(f"/api/memories/{note.id}", params=place)).json()["name"] == "Ann"


@pytest.mark.defect("P11")
async def test_a_key_for_somebody_reaches_them_in_every_spelling_of_their_name(server: Running) -> None:
    composed, decomposed = "Zo\u00eb", "Zoe\u0308"
    await server.memory.user(composed).note("fact", "Plays the viola")
    async with server.client(server.key("app", user=decomposed)) as client:
        assert [user["id"] for user in (await client.get("/api/users")).json()["users"]] == [composed]
        for spelling in (composed, decomposed, f" {composed}"):
            answer = await client.get("/api/memories", params={"user": spelling})
            assert [each["user_name"] for each in answer.json()["memories"]] == [composed]
            stored = await client.post("/api/messages", json={"user": spelling, "role": "user", "text": "hello"})
            assert stored.json()["message"]["user"] == composed
