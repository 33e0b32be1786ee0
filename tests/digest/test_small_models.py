"""Small models are given little at a time: ten messages and one question."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

import aforesaid
from aforesaid.models.chat import Pace, Reply
from aforesaid.models.prompts import Fenced, ask_for_notes
from aforesaid.models.tokens import count_tokens
from aforesaid.settings import Provider
from aforesaid.testing import Request, ScriptedModel
from aforesaid.text.languages import CODES
from digesting import MovingClock, Scribe, remembering

pytestmark = pytest.mark.defect("L2")
CHAT = tuple(
    f"In house {number} the architect Meyer planned {number} rooms for the Schulz family." for number in range(20)
)


def told(request: Request) -> int:
    return request.asked.count("<message ")


@pytest.mark.parametrize(
    ("model", "is_small"),
    [
        ("qwen2.5:1.5b", True),
        ("llama3.2:3b-instruct-q4", True),
        ("SmolLM2-135M-Instruct", True),
        ("gemma3:12b", False),
        ("mixtral-8x7b", False),
        ("gpt-4o-mini", False),
        ("qwen2.5-14b", False),
    ],
)
def test_the_name_of_a_model_can_tell_its_size(model: str, *, is_small: bool) -> None:
    server = Provider("home", "http://127.0.0.1:1/v1")
    assert Pace(server, model).is_small == is_small
    assert not Pace(replace(server, size="large"), model).is_small
    assert Pace(replace(server, size="small"), model).is_small


def test_its_first_answers_tell_how_fast_a_model_is() -> None:
    server = Provider("home", "http://127.0.0.1:1/v1")
    fast, slow = Pace(server, "some"), Pace(server, "some")
    for _ in range(3):
        fast.note(Reply("Ann moved.", "home:some", 600, 100), 3.0)
        slow.note(Reply("Ann moved.", "home:some", 600, 100), 40.0)
    assert not fast.is_small
    assert slow.is_small


@pytest.mark.parametrize("size", ["small", "large"])
async def test_a_small_model_summarises_ten_messages_at_a_time(size: str) -> None:
    def script(request: Request) -> str:
        rooms = [line for line in request.asked.splitlines() if "In house" in line]
        house = rooms[0].partition("In house ")[2].partition(" ")[0] if rooms else "?"
        return f"The architect Meyer planned rooms in house {house} for the Schulz family."

    async with ScriptedModel(script) as model:
        settings = {
            "providers.home.base_url": model.base_url,
            "providers.home.size": size,
            "models.default": "home:scripted",
            "background": False,
        }
        profile = {"extends": "archive", "tree_turns": 20}
        async with aforesaid.connect(":memory:", profile=profile, settings=settings) as memory:
            ann = memory.user("ann")
            for text in CHAT:
                await ann.add("user", text, name="Ann")
            (made,) = await ann.summarize()
        asked = [request for request in model.requests if request.path.endswith("completions")]
    assert [told(request) for request in asked] == ([10, 10] if size == "small" else [20])
    houses = {line.partition("house ")[2].partition(" ")[0] for line in made.text.splitlines()}
    assert houses == ({"0", "10"} if size == "small" else {"0"})
    if size == "small":
        assert all(request.body["max_tokens"] <= 400 for request in asked)
        assert all(re.search(r"in at most [1-4] sentences\.", request.asked) for request in asked)


async def test_rules_tell_what_a_small_model_told_in_another_language_or_wrongly() -> None:
    """Of sentences that the sources show to be false, and of an English summary of a German chat, nothing is kept."""
    said = [
        ("bob", "Mein Bruder Ottokar fährt am Samstag mit dem Lastwagen nach Erfurt."),
        ("ann", "Ich habe gestern den Mietvertrag für die Wohnung in Weimar unterschrieben."),
    ]

    def lease(answer: str) -> Callable[[Request], str]:
        return lambda request: "{}" if "<person>" in request.asked else answer

    english = "Ann signed the lease for the flat in Weimar yesterday. Bob's brother Ottokar drives a truck to Erfurt."
    good = "Ann hat den Mietvertrag für die Wohnung in Weimar unterschrieben."
    number = "Ann zahlt für die Wohnung 940 Euro Miete."
    wrong = "Ann fährt am Samstag mit dem Lastwagen nach Erfurt."
    strange = "Die Feuerwehr löschte den brennenden Schuppen."
    texts = []
    for answer in (english, f"{good} {number} {wrong} {strange}", wrong):
        async with ScriptedModel(lease(answer)) as model:
            settings = {
                "providers.home.base_url": model.base_url,
                "providers.home.size": "small",
                "models.summarize.chain": "home:scripted",
            }
            async with aforesaid.connect(":memory:", profile="archive", settings=settings) as memory:
                for user, text in said:
                    await memory.user(user, thread="house").add("user", text, name=user.title())
                texts.append((await memory.user("ann", thread="house").summarize())[0].text)
            assert any(" in German, in at most" in request.asked for request in model.requests)
    assert all("): Ich habe gestern" in text or "\nAnn: Ich habe gestern" in text for text in (texts[0], texts[2]))
    assert texts[1] == good


async def test_a_small_model_extends_a_summary_by_what_is_new() -> None:
    scribe, clock = Scribe(), MovingClock()
    scribe.small, scribe.says = True, " The architect Meyer planned rooms for the Schulz family."
    profile = {"extends": "session", "rolling_messages": 3, "rolling_keep": 1, "rolling_step": 2}
    async with remembering(":memory:", profile, chat=scribe, clock=clock) as memory:
        ann = memory.user("ann", thread="house")
        for text in CHAT[:6]:
            await ann.add("user", text, name="Ann", at=clock.forward(minutes=1))
            await memory.upkeep()
        current = await ann.current_summary()
    assert current is not None
    assert [line.split()[0] for line in current.text.splitlines()] == [f"S{n}" for n in range(1, len(scribe.asked) + 1)]
    assert not any("<summary>" in text for _, text in scribe.asked)


async def test_a_small_model_tells_a_day_once_and_each_person_gets_what_names_them() -> None:
    scribe, clock = Scribe(), MovingClock()
    scribe.small, scribe.says = True, ". Ann bought the house in Timbuktu. Bob starts as a stonemason in Bamberg."
    async with remembering(":memory:", "community", chat=scribe, clock=clock) as memory:
        said = [
            ("ann", "We bought the house in Timbuktu yesterday, Bob!"),
            ("bob", "I start as a stonemason in Bamberg on Monday."),
            ("cleo", "The chimney sweep Pius comes at noon."),
        ]
        for user, text in said:
            await memory.user(user, thread="house").add("user", text, name=user.title(), at=clock.forward(minutes=1))
        day = clock.time.date()
        clock.time += timedelta(days=1)
        await memory.upkeep()
        days = {user: await memory.user(user).day(day) for user in ("ann", "bob", "cleo")}
    assert len([operation for operation, _ in scribe.asked if operation == "summarize"]) >= 1
    texts = {user: found.text for user, found in days.items() if found is not None}
    assert texts["ann"] == "Ann bought the house in Timbuktu."
    assert texts["bob"] == "Bob starts as a stonemason in Bamberg."
    # The model said nothing about Cleo, so rules do.
    assert "Pius" in texts["cleo"]


@pytest.mark.parametrize("changed", [True, False])
def test_the_example_of_a_note_is_in_the_language_of_the_chat(*, changed: bool) -> None:
    known = Fenced("<known>\n1. x\n</known>") if changed else None

    def instructions(language: str) -> str:
        return ask_for_notes(language, 5, name="Ann", known=known, messages=Fenced("<messages>\n</messages>"))[
            0
        ].content

    assert "Mira ist am 2026-02-28 nach Oslo gezogen." in instructions("german")
    assert "ミラは2026-02-28にオスロに引っ越した。" in instructions("japanese")
    assert "Mira moved to Oslo on 2026-02-28." in instructions("icelandic")
    assert ('"replaces": 1' in instructions("german")) == changed
    assert '{"notes": []}' in instructions("german")
    # A small model is shown no known notes.
    assert max(count_tokens(instructions(language)) for language in CODES) <= (400 if changed else 350)


@pytest.mark.parametrize("size", ["small", "large"])
async def test_a_small_model_is_asked_for_notes_of_ten_messages_and_not_what_they_replace(size: str) -> None:
    async with ScriptedModel(lambda _: {"notes": []}) as model:
        settings = {
            "providers.home.base_url": model.base_url,
            "providers.home.size": size,
            "models.extract.chain": "home:scripted",
        }
        async with aforesaid.connect(":memory:", profile={"summaries": "none"}, settings=settings) as memory:
            ann = memory.user("ann")
            await ann.note("fact", "Ann lives in house 3 of the architect Meyer.")
            for text in CHAT[:16]:
                await ann.add("user", text, name="Ann")
                await ann.add("assistant", "I see.")
            await memory.upkeep()
        asked = [request for request in model.requests if "<person>" in request.asked]
    numbered = [request.asked.count("] Ann: ") for request in asked]
    assert numbered == ([5, 5, 5, 1] if size == "small" else [8, 8])
    assert any("<known>" in request.asked for request in asked) == (size == "large")
