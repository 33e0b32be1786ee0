"""OpenAI's Responses with the official client, through the proxy to a scripted model."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from openai import OpenAI
from openai.types.responses import Response

from aforesaid.server.proxy.proxy_memory import ProxyMemory
from aforesaid.settings import Serving
from aforesaid.testing import Request, Writes, faults
from server.talking import Talk, eventually, log_of, talking

WEATHER: Any = {"type": "function", "name": "weather", "parameters": {"type": "object"}, "strict": False}


def say(client: OpenAI, said: Any, **more: Any) -> Response:  # noqa: ANN401
    made: Response = client.responses.create(model="gpt-4o-mini", input=said, **({"user": "ann"} | more))
    return made


def message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def sent(talk: Talk) -> Any:  # noqa: ANN401
    return talk.model.requests[-1].body


@pytest.mark.client("Responses", "openai (Python)", "memory", "usage")
def test_a_text_is_stored_and_the_next_conversation_knows_it(talk: Talk, request: pytest.FixtureRequest) -> None:
    with talk.client() as client:
        reply = say(client, "My dog is called Bella.")
        assert reply.output_text == "You said: My dog is called Bella."
        assert reply.usage is not None
        assert reply.usage.output_tokens > 0
        say(client, "What is my dog called?", instructions="Be brief.")
    assert sent(talk)["input"] == "What is my dog called?", "what the person wrote is passed on as it was"
    assert sent(talk)["instructions"].startswith("Be brief.\n\n")
    assert "Bella" in sent(talk)["instructions"]
    assert log_of(talk, request) == [
        "user: My dog is called Bella.",
        "assistant: You said: My dog is called Bella.",
        "user: What is my dog called?",
        "assistant: You said: What is my dog called?",
    ]


def test_a_client_that_sends_its_history_gets_memories_directly_before_the_question(
    talk: Talk, request: pytest.FixtureRequest
) -> None:
    with talk.client() as client:
        say(client, "My dog is called Bella.")
        talk.model.say(lambda _: "Good morning.")
        first = say(client, [message("user", "Hello.")])
        history: list[Any] = [message("user", "Hello."), *(item.model_dump() for item in first.output)]
        say(client, [*history, message("user", "What is my dog called?")])
    *before, added, question = sent(talk)["input"]
    assert before == history, "the history stays as it was, for the provider's prompt cache"
    assert added["role"] == "system"
    assert "Bella" in added["content"]
    assert question == message("user", "What is my dog called?")
    assert log_of(talk, request)[2:] == [
        "user: Hello.",
        "assistant: Good morning.",
        "user: What is my dog called?",
        "assistant: Good morning.",
    ]


def test_a_system_prompt_among_the_items_gets_the_stable_part(talk: Talk, request: pytest.FixtureRequest) -> None:
    space = request.node.name[:200]
    ann = talk.server.served.memory.user("ann", space=space)
    talk.server.run(ann.remember("prefers answers in metric units"))
    talk.server.run(talk.server.served.memory.upkeep())
    with talk.client() as client:
        parts = [{"type": "input_text", "text": "Be brief."}]
        say(
            client,
            [
                {"role": "developer", "content": parts},
                message("user", "Hi."),
                message("assistant", "Yes?"),
                message("user", "Tea?"),
            ],
        )
    prompt = sent(talk)["input"][0]
    assert prompt["content"][0] == parts[0]
    assert prompt["content"][1]["type"] == "input_text"
    assert "metric units" in prompt["content"][1]["text"]
    assert not sent(talk).get("instructions")


@pytest.mark.client("Responses", "openai (Python)", "stored history")
def test_a_request_that_goes_on_from_a_response_is_stored_in_its_conversation(
    talk: Talk, request: pytest.FixtureRequest
) -> None:
    with talk.client() as client:
        first = say(client, "Toss a coin.")
        other = say(client, "Something else.")
        second = say(client, "And again.", previous_response_id=first.id)
        assert sent(talk)["previous_response_id"] == first.id
        assert sent(talk)["input"] == "And again.", "the provider would keep a message that is added"
        say(client, "A third time.", previous_response_id=second.id)
        say(client, "Something more.", previous_response_id=other.id)
    stored = talk.stored(space=request.node.name[:200])
    threads: dict[str, list[str]] = {}
    for each in stored:
        threads.setdefault(each.thread, []).append(each.text)
    assert sorted(threads.values(), key=len) == [
        ["Something else.", "You said: Something else.", "Something more.", "You said: Something more."],
        [
            "Toss a coin.",
            "You said: Toss a coin.",
            "And again.",
            "You said: And again.",
            "A third time.",
            "You said: A third time.",
        ],
    ]


@pytest.mark.defect("S4")
@pytest.mark.req("G16")
@pytest.mark.client("Responses", "openai (Python)", "versions", "stored history")
def test_another_question_after_the_same_response_hides_none(talk: Talk, request: pytest.FixtureRequest) -> None:
    with talk.client() as client:
        first = say(client, "Toss a coin.")
        say(client, "I live in Rome.", previous_response_id=first.id)
        say(client, "And again.", previous_response_id=first.id)
        talk.model.say(lambda _: "Heads.")
        again = say(client, "And again.", previous_response_id=first.id)
        say(client, "Thanks.", previous_response_id=again.id)
    threads: dict[str, list[str]] = {}
    for each in talk.stored(space=request.node.name[:200]):
        threads.setdefault(each.thread, []).append(each.text)
    assert sorted(threads.values()) == [
        ["Toss a coin.", "You said: Toss a coin.", "And again.", "Heads.", "Thanks.", "Heads."],
        ["Toss a coin.", "You said: Toss a coin.", "I live in Rome.", "You said: I live in Rome."],
    ]
    assert "assistant: You said: And again." in talk.versions(request)


def test_a_response_is_found_again_by_a_server_that_did_not_make_it(talk: Talk, request: pytest.FixtureRequest) -> None:
    with talk.client() as client:
        first = say(client, "Toss a coin.")
        log_of(talk, request)
        talk.server.served.proxy_memory._conversations._replies.clear()  # as after a restart
        say(client, "And again.", previous_response_id=first.id)
        say(client, "Unknown here.", previous_response_id="resp_of_another_server")
    stored = talk.stored(space=request.node.name[:200])
    assert len({each.thread for each in stored[:4]}) == 1
    assert stored[4].thread != stored[0].thread


def reach(client: OpenAI, response: str, user: str) -> list[Callable[[], object]]:
    """Return all ways to reach a response by its id."""
    at = client.responses
    return [
        lambda: at.retrieve(response),
        lambda: at.cancel(response),
        lambda: at.input_items.list(response),
        lambda: at.delete(response),
        lambda: say(client, "Go on.", previous_response_id=response, user=user),
        lambda: say(client, "Go on.", previous_response_id=response, user=user, stream=True),
        lambda: at.compact(model="gpt-4o-mini", previous_response_id=response),
    ]


@pytest.mark.defect("S10")
@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize(("space", "user"), [("theirs", None), ("theirs", "ann"), ("ours", "bob")])
def test_a_response_of_somebody_else_is_unknown_to_a_key(
    tmp_path: Path, space: str, user: str | None, *, restarted: bool
) -> None:
    with talking(location=tmp_path / "memory.db") as talk:
        with talk.client(talk.server.key(space="ours", user="ann")) as owner:
            response = say(owner, "Toss a coin.").id
        if restarted:
            talk.stored(space="ours")
            talk.server.served.proxy_memory = ProxyMemory(talk.server.served.memory, Serving())
        talk.model.requests.clear()
        with talk.client(talk.server.key(space=space, user=user)) as other:
            for attempt in reach(other, response, user or "eve"):
                with pytest.raises(openai.NotFoundError, match="there is no response") as caught:
                    attempt()
                assert caught.value.code == "not_found"
        assert talk.model.requests == [], "nothing reaches the provider"
        assert talk.stored(user or "eve", space) == []


@pytest.mark.defect("S10")
@pytest.mark.parametrize(("space", "user"), [("ours", "ann"), ("ours", None), (None, None)])
def test_keys_that_may_reach_its_user_reach_a_response_and_unknown_ids_are_passed_on(
    talk: Talk, request: pytest.FixtureRequest, space: str | None, user: str | None
) -> None:
    own = space and request.node.name[:200]
    with talk.client() as client, talk.client(talk.server.key(space=own, user=user)) as other:
        known = say(client, "Toss a coin.").id
        for response in (known, "resp_of_another_server"):
            for attempt in reach(other, response, "ann"):
                before = len(talk.model.requests)
                with suppress(openai.NotFoundError):  # of the scripted model, which has a part of the paths alone
                    attempt()
                assert len(talk.model.requests) == before + 1


@pytest.mark.client("Responses", "openai (Python)", "stored history")
def test_a_conversation_of_the_provider_is_one_thread(talk: Talk, request: pytest.FixtureRequest) -> None:
    with talk.client() as client:
        for text in ("One.", "Two.", "Three."):
            say(client, text, conversation="conv_7")
            assert sent(talk)["conversation"] == "conv_7"
            assert sent(talk)["input"] == text
    assert len({each.thread for each in talk.stored(space=request.node.name[:200])}) == 1
    assert len(log_of(talk, request)) == 6


@pytest.mark.parametrize("named", ["conversation", "thread"])
def test_each_answer_to_results_of_tools_alone_is_stored(
    talk: Talk, request: pytest.FixtureRequest, named: str
) -> None:
    calls = Writes("", tools={"weather": {}})
    talk.model.say(lambda asked: calls if "warm" in json.dumps(asked.messages[-1]) else "It is 21 degrees.")
    result = [{"type": "function_call_output", "call_id": "1", "output": "21"}]
    with talk.client(**({"X-Aforesaid-Thread": "work"} if named == "thread" else {})) as client:
        for place in ("Rome", "Oslo"):
            more: Any = {"conversation": "conv_7"} if named == "conversation" else {}
            called = say(client, f"How warm is it in {place}?", **more)
            log_of(talk, request)
            talk.server.served.proxy_memory._conversations._replies.clear()  # as after a restart
            say(client, result, **(more or {"previous_response_id": called.id}))
    assert log_of(talk, request, thread=None if named == "conversation" else "work") == [
        "user: How warm is it in Rome?",
        "assistant: It is 21 degrees.",
        "user: How warm is it in Oslo?",
        "assistant: It is 21 degrees.",
    ]


def test_items_that_are_said_again_in_a_conversation_are_stored_again(
    talk: Talk, request: pytest.FixtureRequest
) -> None:
    both = [message("user", "Look at this."), message("user", "Go on.")]
    with talk.client() as client:
        for said in (both, "Something else.", both, [both[0], message("user", "Stop.")]):
            say(client, said, conversation="conv_7")
    questions = [line.removeprefix("user: ") for line in log_of(talk, request) if line.startswith("user: ")]
    assert questions == [
        *("Look at this.", "Go on.", "Something else.", "Look at this.", "Go on.", "Look at this.", "Stop.")
    ]


def test_what_codex_sends_of_its_own_is_not_stored(talk: Talk, request: pytest.FixtureRequest) -> None:
    instructions = "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>"
    environment = "<environment_context>\n  <cwd>/x</cwd>\n</environment_context>"
    parts = [{"type": "input_text", "text": text} for text in (environment, "<user_instructions>x</user_instructions>")]
    with talk.client() as client:
        say(
            client, [message("user", instructions), {"role": "user", "content": parts}, message("user", "Fix the bug.")]
        )
        say(client, [message("user", environment), message("user", "What is <environment_context> for?")])
    assert instructions in json.dumps(talk.model.requests[-2].body).replace("\\n", "\n"), "the model gets all of it"
    assert [line for line in log_of(talk, request) if line.startswith("user: ")] == [
        "user: Fix the bug.",
        "user: What is <environment_context> for?",
    ]


@pytest.mark.client("Responses", "openai (Python)", "streaming", "usage")
def test_a_stream_comes_back_byte_for_byte_and_is_stored(talk: Talk, request: pytest.FixtureRequest) -> None:
    talk.model.say(lambda _: "The cat sat on the mat. 🐈")
    with (
        talk.client() as client,
        client.responses.stream(model="m", input="Tell me.", user="ann", store=False) as stream,
    ):
        pieces = [event.delta for event in stream if event.type == "response.output_text.delta"]
        whole = stream.get_final_response()
    assert "".join(pieces) == whole.output_text == "The cat sat on the mat. 🐈"
    assert len(pieces) > 5, "it came in pieces"
    assert whole.usage is not None
    assert sent(talk)["store"] is False
    assert log_of(talk, request) == ["user: Tell me.", "assistant: The cat sat on the mat. 🐈"]


@pytest.mark.client("Responses", "openai (Python)", "hang-up")
def test_a_client_that_hangs_up_has_heard_what_it_heard(talk: Talk, request: pytest.FixtureRequest) -> None:
    talk.model.fail(faults.Stalls(after=6))
    with talk.client() as client:
        stream: Any = client.responses.create(model="m", input="Tell me a story.", user="ann", stream=True)
        for event in stream:
            if event.type == "response.output_text.delta":
                break
        stream.close()
    eventually(lambda: len(log_of(talk, request)) == 2)
    answer = talk.stored(space=request.node.name[:200])[1]
    assert "Struck by a".startswith(answer.text[:6])
    assert answer.metadata["partial"] is True


@pytest.mark.client("Responses", "openai (Python)", "tools")
def test_calls_of_tools_and_their_results_pass_through(talk: Talk, request: pytest.FixtureRequest) -> None:
    def script(asked: Request) -> Any:  # noqa: ANN401
        last = asked.messages[-1]
        return "It is 21 degrees." if last.get("type") == "function_call_output" else Writes("", tools={"weather": {}})

    talk.model.say(script)
    with talk.client() as client:
        first = say(client, "How warm is it?", tools=[WEATHER])
        (call,) = first.output
        assert call.type == "function_call"
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "21"}
        stateful = say(client, [result], tools=[WEATHER], previous_response_id=first.id)
        assert stateful.output_text == "It is 21 degrees."
        assert sent(talk)["input"] == [result]
        items = [message("user", "How warm is it?"), call.model_dump(exclude_none=True), result]
        assert say(client, items, tools=[WEATHER]).output_text == "It is 21 degrees."
        assert [item for item in sent(talk)["input"] if item.get("role") != "system"] == items
    assert log_of(talk, request) == ["user: How warm is it?", "assistant: It is 21 degrees."]


@pytest.mark.client("Responses", "openai (Python)", "images")
def test_images_are_passed_on_and_leave_a_word(talk: Talk, request: pytest.FixtureRequest) -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "auto"}
    question = {"role": "user", "content": [{"type": "input_text", "text": "Which bird?"}, image]}
    with talk.client() as client:
        say(client, [question])
    assert sent(talk)["input"] == [question]
    assert log_of(talk, request)[0] == "user: Which bird?\n[image]"


@pytest.mark.client("Responses", "openai (Python)", "provider's errors")
def test_errors_of_the_provider_come_as_they_are(talk: Talk) -> None:
    talk.model.fail(faults.TooManyRequests(7))
    with talk.client() as client, pytest.raises(openai.RateLimitError) as caught:
        say(client, "hi")
    assert caught.value.response.headers["retry-after"] == "7"
    assert caught.value.response.json()["error"]["code"] == "rate_limit_exceeded"


@pytest.mark.client("Responses", "openai (Python)", "own errors")
def test_own_errors_have_the_form_of_the_protocol(talk: Talk) -> None:
    with talk.client("ak_wrong") as client, pytest.raises(openai.AuthenticationError, match="unknown") as caught:
        say(client, "hi")
    assert caught.value.code == "unauthorized"


def test_a_request_that_is_too_long_with_memories_is_sent_without(talk: Talk) -> None:
    def script(asked: Request) -> Any:  # noqa: ANN401
        return faults.ServerError(400, "context_length_exceeded") if asked.body.get("instructions") else "Yes."

    with talk.client() as client:
        say(client, "My dog is called Bella.")
        talk.model.say(script)
        assert say(client, "What is my dog called?").output_text == "Yes."


def test_a_strict_model_gets_the_memory_in_the_question(talk: Talk) -> None:
    def script(asked: Request) -> Any:  # noqa: ANN401
        refused = asked.body.get("instructions")
        return faults.ServerError(400, "System role not supported") if refused else "Yes."

    talk.server.served.upstream.strict_models.clear()
    with talk.client() as client:
        say(client, "My dog is called Bella.")
        talk.model.say(script)
        assert say(client, "What is my dog called?").output_text == "Yes."
        (question,) = sent(talk)["input"]
        assert "Bella" in question["content"]
        assert question["content"].endswith("\n\nWhat is my dog called?")
    talk.server.served.upstream.strict_models.clear()


def test_odd_requests_are_the_providers_to_judge(talk: Talk) -> None:
    headers = {"Authorization": f"Bearer {talk.key}"}
    odd: Any
    for odd in ({}, {"input": 7}, {"input": [7, {"role": 7}, {"type": "reasoning"}], "user": "ann"}, {"input": []}):
        answer = httpx2.post(f"{talk.server.address}/v1/responses", json=odd, headers=headers)
        assert answer.status_code == 200, answer.text
    assert json.loads(answer.content)["object"] == "response"
