"""Receipts of the proxy, in every protocol: what was sent, what it led to, and the tokens that the provider counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx2
import pytest

from aforesaid.domain.context_receipt import ContextReceipt
from aforesaid.memory import UserMemory
from aforesaid.models.tokens import count_tokens
from aforesaid.testing.faults import ServerError, TooManyRequests
from server.talking import Talk, eventually

HEADER = "x-aforesaid-receipt"
FACT = "My dog is called Bella."
QUESTION = "What is my dog called?"


def chat(text: str) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}]}


PROTOCOLS: Mapping[str, Any] = {
    "/v1/chat/completions": lambda text: {**chat(text), "user": "ann", "stream_options": {"include_usage": True}},
    "/v1/responses": lambda text: {"model": "m", "input": text, "user": "ann"},
    "/v1/completions": lambda text: {
        "model": "m",
        "prompt": text,
        "user": "ann",
        "stream_options": {"include_usage": True},
    },
    "/v1/messages": lambda text: {**chat(text), "max_tokens": 500, "metadata": {"user_id": "ann"}},
    "/api/chat": chat,
    "/api/generate": lambda text: {"model": "m", "prompt": text},
}


def person(talk: Talk, request: pytest.FixtureRequest, user: str = "ann") -> UserMemory:
    return talk.server.served.memory.user(user, space=request.node.name[:200])


def post(talk: Talk, path: str, text: str, *, stream: bool = False) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {talk.key}", "X-Aforesaid-User": "ann"}
    if path == "/v1/messages":
        headers["anthropic-version"] = "2023-06-01"
    body = {**PROTOCOLS[path](text), "stream": stream}
    return httpx2.post(f"{talk.server.address}{path}", json=body, headers=headers, timeout=60)


def receipt_of(talk: Talk, request: pytest.FixtureRequest, answer: httpx2.Response) -> ContextReceipt:
    eventually(lambda: not talk.server.served._finishing)
    return talk.server.run(person(talk, request).receipt(answer.headers[HEADER]))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", list(PROTOCOLS))
def test_a_reply_has_a_receipt_of_what_the_model_was_told(
    talk: Talk,
    request: pytest.FixtureRequest,
    path: str,
    stream: bool,  # noqa: FBT001
) -> None:
    talk.model.say(lambda asked: f"You said: {asked.question}")
    post(talk, "/v1/chat/completions", FACT)
    answer = post(talk, path, QUESTION, stream=stream)
    assert answer.status_code == 200, answer.text
    receipt = receipt_of(talk, request, answer)
    ann = person(talk, request)
    sources = talk.server.run(ann.receipt_sources(receipt))
    assert FACT in {source.text for source in sources.values()}
    (reply,) = [each for each in talk.server.run(ann.history()) if each.seq == receipt.reply]
    assert reply.role == "assistant"
    assert QUESTION in reply.text
    assert talk.server.run(ann.receipts(replies=[reply])) == [receipt]
    assert receipt.model == "m"
    assert receipt.input_tokens
    assert receipt.output_tokens
    assert set(receipt.milliseconds) == {"context", "first_byte", "reply"}
    assert receipt.caller.endswith("test app")
    *added, own = receipt.sections
    assert own.name == "request"
    assert receipt.tokens == sum(section.tokens for section in receipt.sections)
    assert sum(section.tokens for section in added) == int(answer.headers["x-aforesaid-tokens"]) <= receipt.budget


@pytest.mark.defect("S6")
@pytest.mark.parametrize("path", list(PROTOCOLS))
def test_a_receipt_counts_what_was_added_as_it_was_sent(talk: Talk, request: pytest.FixtureRequest, path: str) -> None:
    talk.model.say(lambda asked: f"You said: {asked.question}")
    ann = person(talk, request)
    for number in range(30):
        talk.server.run(ann.add("user", f"Bella, my dog, ate sausage number {number} in the kitchen."))
    talk.server.run(ann.remember("I live in Lisbon."))
    talk.server.run(ann.note("instruction", "Ann wants short answers.", importance=9))
    asked = len(talk.model.requests)
    answer = post(talk, path, QUESTION)
    (sent,) = talk.model.requests[asked:]
    receipt = receipt_of(talk, request, answer)
    *added, own = receipt.sections
    header = int(answer.headers["x-aforesaid-tokens"])
    with_headings = [section for section in added if section.name in {"instructions", "snippets", "recent"}]
    assert len(with_headings) > 1
    assert sum(section.tokens for section in added) == header == receipt.tokens - own.tokens
    for section in with_headings:
        assert section.tokens > sum(item.tokens for item in section.items), "with its heading"
    whole = count_tokens(text_sent(sent.body), "m") - count_tokens(QUESTION, "m")
    assert header == pytest.approx(whole, abs=6), "two line breaks stand between it and the question"


def text_sent(body: Mapping[str, Any]) -> str:
    """Return all texts that a provider was sent."""
    found: list[str] = []

    def collect(value: object, name: str = "") -> None:
        if isinstance(value, Mapping):
            for key, each in value.items():
                collect(each, key)
        elif isinstance(value, list):
            for each in value:
                collect(each, name)
        elif isinstance(value, str) and name in {"content", "text", "system", "prompt", "input", "instructions"}:
            found.append(value)

    collect(body)
    return "\n".join(found)


@pytest.mark.defect("S6")
def test_a_request_that_was_sent_without_memory_has_no_tokens_of_it(talk: Talk, request: pytest.FixtureRequest) -> None:
    post(talk, "/v1/chat/completions", FACT)
    talk.model.fail(ServerError(400, "context_length_exceeded"), times=1)
    answer = post(talk, "/v1/chat/completions", QUESTION)
    assert answer.status_code == 200
    assert answer.headers["x-aforesaid-tokens"] == "0"
    assert [section.name for section in receipt_of(talk, request, answer).sections] == ["request"]


def test_a_request_that_the_provider_refuses_has_a_receipt_without_a_reply(
    talk: Talk, request: pytest.FixtureRequest
) -> None:
    post(talk, "/v1/chat/completions", FACT)
    talk.model.fail(TooManyRequests())
    answer = post(talk, "/v1/chat/completions", QUESTION)
    assert answer.status_code == 429
    receipt = receipt_of(talk, request, answer)
    assert (receipt.reply, receipt.input_tokens) == (None, None)
    assert receipt.ids("message")


def test_the_receipt_of_one_person_is_not_found_by_another(talk: Talk, request: pytest.FixtureRequest) -> None:
    receipt = receipt_of(talk, request, post(talk, "/v1/chat/completions", FACT))

    def read(key: str, user: str) -> int:
        headers = {"Authorization": f"Bearer {key}"}
        address = f"{talk.server.address}/api/receipts/{receipt.id}"
        return httpx2.get(address, params={"user": user}, headers=headers).status_code

    assert read(talk.key, "ann") == 200
    assert read(talk.key, "bob") == 404
    assert read(talk.server.key(space="elsewhere"), "ann") == 404
    assert read(talk.server.key(space=request.node.name[:200], user="bob"), "bob") == 404


def test_without_memory_there_is_no_receipt(talk: Talk) -> None:
    headers = {"Authorization": f"Bearer {talk.key}", "X-Aforesaid-Memory": "off"}
    answer = httpx2.post(f"{talk.server.address}/v1/chat/completions", json=chat(FACT), headers=headers)
    assert answer.status_code == 200
    assert HEADER not in answer.headers
