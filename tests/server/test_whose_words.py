"""Only what a person says themself becomes their wish or a fact about them, over every door."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest

import aforesaid
from aforesaid.models.embed import LocalEmbedder
from server.talking import Talk, eventually, talking

DATA = tomllib.loads((Path(__file__).parent / "whose_words.toml").read_text(encoding="utf-8"))
FOREIGN: list[dict[str, Any]] = DATA["foreign"]
OWN: list[dict[str, Any]] = DATA["own"]
NEXT = "What shall I cook today?"
REQUESTS = re.compile(r"<requests>(.*?)</requests>", re.DOTALL)
Turn = tuple[str, str]


class Protocol(NamedTuple):
    """How a chat is sent in one of the protocols of the proxy."""

    path: str
    body: Callable[[list[Any]], dict[str, Any]]
    tool: Callable[[str], list[Any]]
    """The call of a tool and its result."""


def said(role: str, content: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"role": role, "content": content}


def chat_tool(result: str) -> list[Any]:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    return [said("assistant", None) | {"tool_calls": [call]}, said("tool", result) | {"tool_call_id": "c1"}]


def responses_tool(result: str) -> list[Any]:
    call = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
    return [call, {"type": "function_call_output", "call_id": "c1", "output": result}]


def messages_tool(result: str) -> list[Any]:
    call = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
    given = {"type": "tool_result", "tool_use_id": "c1", "content": result}
    return [said("assistant", [call]), said("user", [given])]


def ollama_tool(result: str) -> list[Any]:
    call = {"function": {"name": "look", "arguments": {}}}
    return [said("assistant", "") | {"tool_calls": [call]}, said("tool", result) | {"tool_name": "look"}]


PROTOCOLS = (
    Protocol("/v1/chat/completions", lambda chat: {"messages": chat}, chat_tool),
    Protocol("/v1/responses", lambda chat: {"input": chat}, responses_tool),
    Protocol("/v1/messages", lambda chat: {"messages": chat, "max_tokens": 500}, messages_tool),
    Protocol("/api/chat", lambda chat: {"messages": chat, "stream": False}, ollama_tool),
)


@pytest.fixture(scope="module")
def served() -> Iterator[Talk]:
    with talking(embedder=LocalEmbedder(ranker=False)) as talk:
        yield talk


def post(talk: Talk, protocol: Protocol, chat: list[Any], user: str, thread: str | None, reply: str = "OK.") -> str:
    """Send a chat, have the model answer it, and return all that the model was sent."""
    headers = {"Authorization": f"Bearer {talk.key}", "X-Aforesaid-User": user}
    if protocol.path == "/v1/messages":
        headers["anthropic-version"] = "2023-06-01"
    if thread is not None:
        headers["X-Aforesaid-Thread"] = thread
    talk.model.say(lambda _: reply)
    body = {"model": "m", **protocol.body(chat)}
    answer = httpx2.post(f"{talk.server.address}{protocol.path}", json=body, headers=headers, timeout=120)
    assert answer.status_code == 200, answer.text
    return json.dumps(talk.model.requests[-1].body, ensure_ascii=False)


def play(talk: Talk, protocol: Protocol, turns: Sequence[Turn], user: str) -> None:
    """Have a conversation through the proxy. Other people of the channel are users of their own."""
    channel = any(who not in {"user", "assistant", "tool"} for who, _ in turns)
    thread = f"channel of {user}" if channel else None
    chat: list[Any] = []
    for place, (who, text) in enumerate(turns):
        replies = place + 1 < len(turns) and turns[place + 1][0] == "assistant"
        answer = turns[place + 1][1] if replies else "OK."
        if who == "tool":
            chat += protocol.tool(text)
        elif who == "user":
            chat.append(said("user", text))
        elif who != "assistant":
            post(talk, protocol, [said("user", text)], f"{who} beside {user}", thread, answer)
            continue
        else:
            if turns[place - 1][0] in {"user", "tool"}:
                chat.append(said("assistant", text))
            continue
        if place + 1 == len(turns) or turns[place + 1][0] != "tool":
            post(talk, protocol, chat, user, thread, answer)


def wrong(case: dict[str, Any], requests: Sequence[str], described: Sequence[str]) -> list[str]:
    """Return what stands where it must not: any request at all, and foreign words in what describes the person."""
    found = [f"{case['name']}: request: {text}" for text in requests]
    for text in described:
        found += [f"{case['name']}: {text}" for word in case["foreign"] if word.casefold() in text.casefold()]
    return found


def requests_in(sent: str) -> list[str]:
    return [block for block in REQUESTS.findall(sent) if block.strip("\\n ")]


@pytest.mark.defect("S1", "S2")
@pytest.mark.req("G15")
def test_foreign_words_that_are_added_are_neither_wishes_nor_facts_of_the_person() -> None:
    found: list[str] = []
    with aforesaid.open(":memory:", embedder=LocalEmbedder(ranker=False)) as memory:
        for number, case in enumerate(FOREIGN):
            person = memory.user(f"ann {number}")
            for who, text in case["turns"]:
                if who in {"user", "assistant", "tool"}:
                    person.add(who, text, name="Ann" if who == "user" else None)
                else:
                    person.add("user", text, author=who, name=who.title())
        memory.upkeep()
        for number, case in enumerate(FOREIGN):
            person = memory.user(f"ann {number}")
            context = person.context(NEXT)
            asked = [item.text for item in context.items if item.section == "instructions"]
            texts = [each.text for each in person.memories()]
            found += wrong(case, asked, [*texts, person.portrait() or ""])
    assert found == []


@pytest.mark.req("G13", "G15")
def test_what_a_person_asks_for_themself_arrives_over_every_door(served: Talk) -> None:
    missing: list[str] = []
    with aforesaid.open(":memory:", embedder=LocalEmbedder(ranker=False)) as memory:
        for number, case in enumerate(OWN):
            memory.user(f"ann {number}").add("user", case.get("said", case["wish"]))
        memory.upkeep()
        for number, case in enumerate(OWN):
            items = memory.user(f"ann {number}").context(NEXT).items
            texts = [item.text for item in items if item.section == "instructions"]
            missing += [case["name"]] * (not any(case["wish"] in text for text in texts))
    served.key = served.server.key(space="wishes")
    for number, case in enumerate(OWN):
        play(served, PROTOCOLS[number % len(PROTOCOLS)], [("user", case.get("said", case["wish"]))], f"ann {number}")
    learn(served)
    for number, case in enumerate(OWN):
        sent = post(served, PROTOCOLS[number % len(PROTOCOLS)], [said("user", NEXT)], f"ann {number}", "next")
        asked = [block for block in requests_in(sent) if json.dumps(case["wish"], ensure_ascii=False)[1:-1] in block]
        missing += [f"{case['name']} through the proxy"] * (not asked)
    assert missing == []


def learn(talk: Talk) -> None:
    eventually(lambda: not talk.server.served._finishing)
    talk.server.run(talk.server.served.memory.upkeep())


@pytest.mark.defect("S1", "S2")
@pytest.mark.req("G15")
@pytest.mark.parametrize("share", range(len(PROTOCOLS)))
def test_foreign_words_in_a_chat_through_the_proxy_are_neither_wishes_nor_facts_of_the_person(
    served: Talk, share: int, pytestconfig: pytest.Config
) -> None:
    """Each conversation goes through one protocol; with --torture, through all of them."""
    every = pytestconfig.getoption("--torture")
    cases = [(number, case) for number, case in enumerate(FOREIGN) if every or number % len(PROTOCOLS) == share]
    protocol = PROTOCOLS[share]
    space = f"foreign {share}"
    served.key = served.server.key(space=space)
    for number, case in cases:
        play(served, protocol, case["turns"], f"ann {number}")
    learn(served)
    found: list[str] = []
    for number, case in cases:
        person = served.server.served.memory.user(f"ann {number}", space=space)
        texts = [each.text for each in served.server.run(person.memories())]
        portrait = served.server.run(person.portrait())
        sent = post(served, protocol, [said("user", NEXT)], f"ann {number}", "next")
        found += wrong(case, requests_in(sent), [*texts, portrait or ""])
    assert found == []
