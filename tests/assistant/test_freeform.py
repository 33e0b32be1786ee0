"""Requests in free form, as people write them in a channel: routed by a model, and by rules when there is none."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import aforesaid
from aforesaid.assistant import Assistant, Turn
from aforesaid.models.offline.request_rules import may_ask
from aforesaid.testing import Request, ScriptedModel, faults

QUIET = {"summaries": "none", "extract": False}
PEOPLE = {"101": ("Sergey", "gruzilkin"), "102": ("Florent", "flo"), "103": ("Ann Miller",)}


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[aforesaid.Memory]:
    async with aforesaid.connect(tmp_path / "memory.db", profile=QUIET, embedder="none") as opened:
        yield opened


async def say(memory: aforesaid.Memory, text: str, user: str = "100", name: str = "Eve", **more: Any) -> str | None:  # noqa: ANN401
    """Say something in the channel `general`, where Eve, Sergey, Florent and Ann are."""
    there = memory.user(user, space="guild", thread="general")
    message = (await there.add("user", text, name=name)).message
    answer = await Assistant(memory).requested(Turn(there, text, message, name, PEOPLE, **more))
    return None if answer is None else answer.text


async def facts(memory: aforesaid.Memory, user: str) -> str:
    return await memory.user(user, space="guild").portrait() or ""


@pytest.mark.req("B12")
async def test_the_four_commands_of_the_document_by_rules(memory: aforesaid.Memory) -> None:
    assert await say(memory, "Bot remember that gruzilkin is Sergey") == "I will remember that about Sergey."
    assert "Sergey" in await facts(memory, "101")
    await memory.user("102", space="guild", thread="general").add("user", "I moved to Paris in May.", name="Florent")
    assert await say(memory, "Bot, remember this about Florent") == "I will remember that about Florent."
    assert "Paris" in await facts(memory, "102")
    await say(memory, "Bot remember that gruzilkin likes pizza")
    assert "forgotten" in str(await say(memory, "Bot forget that gruzilkin likes pizza"))
    assert "knew nothing" in str(await say(memory, "Bot forget that gruzilkin likes pizza"))
    assert "pizza" not in await facts(memory, "101")
    assert "Paris" in str(await say(memory, "Bot what do you know about <@102>"))
    assert await say(memory, "Bot what do you know about @flo?") == await facts(memory, "102")
    assert await facts(memory, "100") == ""


@pytest.mark.req("B12")
async def test_a_model_routes_where_there_is_one(tmp_path: Path) -> None:
    replies: list[Any] = [
        {"action": "remember", "about": "Florent", "fact": "Florent moved to Paris"},
        {"action": "query", "about": "flo", "fact": ""},
        {"action": "none", "about": "", "fact": ""},
        {"action": "forget", "about": "Florent", "fact": "Florent moved to Paris"},
    ]
    with ScriptedModel(replies) as model:
        settings = {
            "providers.s.base_url": model.base_url,
            "models.route.chain": "s:scripted",
            "resilience.attempts": 1,
        }
        async with aforesaid.connect(
            tmp_path / "memory.db", profile=QUIET, embedder="none", settings=settings
        ) as memory:
            there = memory.user("102", space="guild", thread="general")
            await there.add("user", "I moved to Paris, <@101>!", name="Florent")
            assert await say(memory, "Bot, keep in mind what he said") == "I will remember that about Florent."
            shown = model.requests[0].asked
            assert "@Sergey!" in shown
            assert 'from="Florent"' in shown
            assert 'from="Eve"' in shown
            assert "101" not in shown
            assert "Paris" in str(await say(memory, "Bot, do you recall where flo lives?"))
            assert await say(memory, "I cannot remember his name") is None
            assert "forgotten" in str(await say(memory, "Bot, forget where he lives"))
            assert len(model.requests) == 4
            # What cannot be a request is not worth a question.
            assert await say(memory, "What a lovely day!") is None
            assert len(model.requests) == 4


async def test_rules_take_over_when_the_model_fails(tmp_path: Path) -> None:
    with ScriptedModel() as model:
        model.fail(faults.ServerError())
        settings = {
            "providers.s.base_url": model.base_url,
            "models.route.chain": "s:scripted",
            "resilience.attempts": 1,
        }
        async with aforesaid.connect(
            tmp_path / "memory.db", profile=QUIET, embedder="none", settings=settings
        ) as memory:
            assert await say(memory, "Bot remember that I like tea") == "I will remember that."
            assert "tea" in await facts(memory, "100")


async def test_nobody_learns_in_private_what_is_known_about_others(memory: aforesaid.Memory) -> None:
    await memory.user("102").remember("I have a secret crush", name="Florent")
    eve = memory.user("100")
    for text in ("what do you know about <@102>?", "what do you know about Florent?", "forget that <@102> has a crush"):
        message = (await eve.add("user", text)).message
        answer = await Assistant(memory).requested(Turn(eve, text, message, "Eve", PEOPLE))
        assert answer is None or "crush" not in answer.text.replace("has a crush", "")
    assert "crush" in str(await memory.user("102").portrait())


async def test_two_people_of_one_name_are_not_mixed_up(memory: aforesaid.Memory) -> None:
    there = memory.user("104", space="guild", thread="general")
    await there.add("user", "hello", name="Florent")
    assert "several people called" in str(await say(memory, "Bot remember that Florent likes tea"))
    assert await facts(memory, "102") == await facts(memory, "104") == ""
    assert await say(memory, "Bot remember that <@104> likes tea") == "I will remember that about Florent."


async def test_a_first_name_will_do(memory: aforesaid.Memory) -> None:
    assert await say(memory, "Bot remember that Ann is a doctor") == "I will remember that about Ann Miller."


@pytest.mark.defect("B4")
@pytest.mark.req("G4")
async def test_what_is_said_about_a_stranger_is_not_filed_under_the_speaker(memory: aforesaid.Memory) -> None:
    assert "I know nobody here called Zoe" in str(await say(memory, "Bot remember that Zoe is a pilot"))
    assert "pilot" not in await facts(memory, "100")
    (kept,) = await memory.user("100", space="guild").memories()
    assert ("Zoe is a pilot" in kept.text, kept.about, kept.speaker) == (True, "Zoe", "100")
    assert "Zoe is a pilot" in str(await say(memory, "Bot what do you know about Zoe?"))


@pytest.mark.defect("B4")
@pytest.mark.req("G4")
async def test_somebody_who_spoke_long_ago_is_known_by_name_after_a_restart(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db", profile=QUIET, embedder="none") as memory:
        await memory.user("105", space="guild", thread="sports").add("user", "Hello!", name="Tom Baker")
        for number in range(60):
            await memory.user("100", space="guild", thread="general").add("user", f"word {number}", name="Eve")
    async with aforesaid.connect(tmp_path / "memory.db", profile=QUIET, embedder="none") as memory:
        said = await say(memory, "Bot remember that Tom supports Arsenal")
        assert said == "I will remember that about Tom Baker."
        assert "Arsenal" in await facts(memory, "105")
        assert "Arsenal" not in await facts(memory, "100")
        assert "Arsenal" in str(await say(memory, "Bot what do you know about Tom?"))


@pytest.mark.defect("B3")
@pytest.mark.req("G6")
async def test_a_reminder_in_free_text_is_set_and_confirmed_without_a_model(memory: aforesaid.Memory) -> None:
    eve = memory.user("100", space="guild")
    await eve.set("time_zone", "Europe/Berlin")
    told = str(await say(memory, "Bot, remind me tomorrow at 9 to call mum"))
    (reminder,) = await eve.reminders()
    assert reminder.remind_at is not None
    local = reminder.remind_at.astimezone(ZoneInfo("Europe/Berlin"))
    assert (local.date(), local.hour) == (datetime.now(ZoneInfo("Europe/Berlin")).date() + timedelta(days=1), 9)
    assert told == f"I will remind you on {local:%A}, {local.day} {local:%B %Y} at 09:00 (Europe/Berlin): call mum"


async def test_a_request_that_the_bot_carried_out_is_not_learned_once_more(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db", profile={"summaries": "none"}, embedder="none") as memory:
        await say(memory, "Remind me tomorrow at 9 to call mum")
        await memory.upkeep()
        assert [each.text for each in await memory.user("100", space="guild").reminders()] == ["call mum"]


async def test_what_somebody_else_says_that_is_sensitive_waits(memory: aforesaid.Memory) -> None:
    said = str(await say(memory, "Bot remember that Florent has cancer"))
    assert "quarantined" in said
    assert "cancer" not in await facts(memory, "102")


async def test_a_quoted_message_is_what_this_points_at(memory: aforesaid.Memory) -> None:
    await say(memory, "Bot remember this about Florent", quoted="Florent plays the cello")
    assert "cello" in await facts(memory, "102")


async def test_forgetting_everything_needs_a_confirmation(memory: aforesaid.Memory) -> None:
    await say(memory, "Bot remember that I like tea")
    assert "/forget_me" in str(await say(memory, "Bot forget everything about me"))
    assert "tea" in await facts(memory, "100")


@pytest.mark.req("G20")
@pytest.mark.defect("Q3")
@pytest.mark.parametrize("found", [False, True])
async def test_a_fact_that_a_model_leaves_is_forgotten_all_the_same(tmp_path: Path, found: bool) -> None:  # noqa: FBT001
    """The model says that there is no such fact, or that it removed it, and leaves it."""
    replies: list[Any] = [
        {"facts": "Eve likes tea."},
        {"action": "forget", "about": "Eve", "fact": "likes tea"},
        {"found": found, "facts": "Eve likes tea."},
        {"action": "forget", "about": "Eve", "fact": "everything about me"},
    ]
    with ScriptedModel(replies) as model:
        settings = {
            "providers.s.base_url": model.base_url,
            "models.route.chain": "s:scripted",
            "models.merge.chain": "s:scripted",
        }
        async with aforesaid.connect(tmp_path / "m.db", profile=QUIET, embedder="none", settings=settings) as memory:
            eve = memory.user("100", space="guild")
            await eve.remember("likes tea", name="Eve")
            told = await say(memory, "Bot forget that I like tea")
            assert told == "I have forgotten: Eve likes tea."
            assert (await eve.facts())[-1].text == ""
            assert "tea" not in str([each.text for each in await eve.memories()])
            assert "/forget_me" in str(await say(memory, "Bot forget everything about me"))


@pytest.mark.defect("Q3")
async def test_only_somebody_themselves_can_have_everything_erased(memory: aforesaid.Memory) -> None:
    await say(memory, "Bot remember that Florent likes jazz")
    told = str(await say(memory, "Bot forget everything about Florent"))
    assert told.startswith("I forget single things: tell me what to forget about Florent.")
    assert "jazz" in await facts(memory, "102")


async def test_what_was_forgotten_is_not_learned_again_from_the_words_that_named_it(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db", profile={"summaries": "none"}, embedder="none") as memory:
        ann, assistant = memory.user("ann"), Assistant(memory)
        assert await assistant.command(ann, "Bot remember that I like tea") is not None
        await memory.upkeep()
        answer = await assistant.command(ann, "Bot forget that I like tea")
        assert answer is not None
        assert "forgotten" in answer.text
        await memory.upkeep()
        assert await ann.memories() == []
        log = [(message.role, message.text) for message in await ann.history()]
    assert [role for role, _ in log] == ["user", "assistant"] * 2


@pytest.mark.req("B11")
async def test_models_see_names_and_never_ids(tmp_path: Path) -> None:
    def script(request: Request) -> Any:  # noqa: ANN401
        return {"action": "none", "about": "", "fact": ""} if request.schema else "Hello."

    with ScriptedModel(script) as model:
        settings = {"providers.s.base_url": model.base_url, "models.default": "s:scripted"}
        async with aforesaid.connect(
            tmp_path / "memory.db", profile="community", embedder="none", settings=settings
        ) as memory:
            flo = memory.user("102", space="guild", thread="general")
            await flo.add("user", "Ask <@101> or <@!103>, not <@999>", name="Florent")
            await flo.remember("I know <@101>", name="Florent")
            there = memory.user("102", space="guild", thread="general")
            text = "Do you remember <@101>?"
            message = (await there.add("user", text, name="Florent")).message
            turn = Turn(there, text, message, "Florent", PEOPLE)
            assert await Assistant(memory).requested(turn) is None
            pieces = [piece async for piece in Assistant(memory).answer(turn)]
            assert "".join(pieces) == "Hello."
        for request in model.requests[-2:]:
            sent = str(request.body["messages"])
            assert "@Sergey" in sent
            assert not any(number in sent for number in ("101", "102", "103", "999"))
        assert "@Ann Miller" in sent
        assert "@somebody" in sent
        assert message.text == text


@pytest.mark.parametrize(
    "text",
    [
        "Merk dir, dass ich Tee mag",
        "Запомни: я люблю чай",
        "记住我喜欢茶",
        "Zapamiętaj, że lubię herbatę",
        "覚えておいて",
    ],
)
def test_requests_in_many_languages_are_worth_a_look(text: str) -> None:
    assert may_ask(text)
    assert not may_ask("What a lovely day")


@pytest.mark.defect("B12")
async def test_the_portrait_states_what_was_asked_to_be_remembered_and_does_not_quote_it(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db", profile={"summaries": "none"}, embedder="none") as memory:
        await say(memory, "Bot remember that I have a daughter")
        await say(memory, "Bot what do you know about me?")
        await memory.upkeep()
        assert await facts(memory, "100") == "Eve has a daughter."
