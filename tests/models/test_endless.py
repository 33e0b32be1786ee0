"""Models that repeat themselves, fall silent or never end, on a real server: they are cut in seconds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from time import monotonic

import pytest

from aforesaid.errors import ModelGarbled, ModelUnavailable
from aforesaid.models.chat import RoutedChat, Said, open_chat, repeats_in_json
from aforesaid.models.prompts.shapes import DaySummaries, Extraction
from aforesaid.settings import Resilience
from aforesaid.testing import ScriptedModel, faults

HELLO = [Said("system", "You write summaries."), Said("user", "Summarise the day.")]
SECONDS = 10
"""Seconds that no call may take. They take less than one on an idle machine."""
NOTE = '{"about": "Ann", "text": "Ann has a dog called Rex%s.", "kind": "fact", "from": 1}, '


@dataclass(frozen=True, slots=True)
class Endless(faults.Fault):
    """Streams what `says` returns for each piece, for ever."""

    says: Callable[[int], str]

    async def send(self, answer: faults.HttpResponse, wire: faults.HttpConnection) -> None:
        """Send pieces until the client disconnects."""
        await wire.write(answer.head())
        with suppress(ConnectionError):
            for number in count():
                choice = {"index": 0, "delta": {"content": self.says(number)}, "finish_reason": None}
                event = json.dumps({"id": "1", "object": "chat.completion.chunk", "choices": [choice]})
                await wire.write(answer.wrapped(f"data: {event}\n\n".encode()))
                await asyncio.sleep(0.001)


@pytest.fixture
async def model() -> AsyncIterator[ScriptedModel]:
    async with ScriptedModel() as started:
        yield started


@pytest.fixture
async def chat(model: ScriptedModel) -> AsyncIterator[RoutedChat]:
    opened = open_chat(model.settings(timeout=60.0, resilience=Resilience(attempts=1, stall_seconds=0.3)))
    yield opened
    await opened.close()


@pytest.fixture
def within_seconds() -> Iterator[None]:
    began = monotonic()
    yield
    assert monotonic() - began < SECONDS


pytestmark = [pytest.mark.defect("L1"), pytest.mark.usefixtures("within_seconds")]


async def test_an_endless_loop_is_cut_and_asked_for_once_more(model: ScriptedModel, chat: RoutedChat) -> None:
    model.fail(Endless(lambda _: "He has been writing down his numbers for the past three days. "))
    with pytest.raises(ModelGarbled, match="the same again and again"):
        await chat.text("summarize", HELLO, characters=800)
    assert [request.body.get("frequency_penalty") for request in model.requests] == [None, 0.6]


async def test_an_endless_text_without_a_loop_is_cut_at_what_was_asked(model: ScriptedModel, chat: RoutedChat) -> None:
    model.fail(Endless(lambda number: f"Ann saw {number} birds at lake {number * 7}. "))
    reply = await chat.text("summarize", HELLO, characters=300)
    assert reply.cut
    assert len(reply.text) < 600


@pytest.mark.parametrize(
    "says",
    [
        lambda number: '{"notes": [' if number == 0 else NOTE % "",
        lambda number: '{"notes": [' if number == 0 else " ",
        lambda number: '{"notes": [' if number == 0 else NOTE % f" {number} and {number * 3} and {number * 7}",
    ],
    ids=["a loop", "only spaces", "another note each time"],
)
async def test_endless_notes_are_cut(model: ScriptedModel, says: Callable[[int], str]) -> None:
    settings = model.settings(timeout=60.0)
    routes = {name: replace(route, max_tokens=200) for name, route in settings.routes.items()}
    chat = open_chat(replace(settings, routes=routes))
    model.fail(Endless(says))
    with suppress(ModelGarbled):
        answer = await chat.structure("extract", HELLO, Extraction)
        assert answer.value.notes
    await chat.close()


async def test_an_endless_day_is_cut_and_the_next_answer_counts(model: ScriptedModel, chat: RoutedChat) -> None:
    model.say([{"summaries": [{"id": "1", "summary": "Ann planted a pear tree."}]}])
    loop = '{"id": "1", "summary": "Ann had a day."}, '
    model.fail(Endless(lambda number: '{"summaries": [' if number == 0 else loop), times=1)
    answer = await chat.structure("day", HELLO, DaySummaries)
    assert answer.value.summaries[0].summary == "Ann planted a pear tree."
    assert model.requests[1].body["frequency_penalty"] == 0.6


@pytest.mark.parametrize("operation", ["summarize", "extract"])
async def test_a_server_that_falls_silent_is_given_up(model: ScriptedModel, chat: RoutedChat, operation: str) -> None:
    model.fail(faults.Stalls(after=2))
    asking = (
        chat.structure("extract", HELLO, Extraction)
        if operation == "extract"
        else chat.text("summarize", HELLO, characters=300)
    )
    with pytest.raises(ModelUnavailable, match="fell silent"):
        await asking


@pytest.mark.defect("L2")
async def test_a_model_that_loops_twice_is_given_little_from_then_on(model: ScriptedModel, chat: RoutedChat) -> None:
    assert not chat.is_small("summarize")
    model.fail(Endless(lambda _: "He has been writing down his numbers for the past three days. "))
    with pytest.raises(ModelGarbled):
        await chat.text("summarize", HELLO, characters=800)
    assert chat.is_small("summarize")


def test_json_with_the_same_keys_is_no_loop() -> None:
    notes = "".join(NOTE % f" {number}" for number in range(12))
    assert not repeats_in_json(f'{{"notes": [{notes}')
    assert repeats_in_json(f'{{"notes": [{NOTE % "" * 3}')
    assert repeats_in_json('{"notes": [{"text": "' + "Ann went to the market. " * 3)
