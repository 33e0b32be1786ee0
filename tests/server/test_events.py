"""Streams of events: what they carry, when they end, and what they cost while nothing happens."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from aforesaid.server.auth import Keys
from aforesaid.store.messages import MessagesAfter
from aforesaid.store.operations import Question
from aforesaid.store.people import AuditRows
from aforesaid.store.searches import ChangeToken
from intercepting import Read, intercept
from server.serving import Live, live

pytestmark = pytest.mark.anyio


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Live]:
    with live(tmp_path / "memory.db", keys=tmp_path / "keys.json") as running:
        yield running


@contextmanager
def following(server: Live, key: str, user: str = "ann") -> Iterator[Iterator[dict[str, Any] | None]]:
    """Follow somebody; give each event, and None once the stream has ended."""
    headers = {"Authorization": f"Bearer {key}"}
    address = f"{server.address}/api/events"
    with httpx2.stream("GET", address, params={"user": user}, headers=headers, timeout=30) as answer:
        assert answer.status_code == 200
        lines = answer.iter_lines()
        assert next(lines) == ": following"

        def events() -> Iterator[dict[str, Any] | None]:
            name = ""
            for line in lines:
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    yield {"event": name} | json.loads(line.removeprefix("data: "))
            yield None

        yield events()


@pytest.mark.defect("P6")
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_stream_ends_when_its_key_is_revoked(server: Live, tmp_path: Path, *, elsewhere: bool) -> None:
    key, token = server.served.keys.add("app", "app", space="default")
    with following(server, str.__str__(token)) as events:
        if elsewhere:
            Keys(tmp_path / "keys.json").remove(key.id)
        else:
            admin = {"Authorization": f"Bearer {server.link}"}
            assert httpx2.delete(f"{server.address}/api/keys/{key.id}", headers=admin).status_code == 200
        assert next(events) is None


@pytest.mark.defect("P6")
def test_a_stream_ends_when_its_key_expires(server: Live) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=5)  # time enough to connect on a busy machine
    _, token = server.served.keys.add("app", "app", space="default", expires_at=soon)
    with following(server, str.__str__(token)) as events:
        assert next(events) is None


@pytest.mark.defect("P6")
def test_a_stream_ends_when_its_browser_signs_out(server: Live) -> None:
    with httpx2.Client(base_url=server.address, timeout=30) as browser:
        browser.post("/login", data={"token": server.link})
        page = browser.get("/").text
        csrf = page.split('name="csrf" value="', 1)[1].split('"', 1)[0]
        with browser.stream("GET", "/api/events", params={"user": "ann"}) as answer:
            lines = answer.iter_lines()
            assert next(lines) == ": following"
            assert next(lines).startswith("id: ")
            assert browser.post("/logout", data={"csrf": csrf}).status_code == 303
            assert [line for line in lines if line] == []


@pytest.mark.defect("P6")
@pytest.mark.parametrize("role", ["reader", "app", "admin"])
def test_only_admins_are_told_who_did_something_and_who_looked(server: Live, role: str) -> None:
    with following(server, server.key(role)) as events:
        ann = server.served.memory.user("ann", actor="Tom")
        server.run(ann.history())
        server.run(ann.note("fact", "plays chess"))
        server.run(ann.add("user", "that is all"))
        seen: list[dict[str, Any]] = []
        while not seen or seen[-1]["event"] != "message":
            event = next(events)
            assert event is not None
            seen.append(event)
        changes = [event for event in (*seen, *_until_change(events, seen)) if event["event"] == "change"]
    told = {event["action"] for event in changes}
    assert any(action.startswith("memory.") for action in told - {"memory.read"})
    assert ("messages.read" in told) == (role == "admin")
    assert all(("actor" in event) == (role == "admin") for event in changes)


def _until_change(events: Iterator[dict[str, Any] | None], seen: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Give further events until a memory was changed, if it was not yet."""
    while not any(event["event"] == "change" and not event["action"].endswith(".read") for event in seen):
        event = next(events)
        assert event is not None
        seen.append(event)
        yield event


def test_a_client_that_loses_the_connection_before_the_first_event_misses_nothing(server: Live) -> None:
    ann, headers = server.served.memory.user("ann"), {"Authorization": f"Bearer {server.key()}"}
    address = f"{server.address}/api/events?user=ann"
    server.run(ann.add("user", "before"))
    with httpx2.stream("GET", address, headers=headers, timeout=30) as answer:
        start = next(line for line in answer.iter_lines() if line.startswith("id: "))
    server.run(ann.add("user", "in between"))
    headers["Last-Event-ID"] = start.removeprefix("id: ")
    with httpx2.stream("GET", address, headers=headers, timeout=30) as answer:
        data = next(line for line in answer.iter_lines() if line.startswith("data: "))
    assert json.loads(data.removeprefix("data: "))["text"] == "in between"


def test_what_another_process_stores_is_followed(server: Live, tmp_path: Path) -> None:
    store = str(tmp_path / "memory.db")
    with following(server, server.key("reader")) as events:
        subprocess.run(
            [sys.executable, "-m", "aforesaid", "add", "hello from elsewhere", "--user", "ann", "--store", store],
            check=True,
            capture_output=True,
        )
        event = next(events)
        while event is not None and event["event"] != "message":
            event = next(events)
        assert event is not None
        assert event["text"] == "hello from elsewhere"


@asynccontextmanager
async def _idle_streams(server: Live, count: int) -> AsyncIterator[None]:
    key = server.key("reader")
    limits = httpx2.Limits(max_connections=count + 10)
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, limits=limits, timeout=60) as client:
        followed = asyncio.Semaphore(0)
        over = asyncio.Event()

        async def follow(number: int) -> None:
            query = {"user": f"user {number}"}
            async with client.stream("GET", f"{server.address}/api/events", params=query) as answer:
                assert answer.status_code == 200
                lines = answer.aiter_lines()  # kept: the connection is closed with it
                await anext(lines)
                followed.release()
                await over.wait()

        async with asyncio.TaskGroup() as group:
            for number in range(count):
                group.create_task(follow(number))
            for _ in range(count):
                await followed.acquire()
            yield
            over.set()


@pytest.mark.defect("P6")
async def test_idle_streams_read_nothing_from_the_store(server: Live) -> None:
    store = server.served.memory.store
    read: list[str] = []
    settled, looked = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    async with _idle_streams(server, 300):
        looks = 0

        async def counted(ask: Read, question: Question[Any]) -> object:
            nonlocal looks
            if not isinstance(question, ChangeToken):
                read.append(type(question).__name__)
                return []
            looks += 1
            if looks in (3, 6):
                loop.call_soon_threadsafe((settled if looks == 3 else looked).set)
            return await ask(question)

        intercept(store, Question, counted)
        # What was stored before, such as the audit rows of the streams, may still wake them at the first looks.
        await asyncio.wait_for(settled.wait(), 60)
        read.clear()
        await asyncio.wait_for(looked.wait(), 60)
    assert read == []


def test_a_message_is_sent_before_a_change_that_came_after_it(server: Live) -> None:
    """Messages and changes are two reads, and both can be stored between them."""
    memory, stored = server.served.memory, False

    async def meanwhile(read: Read, question: AuditRows | MessagesAfter) -> Any:  # noqa: ANN401
        nonlocal stored
        found = await read(question)
        if not stored and question.limit > 1:  # one entry is read to know where the stream begins
            stored = True
            await memory.user("ann").add("user", "said in between")
            await memory.user("ann").note("fact", "learned in between")
        return found

    for kind in (AuditRows, MessagesAfter):
        intercept(memory.store, kind, meanwhile)
    with following(server, server.key()) as events:
        found = [next(events), next(events)]
    assert [event and event["event"] for event in found] == ["message", "change"]


def test_a_client_that_comes_back_after_many_changes_gets_all_of_them(server: Live) -> None:
    async def change() -> None:
        for number in range(230):
            await server.served.memory.user("ann").add("user", f"said {number}")
        for number in range(230):
            await server.served.memory.user("ann").note("fact", f"owns {number} stamps")

    server.run(change())
    headers = {"Authorization": f"Bearer {server.key()}", "Last-Event-ID": "0.0"}
    address = f"{server.address}/api/events?user=ann"
    subjects: list[str] = []
    messages = 0
    with httpx2.stream("GET", address, headers=headers, timeout=30) as answer:
        for line in answer.iter_lines():
            if line == "event: message":
                messages += 1
                assert not subjects, "messages come before the changes that came after them"
            if line.startswith("data: ") and (found := json.loads(line[6:])).get("action") == "memory.add":
                subjects.append(found["subject"])
                if found["subject"] == "memory 230":
                    break
    assert (messages, subjects) == (230, [f"memory {number}" for number in range(1, 231)])
