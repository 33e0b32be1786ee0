"""Tools that a model uses to answer are stored with the answer, and take no room in contexts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from aforesaid.testing import Request, Writes
from server.talking import Talk, ask

STEP = {"id": "call-7", "name": "weather", "arguments": '{"city": "Berlin"}', "result": "21 degrees, zephyr"}
ARGUMENTS: dict[str, str] = {"city": "Berlin"}
QUESTION = "How warm is it?"


def post(talk: Talk, path: str, body: dict[str, Any]) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {talk.key}", "X-Aforesaid-User": "ann"}
    if path == "/v1/messages":
        headers["anthropic-version"] = "2023-06-01"
    address = f"{talk.server.address}{path}"
    answer = httpx2.post(address, json={"model": "m", **body}, headers=headers, timeout=120)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def chat_completions(talk: Talk) -> None:
    function = {"name": "weather", "arguments": STEP["arguments"]}
    calls = [{"id": STEP["id"], "type": "function", "function": function}]
    called = {"role": "assistant", "content": None, "tool_calls": calls}
    result = {"role": "tool", "tool_call_id": STEP["id"], "content": STEP["result"]}
    post(talk, "/v1/chat/completions", {"messages": [{"role": "user", "content": QUESTION}, called, result]})


def responses(talk: Talk) -> None:
    called = {"type": "function_call", "call_id": STEP["id"], "name": "weather", "arguments": STEP["arguments"]}
    result = {"type": "function_call_output", "call_id": STEP["id"], "output": STEP["result"]}
    post(talk, "/v1/responses", {"input": [{"role": "user", "content": QUESTION}, called, result]})


def messages(talk: Talk) -> None:
    called = {"type": "tool_use", "id": STEP["id"], "name": "weather", "input": ARGUMENTS}
    result = {"type": "tool_result", "tool_use_id": STEP["id"], "content": STEP["result"]}
    said = [
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": [called]},
        {"role": "user", "content": [result]},
    ]
    post(talk, "/v1/messages", {"messages": said, "max_tokens": 100})


def ollama(talk: Talk) -> None:
    called = {"role": "assistant", "tool_calls": [{"function": {"name": "weather", "arguments": ARGUMENTS}}]}
    result = {"role": "tool", "tool_name": "weather", "content": STEP["result"]}
    said = [{"role": "user", "content": QUESTION}, called, result]
    post(talk, "/api/chat", {"messages": said, "stream": False})


def tools_of_last(talk: Talk, request: pytest.FixtureRequest) -> object:
    return talk.stored("ann", request.node.name[:200])[-1].metadata.get("tools")


@pytest.mark.parametrize("use", [chat_completions, responses, messages, ollama])
def test_the_tools_that_were_used_are_stored_with_the_answer(
    talk: Talk, request: pytest.FixtureRequest, use: Callable[[Talk], None]
) -> None:
    talk.model.say(lambda _: "It is 21 degrees.")
    use(talk)
    stored = talk.stored("ann", request.node.name[:200])
    assert [each.text for each in stored] == [QUESTION, "It is 21 degrees."]
    expected = STEP | ({"id": "call-1"} if use is ollama else {})
    assert stored[-1].metadata["tools"] == [expected]
    with talk.client() as client:
        ask(client, "What was the weather like?")
    assert "zephyr" not in json.dumps(talk.last), "results of tools do not fill contexts"


def test_steps_that_only_the_provider_has_are_stored_too(talk: Talk, request: pytest.FixtureRequest) -> None:
    def script(asked: Request) -> Any:  # noqa: ANN401
        if asked.body["input"] == QUESTION:
            return Writes("", tools={"weather": {"city": "Berlin"}})
        sent = asked.body["input"][0]["output"]
        return Writes("", tools={"clock": {}}) if sent == "21" else "It is 21 degrees at noon."

    talk.model.say(script)
    reply = post(talk, "/v1/responses", {"input": QUESTION})
    for result in ("21", "noon"):
        call = next(item for item in reply["output"] if item["type"] == "function_call")
        output = {"type": "function_call_output", "call_id": call["call_id"], "output": result}
        reply = post(talk, "/v1/responses", {"input": [output], "previous_response_id": reply["id"]})
    steps = tools_of_last(talk, request)
    assert isinstance(steps, list)
    assert [(step["name"], step["result"]) for step in steps] == [("weather", "21"), ("clock", "noon")]


def test_the_next_answer_has_only_its_own_tools(talk: Talk, request: pytest.FixtureRequest) -> None:
    talk.model.say(lambda _: "Yes.")
    function = {"name": "weather", "arguments": "{}"}
    said = [
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "1", "content": "21"},
        {"role": "assistant", "content": "It is 21 degrees."},
        {"role": "user", "content": "Is that warm?"},
    ]
    post(talk, "/v1/chat/completions", {"messages": said})
    assert tools_of_last(talk, request) is None


@pytest.mark.parametrize(
    "odd",
    [
        {"role": "assistant", "tool_calls": "none"},
        {"role": "assistant", "tool_calls": [None, {}, {"function": None}, {"id": 5, "function": {"name": 7}}]},
        {"role": "tool", "content": None},
        {"role": "tool", "tool_call_id": "x" * 5_000, "content": "a\0b" * 50_000},
    ],
    ids=["no list", "no calls", "no content", "too long"],
)
def test_odd_calls_and_results_stop_no_question_from_being_stored(
    talk: Talk, request: pytest.FixtureRequest, odd: dict[str, Any]
) -> None:
    talk.model.say(lambda _: "Yes.")
    post(talk, "/v1/chat/completions", {"messages": [{"role": "user", "content": QUESTION}, odd]})
    assert [each.text for each in talk.stored("ann", request.node.name[:200])] == [QUESTION, "Yes."]
