"""Asking models through the real client, over the wire: answers, faults, a provider that is down, secrets."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace

import pytest
from pydantic import BaseModel

from aforesaid.domain.scope import Scope
from aforesaid.errors import (
    InvalidInput,
    ModelError,
    ModelGarbled,
    ModelRefused,
    ModelUnavailable,
    NoModel,
    SpendingLimit,
)
from aforesaid.models.chat import Chat, RoutedChat, Said, open_chat
from aforesaid.models.client import SecretFilter, hide, plain_address, redact
from aforesaid.models.embed import RemoteEmbedder
from aforesaid.models.resilience import MemoryLedger
from aforesaid.settings import Choice, Provider, Resilience, Route, Secret, Settings, Spending
from aforesaid.telemetry import Key
from aforesaid.testing import Fault, Request, ScriptedModel, Writes, faults
from aforesaid.testing.faults import HttpConnection, HttpResponse, failure
from models.failures import BEGIN, CASES, HEAD, PAGE, Case, documented, lines, observe

HELLO = [Said("system", "You are helpful."), Said("user", "Who is Ann?", "Bob"), Said("assistant", "A friend.")]


class Person(BaseModel):
    name: str


@pytest.fixture
async def model() -> AsyncIterator[ScriptedModel]:
    async with ScriptedModel() as started:
        yield started


@pytest.fixture
async def chat(model: ScriptedModel) -> AsyncIterator[RoutedChat]:
    opened = open_chat(model.settings())
    yield opened
    await opened.close()


def routed(model: ScriptedModel, *, temperature: float, max_tokens: int) -> Settings:
    settings = model.settings()
    routes = {
        name: replace(route, temperature=temperature, max_tokens=max_tokens) for name, route in settings.routes.items()
    }
    return replace(settings, routes=routes)


async def test_a_model_is_asked_and_answers(model: ScriptedModel) -> None:
    model.say(["She is a friend."])
    chat: Chat = open_chat(routed(model, temperature=0.3, max_tokens=50))
    reply = await chat.text("chat", HELLO)
    await chat.close()
    assert (reply.text, reply.model, reply.cut) == ("She is a friend.", "scripted:scripted", False)
    assert reply.prompt_tokens > 0
    assert reply.reply_tokens == 4
    (request,) = model.requests
    assert request.path == "/v1/chat/completions"
    assert request.body["model"] == "scripted"
    assert (request.body["temperature"], request.body["max_tokens"]) == (0.3, 50)
    assert request.messages[:2] == [
        {"role": "system", "content": "You are helpful."},
        {"role": "user", "content": "Who is Ann?", "name": "Bob"},
    ]


async def test_a_name_that_the_api_does_not_take_is_left_out(model: ScriptedModel, chat: RoutedChat) -> None:
    await chat.text("chat", [Said("user", "Hi", "Ann Müller")])
    assert "name" not in model.requests[0].messages[0]


LOOP = "He has been writing down his numbers for the past three days. "


@pytest.mark.defect("L1")
async def test_a_reply_that_repeats_itself_is_cut_and_asked_for_once_more(model: ScriptedModel) -> None:
    model.say([LOOP * 30, "He wrote down his numbers."])
    chat = open_chat(routed(model, temperature=0.2, max_tokens=1024))
    reply = await chat.text("summarize", HELLO, characters=400)
    assert reply.text == "He wrote down his numbers."
    first, second = (request.body for request in model.requests)
    assert (first["stream"], first["max_tokens"], "frequency_penalty" in first) == (True, 400, False)
    assert (second["max_tokens"], second["frequency_penalty"]) == (1024, 0.6)
    model.say([LOOP * 30, LOOP * 30])
    with pytest.raises(ModelGarbled, match="the same again and again"):
        await chat.text("summarize", HELLO, characters=400)
    await chat.close()


@pytest.mark.defect("L1")
async def test_a_reply_that_grows_past_what_was_asked_is_cut(model: ScriptedModel, chat: RoutedChat) -> None:
    model.say([" ".join(f"Ann saw {number} birds near lake {number}." for number in range(900))])
    reply = await chat.text("summarize", HELLO, characters=300)
    assert reply.cut
    assert 300 < len(reply.text) < 600


@pytest.mark.defect("L1")
async def test_a_penalty_that_is_refused_is_left_out(model: ScriptedModel, chat: RoutedChat) -> None:
    model.say([LOOP * 30, "He wrote down his numbers."])
    model.fail(faults.Refuses("frequency_penalty"))
    assert (await chat.text("summarize", HELLO, characters=400)).text == "He wrote down his numbers."


async def test_a_reply_comes_in_pieces(model: ScriptedModel, chat: RoutedChat) -> None:
    model.say(["She is a friend."])
    assert [piece async for piece in chat.stream("chat", HELLO)] == ["She", " is", " a", " friend."]
    counted = chat.metrics.snapshot()[Key("chat", "scripted:scripted")]
    assert (counted.calls, counted.reply_tokens) == (1, 4)


async def test_nobody_has_to_listen_to_the_end_of_a_stream(model: ScriptedModel) -> None:
    settings = model.settings()
    chat = open_chat(replace(settings, providers={"scripted": model.provider(concurrency=1)}))
    for _ in range(3):
        async with aclosing(chat.stream("chat", HELLO)) as pieces:
            assert await anext(pieces) == "You"
    # The only place was given back each time.
    assert (await chat.text("chat", HELLO)).text
    await chat.close()


async def test_a_stream_that_is_forgotten_gives_its_place_back(model: ScriptedModel) -> None:
    settings = model.settings()
    chat = open_chat(replace(settings, providers={"scripted": model.provider(concurrency=1)}))
    async for piece in chat.stream("chat", HELLO):
        assert piece == "You"
        break
    assert (await chat.text("chat", HELLO)).text
    await chat.close()


@pytest.mark.req("B14")
async def test_each_operation_can_have_its_own_model() -> None:
    async with ScriptedModel(["small"], models=("tiny",)) as small, ScriptedModel(["large"], models=("huge",)) as large:
        settings = Settings(
            providers={"a": small.provider("a"), "b": large.provider("b")},
            routes={
                "route": Route((Choice("a", "tiny"),), temperature=0.0),
                "summarize": Route((Choice("b", "huge"),), max_tokens=9),
            },
        )
        chat = open_chat(settings)
        assert (await chat.text("route", HELLO)).model == "a:tiny"
        assert (await chat.text("summarize", HELLO)).model == "b:huge"
        assert small.requests[0].body["temperature"] == 0.0
        assert "max_tokens" not in small.requests[0].body
        assert large.requests[0].body["max_tokens"] == 9
        assert chat.has("route")
        assert not chat.has("chat")
        with pytest.raises(NoModel, match="no model is configured to chat"):
            await chat.text("chat", HELLO)
        with pytest.raises(NoModel):
            await anext(chat.stream("chat", HELLO))
        with pytest.raises(NoModel):
            await chat.structure("chat", HELLO, Person)
        await chat.close()
        await chat.close()


async def test_an_embedder_is_not_asked_to_write(chat: RoutedChat) -> None:
    with pytest.raises(InvalidInput, match="cannot write replies"):
        await chat.text("embed", HELLO)


def test_a_provider_that_is_not_there_is_told_at_once() -> None:
    with pytest.raises(InvalidInput, match="'chat' is to use nobody:x, but no provider 'nobody' is configured"):
        open_chat(Settings(routes={"chat": Route((Choice("nobody", "x"),))}))


async def test_a_cut_text_says_that_it_is(model: ScriptedModel, chat: RoutedChat) -> None:
    model.say([Writes("She is a", finish="length")])
    assert (await chat.text("chat", HELLO)).cut


async def test_an_empty_reply_says_why(model: ScriptedModel, chat: RoutedChat) -> None:
    model.say([Writes("", finish="length"), Writes(" \n ")])
    with pytest.raises(ModelGarbled, match="used up max_tokens before it began to write"):
        await chat.text("chat", HELLO)
    with pytest.raises(ModelGarbled, match="wrote nothing"):
        await chat.text("chat", HELLO)


class ReasoningModel(faults.Refuses):
    """Refuses what reasoning models refuse, one after the other."""

    def strikes(self, request: Request) -> bool:
        return "max_tokens" in request.body or "temperature" in request.body


async def test_a_model_that_wants_other_parameters_gets_them_from_then_on(model: ScriptedModel) -> None:
    model.fail(
        ReasoningModel(
            "max_tokens", "Unsupported: use max_completion_tokens, and leave temperature at its default value."
        )
    )
    chat = open_chat(routed(model, temperature=0.0, max_tokens=30))
    for _ in range(2):
        assert (await chat.text("chat", HELLO)).text
    sent = [
        sorted({"temperature", "max_tokens", "max_completion_tokens"} & request.body.keys())
        for request in model.requests
    ]
    assert sent == [
        ["max_tokens", "temperature"],
        ["max_completion_tokens", "temperature"],
        ["max_completion_tokens"],
        ["max_completion_tokens"],
    ]
    await chat.close()


async def test_a_stream_does_without_its_cost_where_that_is_refused(model: ScriptedModel, chat: RoutedChat) -> None:
    model.fail(faults.Refuses("stream_options"))
    assert "".join([piece async for piece in chat.stream("chat", HELLO)]) == "You said: A friend."
    assert len(model.requests) == 2


async def test_a_request_that_is_refused_either_way_is_not_remembered(model: ScriptedModel) -> None:
    model.fail(faults.Refuses("messages", "temperature and max_tokens look strange"))
    chat = open_chat(routed(model, temperature=0.0, max_tokens=30))
    with pytest.raises(ModelRefused, match=r"scripted:scripted rejects the request: .*look strange"):
        await chat.text("chat", HELLO)
    model.heal()
    await chat.text("chat", HELLO)
    assert {"temperature", "max_tokens"} <= model.requests[-1].body.keys()
    await chat.close()


async def test_errors_say_what_to_do(model: ScriptedModel, chat: RoutedChat) -> None:
    model.fail(faults.WrongKey())
    with pytest.raises(ModelRefused, match=r"rejects the key: .*401.*Check the api_key of 'scripted'"):
        await chat.text("chat", HELLO)
    model.fail(faults.UnknownModel())
    with pytest.raises(ModelRefused, match=r"scripted:scripted does not exist at http.*Check the model's name"):
        await chat.text("chat", HELLO)
    model.stop()
    with pytest.raises(ModelUnavailable, match=r"cannot be reached at http://127.*/v1: .*\. Is it running\?"):
        await chat.text("chat", HELLO)


@pytest.mark.parametrize(
    ("header", "expected"), [(7200, 7200.0), ("7200", 7200.0), ("Fri, 31 Dec 2199 23:59:59 GMT", 10**9), ("soon", None)]
)
async def test_a_server_may_say_when_to_come_back(
    model: ScriptedModel, header: float | str, expected: float | None
) -> None:
    model.fail(faults.TooManyRequests(header))
    chat = open_chat(replace(model.settings(), resilience=replace(model.settings().resilience, attempts=1)))
    with pytest.raises(ModelUnavailable, match="asks to slow down") as raised:
        await chat.text("chat", HELLO)
    await chat.close()
    if expected is None:
        assert raised.value.retry_after is None
    else:
        assert raised.value.retry_after is not None
        assert raised.value.retry_after >= expected


async def test_a_plan_without_quota_is_not_asked_again(model: ScriptedModel, chat: RoutedChat) -> None:
    class NoQuota(faults.Fault):
        def change(self, answer: HttpResponse) -> HttpResponse:  # noqa: ARG002
            return failure(429, "You exceeded your current quota", "insufficient_quota")

    model.fail(NoQuota())
    with pytest.raises(ModelRefused, match=r"no quota left: .*Check its plan"):
        await chat.text("chat", HELLO)
    assert len(model.requests) == 1


async def test_spending_is_counted_for_whoever_asks(model: ScriptedModel) -> None:
    ledger, ann = MemoryLedger(), Scope.of("ann")
    settings = replace(model.settings(), spending=Spending(tokens_per_user_and_day=20))
    chat = open_chat(settings, ledger=ledger)
    reply = await chat.text("chat", HELLO, scope=ann)
    day = chat._budget.today()
    assert await ledger.spent(day, ann) == reply.prompt_tokens + reply.reply_tokens
    assert "".join([piece async for piece in chat.stream("chat", HELLO, scope=ann)])
    with pytest.raises(SpendingLimit):
        await chat.text("chat", HELLO, scope=ann)
    with pytest.raises(SpendingLimit):
        await chat.structure("extract", HELLO, Person, scope=ann)
    assert len(model.requests) == 2
    await chat.close()


async def test_so_many_calls_at_a_time_reach_a_provider() -> None:
    running, most = [0], [0]

    class Held(faults.Fault):
        async def send(self, answer: HttpResponse, wire: HttpConnection) -> None:
            running[0] += 1
            most[0] = max(most[0], running[0])
            await asyncio.sleep(0.02)
            running[0] -= 1
            await wire.send(answer)

    async with ScriptedModel() as model:
        model.fail(Held())
        settings = replace(model.settings(), providers={"scripted": model.provider(concurrency=3)})
        chat = open_chat(settings)
        await asyncio.gather(*(chat.text("chat", HELLO) for _ in range(12)))
        await chat.close()
    assert most[0] == 3
    assert len(model.requests) == 12


async def test_an_address_may_have_a_query(model: ScriptedModel) -> None:
    provider = Provider("scripted", f"{model.base_url}?api-version=2026-01", None)
    chat = open_chat(replace(model.settings(), providers={"scripted": provider}))
    await chat.text("chat", HELLO)
    assert (model.requests[0].path, dict(model.requests[0].query)) == (
        "/v1/chat/completions",
        {"api-version": "2026-01"},
    )
    await chat.close()


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
async def test_a_fault_ends_as_it_is_documented(case: Case) -> None:
    observed = lines(case, await observe(case))
    assert observed == [line for line in documented() if line.startswith(f"| {case.name} |")], (
        "run `make tables`, and look at what changed"
    )


def test_the_table_has_every_fault_and_no_other() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert "\n".join((BEGIN, *HEAD)) in page
    assert list(dict.fromkeys(line.split(" | ")[0].removeprefix("| ") for line in documented())) == [
        case.name for case in CASES
    ]


QUESTION = [Said("user", "Hi")]
TRIGGERS = 10_000
FAILURES, PLACES = 5, 4
CAP = FAILURES + PLACES - 1
DOWN_FOR_LONG = Resilience(failures=FAILURES, probe_seconds=3600)


async def trigger(chat: RoutedChat) -> str:
    try:
        await chat.text("summarize", QUESTION)
    except ModelUnavailable as error:
        return type(error).__name__
    return "answered"


async def test_ten_thousand_triggers_at_once_make_no_more_calls_than_the_cap() -> None:
    async with ScriptedModel() as model:
        model.fail(faults.Resets())
        chat = open_chat(model.settings(timeout=600, resilience=DOWN_FOR_LONG))
        outcomes = Counter(await asyncio.gather(*(trigger(chat) for _ in range(TRIGGERS))))
        await chat.close()
    assert sum(outcomes.values()) == TRIGGERS
    assert outcomes["answered"] == 0
    assert FAILURES <= len(model.requests) <= CAP
    assert chat.states()["scripted"].state == "open"
    assert chat.metrics.snapshot()[Key("summarize", "scripted:scripted")].calls == len(model.requests)


async def test_ten_thousand_triggers_one_by_one_make_no_more_calls_than_the_cap() -> None:
    async with ScriptedModel() as model:
        chat = open_chat(model.settings(timeout=600, resilience=DOWN_FOR_LONG))
    # Nobody listens there any more.
    outcomes = Counter([await trigger(chat) for _ in range(TRIGGERS)])
    await chat.close()
    assert outcomes["answered"] == 0
    assert chat.metrics.snapshot()[Key("summarize", "scripted:scripted")].calls == FAILURES


async def test_when_the_endpoint_returns_the_first_success_closes_the_breaker_within_one_probe_interval() -> None:
    interval = 0.2
    async with ScriptedModel() as model:
        chat = open_chat(model.settings(resilience=Resilience(failures=FAILURES, probe_seconds=interval)))
        model.stop()
        while chat.states()["scripted"].state == "closed":
            await trigger(chat)
        model.start()
        wait = chat.states()["scripted"].retry_in
        assert wait is not None
        assert wait <= interval
        # Only the breaker stands between the endpoint's return and the next answer, and it is due by then.
        await asyncio.sleep(wait + 0.001)
        assert await trigger(chat) == "answered"
        assert chat.states()["scripted"][:4] == ("closed", 0, None, None)
        assert len(model.requests) == 1
        assert await asyncio.gather(*(trigger(chat) for _ in range(10))) == ["answered"] * 10
        await chat.close()


async def test_while_it_is_down_one_probe_goes_out_per_interval() -> None:
    interval = 0.1
    async with ScriptedModel() as model:
        model.fail(faults.ServerError())
        chat = open_chat(model.settings(resilience=Resilience(failures=1, attempts=3, probe_seconds=interval)))
        loop = asyncio.get_running_loop()
        started = loop.time()
        while len(model.requests) < 4:
            await asyncio.gather(*(trigger(chat) for _ in range(20)))
            await asyncio.sleep(interval / 20)
        # The first call opened it. Each one after that is a probe, and the interval before it went by.
        assert loop.time() - started >= interval * 3
        await chat.close()


async def test_each_provider_has_its_own_breaker_and_the_second_model_goes_on() -> None:
    async with ScriptedModel() as model, ScriptedModel() as second:
        model.fail(faults.ServerError())
        settings = model.settings(resilience=Resilience(failures=2, attempts=2, probe_seconds=3600), fallback=second)
        chat = open_chat(settings)
        assert [await trigger(chat) for _ in range(20)] == ["answered"] * 20
        states = chat.states()
        await chat.close()
    assert (states["scripted"].state, states["fallback"].state) == ("open", "closed")
    assert (len(model.requests), len(second.requests)) == (2, 20)


IN_HEADER, IN_URL, IN_USER = "swordfish-4711-header", "opensesame-0815-url", "letmein-1234-password"


def talkative(model: ScriptedModel) -> Settings:
    """A provider with a secret in every place that can have one."""
    address = model.base_url.replace("://", f"://ann:{IN_USER}@") + f"?key={IN_URL}"
    provider = Provider("scripted", address, Secret(IN_HEADER))
    return replace(model.settings(resilience=Resilience(attempts=1)), providers={"scripted": provider})


ECHO = f"Incorrect API key provided: {IN_HEADER}, key={IN_URL}, password {IN_USER}"


@pytest.mark.parametrize(
    "fault",
    [faults.WrongKey(ECHO), faults.ServerError(500, ECHO), faults.Refuses("model", ECHO), faults.Resets()],
    ids=lambda fault: type(fault).__name__,
)
async def test_no_secret_shows_when_a_server_repeats_it(fault: Fault, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with ScriptedModel() as model:
        chat = open_chat(talkative(model))
        embedder = RemoteEmbedder("m", provider=talkative(model).providers["scripted"])
        await chat.text("chat", QUESTION)
        model.fail(fault)
        shown = [embedder.name, repr(Secret(IN_HEADER))]
        for asked in (chat.text("chat", QUESTION), embedder.embed(["hi"]), anext(chat.stream("chat", QUESTION))):
            with pytest.raises(ModelError) as raised:
                await asked
            logging.getLogger("aforesaid.models").error("it failed", exc_info=raised.value)
            shown += [str(raised.value), repr(raised.value), "".join(traceback.format_exception(raised.value))]
        shown += [str(chat.states()), caplog.text]
        await chat.close()
        await embedder.close()
    # The secrets did go out, and the libraries did talk about it.
    assert model.requests[0].query == {"key": IN_URL}
    assert any(record.name == "httpx2" for record in caplog.records)
    for secret in (IN_HEADER, IN_URL, IN_USER):
        for text in shown:
            assert secret not in text


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("Authorization: Bearer abc123", "Authorization: Bearer …"),
        ("GET http://ann:pw@host/v1?key=abc&x=1 failed", "GET http://…@host/v1?key=…&x=1 failed"),
        ("provided: sk-proj-abc***wxyz, sorry", "provided: …, sorry"),
        ("AIzaSyA1234567890123456789012345", "…"),
        ("see https://host/v1/models", "see https://host/v1/models"),
        ("a key-value store at risk-free rates", "a key-value store at risk-free rates"),
    ],
)
def test_what_looks_like_a_secret_is_left_out(text: str, clean: str) -> None:
    assert redact(text) == clean


def test_stand_ins_for_a_key_are_no_secrets() -> None:
    hide("none", "ollama", None)
    assert redact("none of ollama's models") == "none of ollama's models"


def test_what_needs_escaping_in_an_address_is_found_there_too() -> None:
    hide("p@ss/word&more")
    assert redact("?x=p%40ss%2Fword%26more") == "?x=…"


def test_an_address_is_shown_without_its_secrets() -> None:
    assert plain_address("https://ann:pw@host:8080/v1?key=abc#x") == "https://host:8080/v1"
    assert plain_address("http://localhost:11434/v1") == "http://localhost:11434/v1"


def test_the_filter_can_be_put_on_any_handler() -> None:
    hide("swordfish-4711-header")
    try:
        raise ValueError(f"no {IN_HEADER}")
    except ValueError as error:
        info = (type(error), error, error.__traceback__)
    record = logging.LogRecord("app", logging.INFO, "", 0, "said %s and %d", (IN_HEADER, 5), info)
    assert SecretFilter().filter(record)
    assert record.getMessage() == "said … and 5"
    assert IN_HEADER not in logging.Formatter().format(record)
