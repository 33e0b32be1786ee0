"""The official OpenAI client for Python, unmodified, through the proxy to a scripted model."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from openai import OpenAI

from aforesaid.domain.receipt import Receipt
from aforesaid.errors import StoreError
from aforesaid.testing import Request, Writes, faults
from server.serving import live
from server.talking import Talk, ask, eventually, hang_up_after_two_words, log_of, talking


@pytest.mark.client("Chat Completions", "openai (Python)", "memory")
def test_the_second_conversation_knows_what_the_first_one_said(talk: Talk) -> None:
    with talk.client() as client:
        assert ask(client, "My dog is called Bella and she is afraid of thunder.") == (
            "You said: My dog is called Bella and she is afraid of thunder."
        )
        assert talk.last[-1]["content"] == "My dog is called Bella and she is afraid of thunder."
    with talk.client() as client:
        ask(client, {"role": "system", "content": "Be brief."}, "What is my dog called?")
    *system, question = talk.last
    assert {each["role"] for each in system} == {"system"}
    assert system[0]["content"].startswith("Be brief.")
    assert "Bella" in json.dumps(system)
    assert question == {"role": "user", "content": "What is my dog called?"}
    request = talk.model.requests[-1]
    assert request.body["model"] == "gpt-4o-mini"
    assert request.headers["authorization"] == "Bearer upstream-key-of-the-provider"
    assert talk.key not in json.dumps(dict(request.headers))


def test_nobody_hears_of_another_user(talk: Talk) -> None:
    with talk.client() as client:
        ask(client, "My secret word is zanzibar.", user="ann")
        ask(client, "What is the secret word?", user="bob")
    assert "zanzibar" not in json.dumps(talk.last)


def test_what_a_client_resends_is_stored_once(talk: Talk, request: pytest.FixtureRequest) -> None:
    messages: list[dict[str, str]] = []
    with talk.client() as client:
        for number in range(3):
            messages.append({"role": "user", "content": f"line {number}"})
            messages.append({"role": "assistant", "content": ask(client, *messages)})
    assert log_of(talk, request) == [f"{each['role']}: {each['content']}" for each in messages]
    added = [each for each in talk.last if each["role"] == "system"]
    assert not [each for each in added if "line 0" in each["content"]], "what the client has is not added again"


@pytest.mark.client("Chat Completions", "openai (Python)", "streaming", "usage")
def test_a_stream_comes_back_byte_for_byte_and_is_stored(talk: Talk, request: pytest.FixtureRequest) -> None:
    talk.model.say(lambda _: "The cat sat on the mat. 🐈 Ähem.")
    body = {"model": "m", "stream": True, "stream_options": {"include_usage": True}, "user": "ann"}
    sent = body | {"messages": [{"role": "user", "content": "Tell me."}]}
    direct = httpx2.post(
        f"{talk.model.base_url}/chat/completions",
        json=sent,
        headers={"Authorization": "Bearer upstream-key-of-the-provider"},
    )
    through = httpx2.post(
        f"{talk.server.address}/v1/chat/completions", json=sent, headers={"Authorization": f"Bearer {talk.key}"}
    )
    usage = b'"usage"'
    without_usage = [line for line in direct.content.split(b"\n") if usage not in line]
    assert [line for line in through.content.split(b"\n") if usage not in line] == without_usage
    assert through.headers["content-type"] == direct.headers["content-type"]
    assert through.headers["x-aforesaid-memory"] == "on"
    with talk.client() as client:
        stream = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "Again."}], stream=True, user="ann"
        )
        pieces = [chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices]
    assert "".join(pieces) == "The cat sat on the mat. 🐈 Ähem."
    assert len(pieces) > 5, "it came in pieces"
    assert log_of(talk, request)[1::2] == ["assistant: The cat sat on the mat. 🐈 Ähem."] * 2


@pytest.mark.client("Chat Completions", "openai (Python)", "hang-up")
def test_a_client_that_hangs_up_has_heard_what_it_heard(talk: Talk, request: pytest.FixtureRequest) -> None:
    talk.model.fail(faults.Stalls(after=3))
    with talk.client() as client:
        heard = hang_up_after_two_words(client, "Tell me a story.")
    assert heard
    eventually(lambda: len(log_of(talk, request)) == 2)
    kept = log_of(talk, request)[1].removeprefix("assistant: ")
    assert kept.startswith(heard.strip()) or heard.startswith(kept)
    talk.model.heal()
    with talk.client() as client:
        ask(client, "Tell me a story.", {"role": "assistant", "content": heard}, "Go on.")
    assert len(log_of(talk, request)) == 4, "what was sent again is recognised"


def test_an_answer_that_was_broken_off_is_marked_and_a_whole_one_is_not(
    talk: Talk, request: pytest.FixtureRequest
) -> None:
    space = request.node.name[:200]
    with talk.client() as client:
        asked: Any = {"model": "m", "messages": [{"role": "user", "content": "A whole story."}], "user": "ann"}
        list(client.chat.completions.create(**asked, stream=True))
        eventually(lambda: len(log_of(talk, request)) == 2)
        talk.model.fail(faults.Stalls(after=3))
        hang_up_after_two_words(client, "Tell me a story.")
    eventually(lambda: len(log_of(talk, request)) == 4)
    answers = [message for message in talk.stored(space=space) if message.role == "assistant"]
    assert [dict(message.metadata) for message in answers] == [{}, {"partial": True}]


@pytest.mark.client("Chat Completions", "openai (Python)", "tools")
def test_calls_of_tools_pass_through_untouched(talk: Talk, request: pytest.FixtureRequest) -> None:
    def script(asked: Request) -> Any:  # noqa: ANN401
        return (
            "It is 21 degrees."
            if asked.messages[-1]["role"] == "tool"
            else Writes("", tools={"weather": {"city": "Berlin"}})
        )

    talk.model.say(script)
    tools: Any = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
    messages: list[Any] = [{"role": "user", "content": "How warm is it in Berlin?"}]
    with talk.client() as client:
        first = client.chat.completions.create(model="m", messages=messages, tools=tools, user="ann")
        called = first.choices[0].message
        assert called.tool_calls is not None
        assert called.tool_calls[0].function.arguments == '{"city": "Berlin"}'  # type: ignore[union-attr]
        assert talk.model.requests[-1].body["tools"] == tools
        messages += [called.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": "call_0", "content": "21"}]
        second = client.chat.completions.create(model="m", messages=messages, tools=tools, user="ann")
        assert second.choices[0].message.content == "It is 21 degrees."
        streamed = client.chat.completions.create(
            model="m", messages=messages[:1], tools=tools, user="ann", stream=True
        )
        calls = [chunk.choices[0].delta.tool_calls for chunk in streamed if chunk.choices]
        assert [each for each in calls if each]
    sent = [each for each in talk.model.requests[1].messages if each["role"] != "system"]
    assert sent == messages
    assert log_of(talk, request)[:2] == ["user: How warm is it in Berlin?", "assistant: It is 21 degrees."]


@pytest.mark.client("Chat Completions", "openai (Python)", "images")
def test_images_pass_through_untouched(talk: Talk, request: pytest.FixtureRequest) -> None:
    content = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
    ]
    with talk.client() as client:
        ask(client, {"role": "user", "content": content})
    assert talk.last[-1]["content"] == content
    assert log_of(talk, request)[0] == "user: What is this?\n[image]"


@pytest.mark.client("Chat Completions", "openai (Python)", "provider's errors")
@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (faults.TooManyRequests(7), openai.RateLimitError),
        (faults.ServerError(503), openai.InternalServerError),
        (faults.WrongKey(), openai.AuthenticationError),
        (faults.UnknownModel(), openai.NotFoundError),
    ],
    ids=lambda each: type(each).__name__,
)
def test_errors_of_the_provider_come_as_they_are(talk: Talk, fault: faults.Fault, error: type[Exception]) -> None:
    sent = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    talk.model.fail(fault)
    direct = httpx2.post(f"{talk.model.base_url}/chat/completions", json=sent)
    through = httpx2.post(
        f"{talk.server.address}/v1/chat/completions", json=sent, headers={"Authorization": f"Bearer {talk.key}"}
    )
    assert (through.status_code, through.content) == (direct.status_code, direct.content)
    assert through.headers.get("retry-after") == direct.headers.get("retry-after")
    with talk.client() as client, pytest.raises(error):
        ask(client, "hi")


def test_a_provider_that_is_gone_is_told_in_the_clients_own_form() -> None:
    with talking() as talk, talk.client() as client:
        talk.model.stop()
        with pytest.raises(openai.InternalServerError, match="scripted cannot be reached"):
            ask(client, "hi")
        assert talk.log() == ["user: hi"], "what was said is stored, and known when it is said again"
        talk.model.start()
        ask(client, "hi")
        assert talk.log() == ["user: hi", "assistant: You said: hi"]


def test_a_stream_that_the_provider_breaks_off_breaks_off(talk: Talk, request: pytest.FixtureRequest) -> None:
    talk.model.fail(faults.Resets(after=3))
    with talk.client() as client:
        stream = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "Tell me."}], stream=True, user="ann"
        )
        with pytest.raises((openai.APIError, httpx2.HTTPError)):
            list(stream)
    eventually(lambda: len(log_of(talk, request)) == 2)


def test_a_memory_that_fails_does_not_break_a_reply(caplog: pytest.LogCaptureFixture) -> None:
    with talking() as talk:
        talk.server.run(talk.server.served.memory.close())
        answer = httpx2.post(
            f"{talk.server.address}/v1/chat/completions",
            json={"model": "m", "messages": [{"role": "user", "content": "hi"}], "user": "ann"},
            headers={"Authorization": f"Bearer {talk.key}"},
        )
        assert answer.json()["choices"][0]["message"]["content"] == "You said: hi"
        assert answer.headers["x-aforesaid-memory"] == "failed"
    assert "goes on without memory" in caplog.text


@pytest.mark.req("D14")
def test_who_asked_is_written_down_before_the_reply_is_heard(talk: Talk, request: pytest.FixtureRequest) -> None:
    memory = talk.server.served.memory
    person = memory.user("ann", space=request.node.name[:200])
    with talk.client() as client:
        ask(client, "My dog is called Bella.")
        entries = talk.server.run(person.audit())
        assert [(each.action, "test app" in each.actor) for each in entries] == [("context.read", True)]
        ask(client, "What is my dog called?")
        assert [each.action for each in talk.server.run(person.audit())] == ["context.read"] * 2


def test_a_disk_that_fills_up_meanwhile_is_told_in_the_log_and_breaks_no_reply(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with talking() as talk, talk.client() as client:

        async def full(*_: object) -> Receipt:
            raise StoreError("the disk is full")

        monkeypatch.setattr(talk.server.served.memory.store, "apply", full)
        answer = client.chat.completions.with_raw_response.create(
            model="m", messages=[{"role": "user", "content": "hi"}], user="ann"
        )
        assert answer.headers["x-aforesaid-memory"] == "failed"
        assert answer.parse().choices[0].message.content == "You said: hi"
    assert "could not be stored" in caplog.text


def test_large_requests_and_large_answers_pass(talk: Talk, request: pytest.FixtureRequest) -> None:
    talk.model.say(lambda _: "so long " * 200_000)
    image = "data:image/png;base64," + "A" * 3_000_000
    content = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": image}}]
    with talk.client() as client:
        assert len(ask(client, {"role": "user", "content": content})) == 1_600_000
    assert talk.last[-1]["content"] == content
    stored = log_of(talk, request)
    assert stored[0] == "user: What is this?\n[image]"
    assert stored[1].startswith("assistant: so long so long ")


def test_what_a_provider_sets_for_one_client_is_not_sent_for_another(talk: Talk) -> None:
    headers = {"Authorization": f"Bearer {talk.key}", "Cookie": "mine=1", "X-Forwarded-For": "1.2.3.4"}
    sent = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "user": "ann"}
    for _ in range(2):
        httpx2.post(f"{talk.server.address}/v1/chat/completions?api-version=a%2Fb", json=sent, headers=headers)
        passed = talk.model.requests[-1].headers
        assert not {"cookie", "x-forwarded-for", "x-aforesaid-user"} & {name.lower() for name in passed}
        assert passed["accept-encoding"] == "identity"
        assert passed["user-agent"].startswith("python-httpx2"), "it is the client's own"


def test_a_model_without_room_for_memory_is_asked_without_it(talk: Talk) -> None:
    def small(asked: Request) -> Any:  # noqa: ANN401
        if any(each["role"] == "system" for each in asked.messages):
            return faults.Refuses("messages", "context_length_exceeded: too many tokens")
        return f"You said: {asked.asked}"

    with talk.client() as client:
        ask(client, "My dog is called Bella.")
        talk.model.say(small)
        assert ask(client, "What is my dog called?") == "You said: What is my dog called?"


def test_what_is_remembered_stays_inside_the_window() -> None:
    with talking() as talk, talk.client() as client:
        memory = talk.server.served.memory.user("ann")
        for number in range(60):
            talk.server.run(memory.add("user", f"Fact {number} about Berlin: " + "Berlin is large. " * 20))
        talk.server.served.proxy_memory._window = 3_000
        answer = client.chat.completions.with_raw_response.create(
            model="m", messages=[{"role": "user", "content": "What about Berlin?"}], user="ann", max_tokens=500
        )
        added = int(answer.headers["x-aforesaid-tokens"])
        assert 256 < added <= 2_500
        talk.server.served.proxy_memory._window = 700
        answer = client.chat.completions.with_raw_response.create(
            model="m", messages=[{"role": "user", "content": "What about Berlin?"}], user="ann", max_tokens=500
        )
        assert answer.headers["x-aforesaid-tokens"] == "0"


def test_the_user_and_the_thread_come_from_headers_fields_and_the_key(
    talk: Talk, request: pytest.FixtureRequest
) -> None:
    space = request.node.name[:200]
    with talk.client(**{"X-Aforesaid-User": "cid", "X-Aforesaid-Thread": "work"}) as client:
        ask(client, "in a thread", user="ignored")
    assert log_of(talk, request, "cid", "work") == ["user: in a thread", "assistant: You said: in a thread"]
    own = talk.server.key(space=space, user="dora")
    with talk.client(own) as client:
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "by my key"}])
        with pytest.raises(openai.NotFoundError):
            ask(client, "as somebody else", user="ann")
    assert log_of(talk, request, "dora") == ["user: by my key", "assistant: You said: by my key"]
    with talk.client(**{"X-Aforesaid-Memory": "off"}) as client:
        ask(client, "not to be kept", user="ann")
        told = client.chat.completions.with_raw_response.create(
            model="m", messages=[{"role": "user", "content": "not to be kept"}], user="ann"
        ).headers
    assert (told["X-Aforesaid-Memory"], told["X-Aforesaid-Reason"]) == ("off", "the request asks for none")
    assert log_of(talk, request, "ann") == []


@pytest.mark.client("Chat Completions", "openai (Python)", "model list")
def test_embeddings_and_models_pass_through(talk: Talk) -> None:
    with talk.client() as client:
        assert [model.id for model in client.models.list()] == ["scripted"]
        made = client.embeddings.create(model="scripted:tiny", input=["hello", "world"])
        assert len(made.data) == 2
    assert talk.model.requests[-1].body["model"] == "tiny"


@pytest.mark.client("Chat Completions", "openai (Python)", "own errors")
def test_wrong_keys_roles_and_requests_are_told_in_the_clients_own_form(talk: Talk) -> None:
    with talk.client("ak_wrong") as client, pytest.raises(openai.AuthenticationError, match="unknown"):
        ask(client, "hi")
    with (
        talk.client(talk.server.key("reader")) as client,
        pytest.raises(openai.PermissionDeniedError, match="role app"),
    ):
        ask(client, "hi")
    headers = {"Authorization": f"Bearer {talk.key}"}
    for body in (b"", b"{", b"[]", b"\xff", b"7"):
        answer = httpx2.post(f"{talk.server.address}/v1/chat/completions", content=body, headers=headers)
        assert answer.status_code == 400
        assert answer.json()["error"]["message"]
    odd: Any
    for odd in ({}, {"messages": []}, {"messages": [{"role": 7, "content": {"a": 1}}], "user": 7}):
        answer = httpx2.post(f"{talk.server.address}/v1/chat/completions", json=odd, headers=headers)
        assert answer.status_code == 200, "what is odd is the provider's to judge"
        assert answer.headers["x-aforesaid-memory"] == "off"


def test_without_a_model_it_says_how_to_name_one() -> None:
    with live() as server:
        client = OpenAI(api_key=server.key(), base_url=f"{server.address}/v1", max_retries=0)
        with client, pytest.raises(openai.InternalServerError, match=r"aforesaid\.toml"):
            ask(client, "hi")


ROOT = Path(__file__).parent.parent.parent


def test_the_page_of_tested_clients_is_up_to_date() -> None:
    made = runpy.run_path(str(ROOT / "tools/client_matrix.py"))
    written = (ROOT / "docs/reference/clients.md").read_text(encoding="utf-8")
    assert written == made["page"](), "run `make clients`"
