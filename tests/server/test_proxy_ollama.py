"""Ollama's API with the official client, through the proxy to a scripted model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

from aforesaid.testing import Request, Writes, faults
from server.talking import Talk, eventually, log_of

ollama = pytest.importorskip("ollama", reason="the official client for Ollama is not installed")

WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
PNG = "iVBORw0KGgo="


@pytest.fixture(autouse=True)
def _repeat_the_question(talk: Talk) -> None:
    talk.model.say(lambda asked: f"You said: {asked.question}")


@contextmanager
def connected(talk: Talk, key: str | None = None, user: str = "ann") -> Iterator[Any]:
    headers = {"Authorization": f"Bearer {key or talk.key}", "X-Aforesaid-User": user}
    with ollama.Client(host=talk.server.address, headers=headers) as client:
        yield client


def message(role: str, text: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"role": role, "content": text, **more}


def say(client: Any, *said: Any, **more: Any) -> Any:  # noqa: ANN401
    messages = [message("user", each) if isinstance(each, str) else each for each in said]
    return client.chat(model="llama3.2:1b", messages=messages, **more)


def sent(talk: Talk) -> Any:  # noqa: ANN401
    return talk.model.requests[-1].body


@pytest.mark.client("Ollama", "ollama (Python)", "memory", "usage")
def test_a_chat_is_stored_and_the_next_one_knows_it(talk: Talk, request: pytest.FixtureRequest) -> None:
    with connected(talk) as client:
        reply = say(client, "My dog is called Bella.")
        assert reply.message.content == "You said: My dog is called Bella."
        assert reply.eval_count > 0
        say(client, "What is my dog called?")
        assert talk.model.requests[-1].path == "/api/chat"
        (question,) = sent(talk)["messages"]
        assert "Bella" in question["content"], "a system message would replace the model's own system prompt"
        assert question["content"].endswith("\n\nWhat is my dog called?")
        say(client, message("system", "Be brief."), "What is my dog called?")
        *system, question = sent(talk)["messages"]
        assert {each["role"] for each in system} == {"system"}
        assert system[0]["content"].startswith("Be brief.")
        assert question["content"] == "What is my dog called?"
    assert talk.model.requests[-1].headers["authorization"] == "Bearer upstream-key-of-the-provider"
    assert log_of(talk, request)[:3] == [
        "user: My dog is called Bella.",
        "assistant: You said: My dog is called Bella.",
        "user: What is my dog called?",
    ]


@pytest.mark.client("Ollama", "ollama (Python)", "streaming", "usage")
def test_a_stream_comes_back_line_by_line_and_is_stored(talk: Talk, request: pytest.FixtureRequest) -> None:
    talk.model.say(lambda _: "The cat sat on the mat. 🐈")
    with connected(talk) as client:
        parts = list(say(client, "Tell me.", stream=True))
    assert "".join(part.message.content for part in parts) == "The cat sat on the mat. 🐈"
    assert len(parts) > 5, "it came in pieces"
    assert parts[-1].done
    assert parts[-1].eval_count > 0
    assert log_of(talk, request) == ["user: Tell me.", "assistant: The cat sat on the mat. 🐈"]


def test_without_a_word_about_it_a_reply_is_streamed(talk: Talk, request: pytest.FixtureRequest) -> None:
    headers = {"Authorization": f"Bearer {talk.key}", "X-Aforesaid-User": "ann"}
    body = {"model": "m", "messages": [message("user", "Hello.")]}
    answer = httpx2.post(f"{talk.server.address}/api/chat", json=body, headers=headers)
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert json.loads(answer.content.splitlines()[-1])["done"] is True
    assert log_of(talk, request) == ["user: Hello.", "assistant: You said: Hello."]


@pytest.mark.client("Ollama", "ollama (Python)", "hang-up")
def test_a_client_that_hangs_up_has_heard_what_it_heard(talk: Talk, request: pytest.FixtureRequest) -> None:
    talk.model.fail(faults.Stalls(after=2))
    with connected(talk) as client:
        next(iter(say(client, "Tell me a story.", stream=True)))
    eventually(lambda: len(log_of(talk, request)) == 2)
    answer = talk.stored(space=request.node.name[:200])[1]
    assert answer.text.startswith("Struck")
    assert answer.metadata["partial"] is True


@pytest.mark.client("Ollama", "ollama (Python)", "tools")
def test_calls_of_tools_and_their_results_pass_through(talk: Talk, request: pytest.FixtureRequest) -> None:
    def script(asked: Request) -> Any:  # noqa: ANN401
        last = asked.messages[-1]["role"]
        return "It is 21 degrees." if last == "tool" else Writes("", tools={"weather": {"city": "Berlin"}})

    talk.model.say(script)
    with connected(talk) as client:
        first = say(client, "How warm is it?", tools=[WEATHER])
        assert first.message.tool_calls[0].function.arguments == {"city": "Berlin"}
        called = first.message.model_dump(exclude_none=True)
        result = message("tool", "21", tool_name="weather")
        second = say(client, "How warm is it?", called, result, tools=[WEATHER], stream=True)
        assert "".join(part.message.content for part in second) == "It is 21 degrees."
    assert sent(talk)["messages"][1]["tool_calls"] == called["tool_calls"]
    assert sent(talk)["messages"][2] == result
    assert log_of(talk, request) == ["user: How warm is it?", "assistant: It is 21 degrees."]


@pytest.mark.client("Ollama", "ollama (Python)", "images")
def test_images_are_passed_on_and_leave_a_word(talk: Talk, request: pytest.FixtureRequest) -> None:
    with connected(talk) as client:
        say(client, message("user", "Which bird?", images=[PNG]))
        assert sent(talk)["messages"][-1]["images"] == [PNG]
        client.generate(model="m", prompt="And this?", images=[PNG, PNG])
        assert sent(talk)["images"] == [PNG, PNG]
    assert log_of(talk, request)[::2] == ["user: Which bird?\n[image]", "user: And this?\n[image]\n[image]"]


@pytest.mark.client("Ollama", "ollama (Python)", "memory", "streaming", "stored history")
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_completions_have_a_memory_too(talk: Talk, request: pytest.FixtureRequest, stream: bool) -> None:  # noqa: FBT001
    def generate(client: Any, prompt: str, **more: Any) -> Any:  # noqa: ANN401
        made = client.generate(model="m", prompt=prompt, stream=stream, **more)
        if not stream:
            return made.response, made.context
        parts = list(made)
        return "".join(part.response for part in parts), parts[-1].context

    with connected(talk) as client:
        said, context = generate(client, "My dog is called Bella.")
        assert said == "You said: My dog is called Bella."
        generate(client, "Who barks?", system="Be brief.")
        assert sent(talk)["system"].startswith("Be brief.")
        assert "Bella" in sent(talk)["prompt"]
        assert sent(talk)["prompt"].endswith("\n\nWho barks?")
        generate(client, "How old is she?", context=context)
        assert sent(talk)["context"] == list(context)
    stored = talk.stored(space=request.node.name[:200])
    assert [each.text for each in stored][::2] == ["My dog is called Bella.", "Who barks?", "How old is she?"]
    assert stored[4].thread == stored[0].thread, "a request with the context of a reply goes on from it"
    assert stored[2].thread != stored[0].thread


def test_what_is_no_question_has_no_memory(talk: Talk, request: pytest.FixtureRequest) -> None:
    with connected(talk) as client:
        client.generate(model="m")  # loads the model
        client.generate(model="m", prompt="def add(", suffix="return c")
        client.generate(model="m", prompt="[INST] hi [/INST]", raw=True)
        assert sent(talk)["prompt"] == "[INST] hi [/INST]"
        client.chat(model="m", messages=[])
    assert log_of(talk, request) == []


def test_the_window_that_a_request_sets_is_kept(talk: Talk) -> None:
    with connected(talk) as client:
        say(client, "My dog is called Bella.")
        say(client, "What is my dog called?", options={"num_ctx": 1_100, "num_predict": 1_000})
        assert sent(talk)["messages"] == [message("user", "What is my dog called?")]
        say(client, "What is my dog called?", options={"num_ctx": 8_000, "num_predict": -1})
        assert "Bella" in sent(talk)["messages"][0]["content"]


@pytest.mark.client("Ollama", "ollama (Python)", "model list", "provider's errors")
def test_models_and_versions_are_passed_through(talk: Talk) -> None:
    with connected(talk) as client:
        assert [model.model for model in client.list().models] == ["scripted"]
        assert "completion" in client.show("scripted").capabilities
        with pytest.raises(ollama.ResponseError, match="not found") as caught:
            client.show("other")
    assert caught.value.status_code == 404
    headers = {"Authorization": f"Bearer {talk.key}"}
    assert httpx2.get(f"{talk.server.address}/api/version", headers=headers).json() == {"version": "0.12.0"}


@pytest.mark.client("Ollama", "ollama (Python)", "provider's errors")
def test_errors_of_the_provider_come_as_they_are(talk: Talk) -> None:
    talk.model.fail(faults.ServerError(500, "the model runner has stopped"))
    for stream in (False, True):
        with connected(talk) as client, pytest.raises(ollama.ResponseError, match="runner has stopped") as caught:
            list(say(client, "hi", stream=stream))
        assert caught.value.status_code == 500


@pytest.mark.client("Ollama", "ollama (Python)", "own errors")
def test_own_errors_have_the_form_of_the_protocol(talk: Talk) -> None:
    with connected(talk, "ak_wrong") as client, pytest.raises(ollama.ResponseError) as caught:
        say(client, "hi")
    assert (caught.value.error, caught.value.status_code) == ("The key is unknown or has expired.", 401)
    headers = {"Authorization": f"Bearer {talk.key}"}
    assert httpx2.post(f"{talk.server.address}/api/chat", content=b"{", headers=headers).json() == {
        "error": "The request is no JSON."
    }
    assert "type" in httpx2.get(f"{talk.server.address}/api/no-such-route", headers=headers).json()
