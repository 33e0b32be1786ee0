"""The official clients of OpenAI and Anthropic, wrapped with a memory, talk to a server on loopback."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import httpx
import httpx2
import openai
import pytest
from anthropic import Anthropic, AnthropicBedrock, AsyncAnthropic, beta_tool
from openai import AsyncOpenAI, OpenAI

import aforesaid
from aforesaid.server.proxy import proxy_memory
from aforesaid.testing import Request, ScriptedModel, Writes, faults

MOVED = "I moved to Berlin last week."
WHERE = "Where do I live?"
HEARD = ["user: I moved to Berlin last week.", "assistant: Noted."]


OPEN: list[OpenAI | Anthropic] = []
"""The clients of the test that runs, which closes them at its end."""


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(lambda asked: "Noted." if asked.question == MOVED else "In Berlin.") as made:
        yield made
        while OPEN:
            OPEN.pop().close()


@pytest.fixture
def memory() -> Iterator[aforesaid.SyncMemory]:
    with aforesaid.open(":memory:", embedder="deterministic") as made:
        yield made


def openai_of(model: ScriptedModel, **more: Any) -> OpenAI:  # noqa: ANN401
    OPEN.append(made := OpenAI(base_url=model.base_url, api_key="k", max_retries=0, **more))
    return made


def anthropic_of(model: ScriptedModel) -> Anthropic:
    OPEN.append(made := Anthropic(base_url=model.base_url.removesuffix("/v1"), api_key="k", max_retries=0))
    return made


def lines(memory: aforesaid.SyncMemory, user: str = "local", **where: Any) -> list[str]:  # noqa: ANN401
    found = memory.user(user, **where).history(100)
    return [f"{each.role}: {each.text}" for each in found]


def last(model: ScriptedModel) -> str:
    return json.dumps(model.requests[-1].body, ensure_ascii=False)


def said(text: str) -> Any:  # noqa: ANN401
    return [{"role": "user", "content": text}]


def with_chat_completions(client: OpenAI, text: str) -> str:
    reply = client.chat.completions.create(model="m", messages=said(text))
    return str(reply.choices[0].message.content)


def with_streamed_chat_completions(client: OpenAI, text: str) -> str:
    stream = client.chat.completions.create(model="m", messages=said(text), stream=True)
    return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)


def with_the_stream_helper(client: OpenAI, text: str) -> str:
    with client.chat.completions.stream(model="m", messages=said(text)) as stream:
        return str(stream.get_final_completion().choices[0].message.content)


def with_responses(client: OpenAI, text: str) -> str:
    return client.responses.create(model="m", input=text).output_text


def with_streamed_responses(client: OpenAI, text: str) -> str:
    events = client.responses.create(model="m", input=text, stream=True)
    return "".join(event.delta for event in events if event.type == "response.output_text.delta")


def with_completions(client: OpenAI, text: str) -> str:
    return client.completions.create(model="m", prompt=text).choices[0].text


def with_messages(client: Anthropic, text: str) -> str:
    reply = client.messages.create(model="m", max_tokens=500, messages=said(text))
    return str(cast("Any", reply.content[0]).text)


def with_streamed_messages(client: Anthropic, text: str) -> str:
    with client.messages.stream(model="m", max_tokens=500, messages=said(text)) as stream:
        return "".join(stream.text_stream)


def with_beta_messages(client: Anthropic, text: str) -> str:
    reply = client.beta.messages.create(model="m", max_tokens=500, messages=said(text))
    return str(cast("Any", reply.content[0]).text)


ASKS = [
    with_chat_completions,
    with_streamed_chat_completions,
    with_the_stream_helper,
    with_responses,
    with_streamed_responses,
    with_completions,
    with_messages,
    with_streamed_messages,
    with_beta_messages,
]


@pytest.mark.parametrize("ask", ASKS)
def test_a_wrapped_client_stores_what_is_said_and_the_next_chat_knows_it(
    model: ScriptedModel,
    memory: aforesaid.SyncMemory,
    ask: Any,  # noqa: ANN401
) -> None:
    client = (anthropic_of if "messages" in ask.__name__ else openai_of)(model)
    wrapped = aforesaid.wrap(client, memory=memory)
    assert type(wrapped) is type(client)
    assert ask(wrapped, MOVED) == "Noted."
    assert lines(memory) == HEARD, "all of it is stored when the call returns"
    assert ask(wrapped, WHERE) == "In Berlin."
    assert "moved to Berlin" in last(model)
    assert lines(memory) == [*HEARD, f"user: {WHERE}", "assistant: In Berlin."]
    assert ask(client, WHERE) == "In Berlin."
    assert "moved to Berlin" not in last(model), "the client itself is as it was"
    wrapped.close()
    assert client.is_closed()


async def async_chat_completions(client: AsyncOpenAI, text: str) -> str:
    reply = await client.chat.completions.create(model="m", messages=said(text))
    return str(reply.choices[0].message.content)


async def async_streamed_chat_completions(client: AsyncOpenAI, text: str) -> str:
    stream = await client.chat.completions.create(model="m", messages=said(text), stream=True)
    return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])


async def async_responses(client: AsyncOpenAI, text: str) -> str:
    return (await client.responses.create(model="m", input=text)).output_text


async def async_messages(client: AsyncAnthropic, text: str) -> str:
    reply = await client.messages.create(model="m", max_tokens=500, messages=said(text))
    return str(cast("Any", reply.content[0]).text)


async def async_streamed_messages(client: AsyncAnthropic, text: str) -> str:
    async with client.messages.stream(model="m", max_tokens=500, messages=said(text)) as stream:
        return "".join([text async for text in stream.text_stream])


ASYNC_ASKS = [
    async_chat_completions,
    async_streamed_chat_completions,
    async_responses,
    async_messages,
    async_streamed_messages,
]


@pytest.mark.parametrize("kind", ["open", "connect"])
@pytest.mark.parametrize("ask", ASYNC_ASKS)
async def test_an_async_client_has_the_same_memory(
    model: ScriptedModel,
    ask: Any,  # noqa: ANN401
    kind: str,
) -> None:
    async with aforesaid.connect(":memory:", embedder="deterministic") as here:
        with aforesaid.open(":memory:", embedder="deterministic") as elsewhere:
            client: Any
            if "messages" in ask.__name__:
                client = AsyncAnthropic(base_url=model.base_url.removesuffix("/v1"), api_key="k", max_retries=0)
            else:
                client = AsyncOpenAI(base_url=model.base_url, api_key="k", max_retries=0)
            wrapped = aforesaid.wrap(client, memory=here if kind == "connect" else elsewhere, user="ann")
            assert await ask(wrapped, MOVED) == "Noted."
            assert await ask(wrapped, WHERE) == "In Berlin."
            assert "moved to Berlin" in last(model)
            if kind == "connect":
                stored = [f"{each.role}: {each.text}" for each in await here.user("ann").history()]
            else:
                stored = lines(elsewhere, "ann")
            assert stored == [*HEARD, f"user: {WHERE}", "assistant: In Berlin."]
            await wrapped.close()
            assert client.is_closed()


def test_the_user_is_the_one_of_wrap_or_else_of_the_request(model: ScriptedModel, memory: aforesaid.SyncMemory) -> None:
    anybody = aforesaid.wrap(openai_of(model), memory=memory)
    anybody.chat.completions.create(model="m", messages=said("One."), user="ann")
    anybody.chat.completions.create(
        model="m", messages=said("Two."), user="ann", extra_headers={"X-Aforesaid-User": "bob"}
    )
    assert not [name for name in model.requests[-1].headers if name.startswith("x-aforesaid")]
    assert model.requests[-1].body["user"] == "ann"
    aforesaid.wrap(anybody, memory=memory, user="cid").chat.completions.create(
        model="m", messages=said("Three."), user="a-hash-for-the-provider"
    )
    claude = aforesaid.wrap(anthropic_of(model), memory=memory)
    claude.messages.create(model="m", max_tokens=50, messages=said("Four."), metadata={"user_id": "dan"})
    stored = {user.id: lines(memory, user.id)[0] for user in memory.users()}
    assert stored == {"ann": "user: One.", "bob": "user: Two.", "cid": "user: Three.", "dan": "user: Four."}


def test_a_chat_that_is_named_needs_no_history(model: ScriptedModel, memory: aforesaid.SyncMemory) -> None:
    client = openai_of(model)
    monday = aforesaid.wrap(client, memory=memory, user="ann", chat="monday")
    with_chat_completions(monday, MOVED)
    with_chat_completions(monday, WHERE)
    assert [each["content"] for each in model.requests[-1].messages if each["role"] == "user"] == [WHERE]
    assert "in this conversation" in last(model)
    aforesaid.wrap(client, memory=memory, user="ann", space="work").chat.completions.create(
        model="m", messages=said("Hello.")
    )
    (chat,) = memory.user("ann").threads()
    assert chat.id == memory.user("ann").chat("monday").scope.thread
    assert lines(memory, "ann", space="work") == ["user: Hello.", "assistant: In Berlin."]


def test_memory_can_be_turned_off_for_a_request(model: ScriptedModel, memory: aforesaid.SyncMemory) -> None:
    client = aforesaid.wrap(openai_of(model), memory=memory)
    raw = client.chat.completions.with_raw_response.create(
        model="m", messages=said("Hello."), extra_headers={"X-Aforesaid-Memory": "off"}
    )
    assert (raw.headers["x-aforesaid-memory"], lines(memory)) == ("off", [])
    client.embeddings.create(model="m", input="Hello.", extra_headers={"X-Aforesaid-User": "ann"})
    assert not [name for name in model.requests[-1].headers if name.startswith("x-aforesaid")]
    assert lines(memory) == []


def test_a_history_that_is_sent_again_is_stored_once_and_a_new_answer_replaces_the_old_one(
    model: ScriptedModel, memory: aforesaid.SyncMemory
) -> None:
    model.say(["First.", "Second.", "Other."])
    client = aforesaid.wrap(openai_of(model), memory=memory)
    sent = said("One?")
    sent.append({"role": "assistant", "content": with_chat_completions(client, "One?")})
    sent.append({"role": "user", "content": "Two?"})
    for _ in range(2):
        client.chat.completions.create(model="m", messages=sent)
    assert lines(memory) == ["user: One?", "assistant: First.", "user: Two?", "assistant: Other."]
    assert [each.text for each in memory.user("local").history(versions=True)][-2:] == ["Second.", "Other."]


def test_a_tool_loop_is_one_turn_with_its_tools(model: ScriptedModel, memory: aforesaid.SyncMemory) -> None:
    def script(asked: Request) -> Writes | str:
        done = any(each["role"] == "tool" for each in asked.messages)
        return "It is 21 degrees." if done else Writes("", tools={"weather": {"city": "Bern"}})

    model.say(script)
    client = aforesaid.wrap(openai_of(model), memory=memory)
    tools: Any = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
    sent = said("How warm is it?")
    for _ in range(2):
        reply = client.chat.completions.create(model="m", messages=sent, tools=tools).choices[0].message
        sent.append(reply)
        sent += [{"role": "tool", "tool_call_id": each.id, "content": "21"} for each in reply.tool_calls or ()]
    assert lines(memory) == ["user: How warm is it?", "assistant: It is 21 degrees."]
    answer = memory.user("local").history()[-1]
    assert [(step["name"], step["result"]) for step in cast("Any", answer.metadata["tools"])] == [("weather", "21")]


@beta_tool
def weather(city: str) -> str:
    """Look up the weather.

    Args:
        city: the city
    """
    return f"21 degrees in {city}"


@pytest.mark.parametrize("stream", [False, True])
def test_a_tool_runner_whose_history_the_provider_keeps_is_one_conversation(
    model: ScriptedModel, memory: aforesaid.SyncMemory, *, stream: bool
) -> None:
    def script(asked: Request) -> Writes | str:
        sent = json.dumps(asked.body["messages"])
        return "It is warm." if "tool_result" in sent else Writes("", tools={"weather": {"city": "Bern"}})

    model.say(script)
    client = aforesaid.wrap(anthropic_of(model), memory=memory)
    asked: Any = {"model": "m", "max_tokens": 500, "tools": [weather], "messages": said("How warm is it?")}
    runner: Any = client.beta.messages.tool_runner(**asked, stream=stream)
    last_reply = list(runner)[-1]
    reply = last_reply.get_final_message() if stream else last_reply
    assert model.requests[-1].body["thread"]["type"] == "continue", "the runner does not send the history"
    assert reply.content[0].text == "It is warm."
    assert lines(memory) == ["user: How warm is it?", "assistant: It is warm."]
    (step,) = cast("Any", memory.user("local").history()[-1].metadata["tools"])
    assert (step["name"], json.loads(step["arguments"]), step["result"]) == (
        "weather", {"city": "Bern"}, "21 degrees in Bern",
    )  # fmt: skip
    client.beta.messages.create(
        model="m", max_tokens=50, messages=said("And there?"),
        thread={"type": "continue", "previous_message_id": reply.id},
    )  # fmt: skip
    assert len(memory.user("local").threads()) == 1


def test_an_error_of_the_provider_leaves_the_question_and_no_reply(
    model: ScriptedModel, memory: aforesaid.SyncMemory
) -> None:
    client = aforesaid.wrap(openai_of(model), memory=memory)
    model.fail(faults.ServerError())
    with pytest.raises(openai.InternalServerError):
        with_chat_completions(client, MOVED)
    assert lines(memory) == HEARD[:1]
    model.heal()
    with_chat_completions(client, MOVED)
    assert lines(memory) == HEARD, "the question that is sent again is the same one"
    model.stop()
    with pytest.raises(openai.APIConnectionError):
        with_chat_completions(client, "Is anybody there?")
    assert lines(memory) == [*HEARD, "user: Is anybody there?"]


def test_a_client_that_tries_again_stores_the_question_once(model: ScriptedModel, memory: aforesaid.SyncMemory) -> None:
    model.fail(faults.TooManyRequests(), times=1)
    client = aforesaid.wrap(openai_of(model).with_options(max_retries=2), memory=memory)
    assert with_chat_completions(client, MOVED) == "Noted."
    assert lines(memory) == HEARD


def test_a_model_that_refuses_a_further_system_message_is_asked_again(
    model: ScriptedModel, memory: aforesaid.SyncMemory
) -> None:
    client = aforesaid.wrap(openai_of(model), memory=memory)
    with_chat_completions(client, MOVED)
    model.fail(StrictRoles())
    assert with_streamed_chat_completions(client, WHERE) == "In Berlin."
    (question,) = model.requests[-1].messages
    assert "moved to Berlin" in question["content"]
    sent = len(model.requests)
    with_chat_completions(client, "And before?")
    assert len(model.requests) == sent + 1, "from then on it is asked once"


class StrictRoles(faults.Fault):
    def strikes(self, request: Request) -> bool:
        return any(each["role"] == "system" for each in request.messages)

    def change(self, answer: faults.HttpResponse) -> faults.HttpResponse:
        del answer
        return faults.failure(400, "System message must be at the beginning.", "template")


def test_what_came_of_a_stream_that_is_left_is_stored(model: ScriptedModel, memory: aforesaid.SyncMemory) -> None:
    model.say(lambda _: "One two three four five.")
    client = aforesaid.wrap(openai_of(model), memory=memory)
    stream = client.chat.completions.create(model="m", messages=said("Count."), stream=True)
    heard = ""
    for chunk in stream:
        heard += chunk.choices[0].delta.content or ""
        if len(heard.split()) == 2:
            break
    stream.close()
    (question, answer) = memory.user("local").history()
    assert (question.text, answer.text, answer.metadata) == ("Count.", heard, {"partial": True})


def test_a_stream_that_is_forgotten_is_stored_when_it_is_collected(
    model: ScriptedModel, memory: aforesaid.SyncMemory
) -> None:
    client = aforesaid.wrap(openai_of(model), memory=memory)
    next(client.chat.completions.create(model="m", messages=said("Count."), stream=True))
    gc.collect()
    assert lines(memory)[0] == "user: Count."
    # In the memory's own thread too, where nobody may wait for the memory.
    next(client.chat.completions.create(model="m", messages=said("Again."), stream=True))
    done = threading.Event()

    async def collect() -> None:
        gc.collect()
        done.set()

    cast("Any", memory)._loop.run(collect)
    assert done.is_set()
    assert with_chat_completions(client, MOVED) == "Noted."


async def test_a_cancelled_stream_is_stored_too(model: ScriptedModel, memory: aforesaid.SyncMemory) -> None:
    model.fail(faults.Stalls(after=3))
    client = aforesaid.wrap(AsyncOpenAI(base_url=model.base_url, api_key="k", max_retries=0), memory=memory)
    heard = ""

    async def listen() -> None:
        nonlocal heard
        async for chunk in await client.chat.completions.create(model="m", messages=said(MOVED), stream=True):
            heard += chunk.choices[0].delta.content or ""

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(listen(), 1.0)
    await client.close()
    assert await asyncio.to_thread(lines, memory) == [HEARD[0], f"assistant: {heard}"]


def test_a_memory_that_fails_stops_no_request_and_says_so(
    model: ScriptedModel,
    memory: aforesaid.SyncMemory,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise OSError("the disk is gone")

    client = aforesaid.wrap(openai_of(model), memory=memory)
    with_chat_completions(client, MOVED)
    store = cast("Any", memory)._target.store
    monkeypatch.setattr(store, "apply", fail)
    raw = client.chat.completions.with_raw_response.create(model="m", messages=said(WHERE))
    assert raw.parse().choices[0].message.content == "In Berlin."
    assert (raw.headers["x-aforesaid-memory"], raw.headers["x-aforesaid-reason"]) == ("failed", "not stored")
    assert [each for each in caplog.records if "could not be stored" in each.message]
    monkeypatch.undo()
    memory.close()
    caplog.clear()
    for ask in (with_chat_completions, with_streamed_chat_completions):
        assert ask(client, WHERE) == "In Berlin."
    raw = client.chat.completions.with_raw_response.create(model="m", messages=said(WHERE))
    assert raw.headers["x-aforesaid-reason"] == "the memory cannot be used: StoreClosed"
    assert len([each for each in caplog.records if each.message == "a chat goes on without memory"]) == 3


def test_a_memory_that_is_closed_during_a_reply_stops_nothing(
    model: ScriptedModel, memory: aforesaid.SyncMemory, caplog: pytest.LogCaptureFixture
) -> None:
    client = aforesaid.wrap(openai_of(model), memory=memory)
    stream = client.chat.completions.create(model="m", messages=said(WHERE), stream=True)
    memory.close()
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices) == "In Berlin."
    assert "a reply is not stored: the memory is closed" in [each.message for each in caplog.records]


def test_what_cannot_be_wrapped_is_refused(memory: aforesaid.SyncMemory, model: ScriptedModel) -> None:
    bedrock = AnthropicBedrock(aws_region="eu-central-1", aws_access_key="k", aws_secret_key="k")  # noqa: S106
    for other in (object(), "OpenAI", OpenAI, httpx2, bedrock):
        with pytest.raises(aforesaid.errors.InvalidInput, match=r"OpenAI\(\), AsyncOpenAI\(\), Anthropic\(\)"):
            aforesaid.wrap(other, memory=memory)
    for names in ({"user": "*"}, {"user": ""}, {"chat": "a\0b"}, {"space": "x" * 1_000}):
        with pytest.raises(aforesaid.errors.InvalidInput):
            aforesaid.wrap(openai_of(model), memory=memory, **cast("Any", names))
    with pytest.raises(aforesaid.errors.InvalidInput, match=r"aforesaid\.open or aforesaid\.connect"):
        aforesaid.wrap(openai_of(model), memory=cast("Any", memory.user("ann")))


async def test_a_sync_client_cannot_have_an_async_memory(model: ScriptedModel) -> None:
    async with aforesaid.connect(":memory:", embedder="none") as memory:
        with pytest.raises(aforesaid.errors.InvalidInput, match=r"opened with aforesaid\.open"):
            aforesaid.wrap(openai_of(model), memory=memory)


@pytest.mark.parametrize("library", [httpx, httpx2])
def test_the_http_client_of_the_program_is_used(
    model: ScriptedModel,
    memory: aforesaid.SyncMemory,
    library: Any,  # noqa: ANN401
) -> None:
    seen: list[str] = []
    hooks = {"request": [lambda request: seen.append(request.headers["x-own"])]}
    with library.Client(headers={"x-own": "yes"}, event_hooks=hooks) as own:
        client = aforesaid.wrap(openai_of(model, http_client=own), memory=memory)
        assert with_streamed_chat_completions(client.with_options(timeout=20), MOVED) == "Noted."
    assert (seen, lines(memory)) == (["yes"], HEARD)


def test_clients_of_one_memory_wait_for_one_another(model: ScriptedModel, memory: aforesaid.SyncMemory) -> None:
    clients = [aforesaid.wrap(openai_of(model), memory=memory, user="ann") for _ in range(6)]
    threads = [
        threading.Thread(target=with_chat_completions, args=(client, f"Question {number}?"))
        for number, client in enumerate(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lines(memory, "ann")) == 12


def test_a_program_of_two_lines_remembers_and_ends_by_itself(model: ScriptedModel, tmp_path: Path) -> None:
    program = (
        "import sys, aforesaid\n"
        "from openai import OpenAI\n"
        "client = aforesaid.wrap(OpenAI(), memory='memory.db')\n"
        "again = aforesaid.wrap(OpenAI(), memory='memory.db')\n"
        "for each in (client, again):\n"
        "    reply = each.chat.completions.create(\n"
        "        model='m', messages=[{'role': 'user', 'content': sys.argv[1]}])\n"
        "    print(reply.choices[0].message.content)\n"
        "assert 'fastapi' not in sys.modules and 'starlette' not in sys.modules\n"
    )
    for text, answer in ((MOVED, "Noted."), (WHERE, "In Berlin.")):
        ran = subprocess.run(
            [sys.executable, "-W", "error", "-c", program, text],
            cwd=tmp_path,
            env={"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "k", "HOME": str(Path.home())},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ran.returncode, ran.stderr, ran.stdout) == (0, "", f"{answer}\n{answer}\n")
    assert "moved to Berlin" in last(model)


def test_a_search_that_takes_too_long_is_told_in_the_response(
    model: ScriptedModel, memory: aforesaid.SyncMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = aforesaid.wrap(openai_of(model), memory=memory)
    with_chat_completions(client, MOVED)
    monkeypatch.setattr(proxy_memory, "RECALL_SECONDS", 0.0)
    raw = client.chat.completions.with_raw_response.create(model="m", messages=said(WHERE))
    assert raw.headers["x-aforesaid-memory"] == "partial"
    assert "moved to Berlin" in last(model), "recent messages need no search"
