"""A provider that is down is left alone, and taken back when it answers: over the wire, with everything around it."""

from __future__ import annotations

import asyncio
from collections import Counter

from aforesaid.errors import ModelUnavailable
from aforesaid.models.chat import RoutedChat, Said, open_chat
from aforesaid.settings import Resilience
from aforesaid.telemetry import Key
from aforesaid.testing import ScriptedModel, faults

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
