"""The filter for Open WebUI, which a person pastes in, against a real server."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from server.serving import Live, live

pytestmark = pytest.mark.anyio

FILTER = Path(__file__).parent.parent.parent / "examples" / "open_webui" / "memory_filter.py"
ANN = {"id": "u-1", "name": "Ann", "role": "user"}


@pytest.fixture(scope="module")
def server() -> Iterator[Live]:
    with live() as running:
        yield running


def made(server: Live, key: str | None = None) -> Any:  # noqa: ANN401 - the class is in a file that is pasted in
    found = runpy.run_path(str(FILTER))["Filter"]()
    found.valves = found.Valves(address=server.address, key=server.key() if key is None else key)
    return found


def chat(*messages: str) -> dict[str, Any]:
    roles = ("user", "assistant")
    return {"messages": [{"role": roles[place % 2], "content": text} for place, text in enumerate(messages)]}


async def texts(server: Live, user: str) -> list[str]:
    return [each.text for each in server.run(server.served.memory.user(user).history())]


async def test_a_later_chat_knows_what_an_earlier_one_said(server: Live) -> None:
    memory = made(server)
    first, second = {"chat_id": "c-1"}, {"chat_id": "c-2"}
    await memory.inlet(chat("My parrot is called Rio."), ANN, first)
    await memory.outlet(chat("My parrot is called Rio.", "What a name!"), ANN, first)
    asked = await memory.inlet(chat("What is my parrot called?"), ANN, second)
    assert [each["role"] for each in asked["messages"]] == ["system", "user"]
    assert "Rio" in asked["messages"][0]["content"]
    assert await texts(server, "u-1") == ["My parrot is called Rio.", "What a name!", "What is my parrot called?"]
    bob = await memory.inlet(chat("What is my parrot called?"), {"id": "u-2", "name": "Bob"}, {"chat_id": "c-3"})
    assert "Rio" not in str(bob)


async def test_a_regenerated_answer_stores_the_question_once(server: Live) -> None:
    memory, ann = made(server), ANN | {"id": "u-3"}
    for answer in ("one", "two"):
        await memory.inlet(chat("Tell me a number"), ann, {"chat_id": "c"})
        await memory.outlet(chat("Tell me a number", answer), ann, {"chat_id": "c"})
    assert await texts(server, "u-3") == ["Tell me a number", "one", "two"]


@pytest.mark.parametrize(
    "metadata",
    [{"chat_id": "local"}, {"chat_id": "local:1"}, {"chat_id": "temporary:1"}, {"task": "title_generation"}],
)
async def test_temporary_chats_and_tasks_are_left_alone(server: Live, metadata: dict[str, Any]) -> None:
    memory, ann = made(server), ANN | {"id": "u-4"}
    body = chat("hello")
    assert await memory.inlet(body, ann, metadata) == body
    assert await texts(server, "u-4") == []


async def test_a_chat_goes_on_when_the_memory_does_not_answer(server: Live) -> None:
    shown: list[dict[str, Any]] = []

    async def emit(event: dict[str, Any]) -> None:
        shown.append(event)

    body = chat("hello")
    assert await made(server, key="ak_wrong").inlet(body, ANN, {"chat_id": "c"}, emit) == body
    assert "Without memory" in shown[0]["data"]["description"]
