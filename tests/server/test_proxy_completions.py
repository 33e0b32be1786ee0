"""OpenAI's legacy Completions with the official client, through the proxy to a scripted model."""

from __future__ import annotations

from typing import Any

import httpx2
import openai
import pytest

from aforesaid.testing import Writes, faults
from server.talking import Talk, eventually, log_of


@pytest.fixture(autouse=True)
def _repeat_the_question(talk: Talk) -> None:
    talk.model.say(lambda asked: f"You said: {asked.question}")


def complete(talk: Talk, prompt: Any, **more: Any) -> Any:  # noqa: ANN401
    with talk.client() as client:
        return client.completions.create(model="m", prompt=prompt, user="ann", **more)


@pytest.mark.client("Completions", "openai (Python)", "memory", "usage")
def test_a_prompt_is_stored_and_the_next_one_knows_it(talk: Talk, request: pytest.FixtureRequest) -> None:
    reply = complete(talk, "My dog is called Bella.")
    assert reply.choices[0].text == "You said: My dog is called Bella."
    assert reply.usage.total_tokens > 0
    complete(talk, ["What is my dog called?"])
    sent = talk.model.requests[-1]
    assert sent.path == "/v1/completions"
    assert "Bella" in sent.body["prompt"]
    assert sent.body["prompt"].endswith("\n\nWhat is my dog called?")
    assert log_of(talk, request)[:2] == [
        "user: My dog is called Bella.",
        "assistant: You said: My dog is called Bella.",
    ]


@pytest.mark.client("Completions", "openai (Python)", "streaming")
def test_a_stream_comes_back_and_is_stored(talk: Talk, request: pytest.FixtureRequest) -> None:
    talk.model.say(lambda _: "The cat sat on the mat. 🐈")
    with talk.client() as client:
        stream = client.completions.create(model="m", prompt="Tell me.", user="ann", stream=True)
        pieces = [chunk.choices[0].text for chunk in stream]
    assert "".join(pieces) == "The cat sat on the mat. 🐈"
    assert len(pieces) > 5
    assert log_of(talk, request) == ["user: Tell me.", "assistant: The cat sat on the mat. 🐈"]


@pytest.mark.client("Completions", "openai (Python)", "hang-up")
def test_a_client_that_hangs_up_has_heard_what_it_heard(talk: Talk, request: pytest.FixtureRequest) -> None:
    talk.model.fail(faults.Stalls(after=2))
    with talk.client() as client:
        stream = client.completions.create(model="m", prompt="Tell me a story.", user="ann", stream=True)
        next(iter(stream))
        stream.close()
    eventually(lambda: len(log_of(talk, request)) == 2)
    assert talk.stored(space=request.node.name[:200])[1].metadata["partial"] is True


@pytest.mark.client("Completions", "openai (Python)", "versions")
def test_several_choices_are_versions_of_one_turn(talk: Talk, request: pytest.FixtureRequest) -> None:
    talk.model.say(lambda _: Writes("Heads.", more=("Tails.",)))
    assert len(complete(talk, "Toss a coin.", n=2).choices) == 2
    assert log_of(talk, request) == ["user: Toss a coin.", "assistant: Heads."]
    assert "assistant: Tails." in talk.versions(request)


@pytest.mark.parametrize(
    "more",
    [
        {"suffix": "return c"},
        {"suffix": ""},
        {"echo": True},
        {"prompt": [1, 2, 3]},
        {"prompt": ["one", "two"]},
        {"prompt": ""},
        {"prompt": "<|fim_prefix|>def add(<|fim_suffix|>)<|fim_middle|>"},
        {"prompt": "<fim_prefix>def add(<fim_suffix>)<fim_middle>"},
        {"prompt": "<PRE> def add( <SUF>) <MID>"},
        {"prompt": "[SUFFIX])[PREFIX]def add("},
    ],
)
def test_what_is_no_question_has_no_memory(talk: Talk, request: pytest.FixtureRequest, more: dict[str, Any]) -> None:
    body = {"prompt": "def add("} | more
    complete(talk, **body)
    assert talk.model.requests[-1].body["prompt"] == body["prompt"]
    assert log_of(talk, request) == []


@pytest.mark.client("Completions", "openai (Python)", "provider's errors", "own errors")
def test_errors_come_as_they_are_or_in_the_form_of_the_protocol(talk: Talk) -> None:
    talk.model.fail(faults.TooManyRequests(7))
    with pytest.raises(openai.RateLimitError, match="Rate limit reached"):
        complete(talk, "hi")
    headers = {"Authorization": f"Bearer {talk.key}"}
    answer = httpx2.post(f"{talk.server.address}/v1/completions", content=b"{", headers=headers)
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, "The request is no JSON.")
