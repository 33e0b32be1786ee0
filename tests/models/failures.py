"""Observes model failures: each fault with each kind of call, for the documentation.

`tools/failure_table.py` writes what is observed here into the documentation; test_chat.py compares.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

import stamina
from pydantic import BaseModel, Field

from aforesaid.errors import ModelError
from aforesaid.models.chat import RoutedChat, Said, open_chat
from aforesaid.models.embed import choose_embedder
from aforesaid.settings import Resilience, Settings
from aforesaid.testing import Fault, Request, ScriptedModel, Writes, faults

PAGE: Final = Path(__file__).parent.parent.parent / "docs/reference/model-failures.md"
BEGIN: Final = "<!-- written by tools/failure_table.py -->"
HEAD: Final = (
    "| what happens | asked for | once | every time | every time, with a second model |",
    "|---|---|---|---|---|",
)

Way = Literal["text", "stream", "structure", "embed"]
WAYS: Final[tuple[Way, ...]] = get_args(Way)
QUESTION: Final = [Said("system", "You are helpful."), Said("user", "Who is Ann?")]
RESILIENCE: Final = Resilience(attempts=3, failures=1000, stall_seconds=1.0)
SHORT, SHORT_FOR_TWO, LONG = 0.5, 4.0, 20.0


class Person(BaseModel):
    """A shape to ask for."""

    name: str = Field(max_length=40)
    age: int | None = None


Strike = Callable[[ScriptedModel, int | None], None]
"""Makes a model fail a given number of times, or always."""


@dataclass(frozen=True, slots=True)
class Case:
    """A fault."""

    name: str
    strike: Strike
    ways: tuple[Way, ...] = WAYS
    hangs: bool = False
    """Whether only the deadline ends it."""
    lasting: bool = False
    """Whether it cannot happen just once."""


class Row(NamedTuple):
    """What was observed."""

    once: str
    always: str
    helped: str


def wire(fault: Fault) -> Strike:
    """Inject a fault on the connection."""
    return lambda model, times: model.fail(fault, times=times)


def reply(writes: Writes | str) -> Strike:
    """Inject a fault into the model's reply."""

    def strike(model: ScriptedModel, times: int | None) -> None:
        left = [10**6 if times is None else times]

        def say(request: Request) -> Writes | str:
            left[0] -= 1
            return writes if left[0] >= 0 else good(request)

        model.say(say)

    return strike


def good(request: Request) -> str:
    """Return a valid reply."""
    wanted = "JSON schema" in str(request.messages) or request.schema is not None
    return '{"name": "Ann", "age": null}' if wanted else "A friend."


def gone(model: ScriptedModel, _: int | None) -> None:
    """Stop the server."""
    model.stop()


WRITTEN: Final[tuple[Way, ...]] = ("text", "stream", "structure")

CASES: Final = (
    Case("no answer at all", wire(faults.NeverAnswers()), hangs=True),
    Case("one byte per second", wire(faults.Slow()), hangs=True),
    Case("nobody listens", gone, lasting=True),
    Case("the connection is reset", wire(faults.Resets())),
    Case("429, try again in a second", wire(faults.TooManyRequests(1))),
    Case("429, try again after the deadline", wire(faults.TooManyRequests(3600))),
    Case("500", wire(faults.ServerError())),
    Case("401, wrong key", wire(faults.WrongKey())),
    Case("404, unknown model", wire(faults.UnknownModel())),
    Case("a page instead of JSON", wire(faults.Garbage())),
    Case("garbage that claims to be JSON", wire(faults.Garbage("application/json"))),
    Case("JSON cut in the middle", wire(faults.CutJson())),
    Case("a stream falls silent", wire(faults.Stalls(after=3)), ("stream",)),
    Case("a stream is reset", wire(faults.Resets(after=3)), ("stream",)),
    Case("a stream ends without its end", reply(Writes("A fri", finish=None)), ("stream",)),
    Case("JSON schemas are refused", wire(faults.NoSchema()), ("structure",)),
    Case("an empty reply", reply(""), WRITTEN),
    Case(
        "a reply cut at `max_tokens`", reply(Writes('{"name": "An', finish="length")), ("text", "stream", "structure")
    ),
    Case("a reply that does not fit", reply('{"age": "old"}'), ("structure",)),
    Case(
        "the provider's filter stops it", reply(Writes("A", finish="content_filter")), ("text", "stream", "structure")
    ),
)


async def ask(way: Way, chat: RoutedChat, settings: Settings) -> None:
    """Make one kind of call; raises if it fails."""
    if way == "text":
        assert (await chat.text("chat", QUESTION)).text
    elif way == "stream":
        assert "".join([piece async for piece in chat.stream("chat", QUESTION)])
    elif way == "structure":
        assert (await chat.structure("extract", QUESTION, Person)).value.name
    else:
        embedder = choose_embedder(None, settings)
        assert embedder is not None
        try:
            assert len(await embedder.embed(["one", "two"])) == 2
        finally:
            await embedder.close()


async def observe(case: Case) -> dict[Way, Row]:
    """Inject a fault once, always, and always next to a second model, with all kinds of calls."""
    # Pauses are left out; how long they are is tested elsewhere.
    with stamina.set_testing(True, attempts=RESILIENCE.attempts):
        return dict(zip(case.ways, await asyncio.gather(*(_row(case, way) for way in case.ways)), strict=True))


async def _row(case: Case, way: Way) -> Row:
    once = "–" if case.lasting else await _one(case, way, 1)
    always = await _one(case, way, None)
    return Row(once, always, "–" if way == "embed" else await _one(case, way, None, second=True))


async def _one(case: Case, way: Way, times: int | None, *, second: bool = False) -> str:
    timeout = LONG if not case.hangs else SHORT_FOR_TWO if second else SHORT
    async with ScriptedModel(good) as model, ScriptedModel(good) as other:
        settings = model.settings(timeout=timeout, resilience=RESILIENCE, fallback=other if second else None)
        chat = open_chat(settings)
        case.strike(model, times)
        try:
            # Far beyond the deadline: whatever runs into this one hangs.
            async with asyncio.timeout(timeout * 5 + 10):
                await ask(way, chat, settings)
        except ModelError as error:
            calls = len(model.requests)
            return f"`{type(error).__name__}`" + (f" after {calls} calls" if calls > 1 else "")
        finally:
            await chat.close()
        if other.requests:
            return "the second answers"
        calls = len(model.requests)
        return "answers" if calls == 1 else f"answers at call {calls}"


def lines(case: Case, rows: dict[Way, Row]) -> list[str]:
    """Return the rows of a case, one per distinct outcome. Embeddings have no second model."""
    alike: dict[Row, list[Way]] = {}
    for way, row in rows.items():
        same = next((each for each in alike if way == "embed" and each[:2] == row[:2]), row)
        alike.setdefault(same, []).append(way)
    return [f"| {case.name} | {', '.join(ways)} | {' | '.join(row)} |" for row, ways in alike.items()]


def documented() -> list[str]:
    """Return the rows of the table in the documentation."""
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return rest.strip().partition("\n\n")[0].splitlines()[len(HEAD) :]
