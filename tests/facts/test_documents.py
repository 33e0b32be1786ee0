"""The examples of the documents."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from aforesaid.errors import InvalidInput
from facts.talking import asked, connect, model, say

MERGED = (
    "Berlin-based software engineer at TechCorp who manages work stress through exercise and enjoys outdoor activities "
    "like hiking. Has consistent healthy coping strategies and is currently excited but slightly anxious about a new "
    "project timeline."
)


@pytest.mark.req("B1")
async def test_facts_merge_into_third_person_text_and_newer_wins(location: str) -> None:
    async with connect(location) as memory:
        user = memory.user("42", space="900")
        await user.remember("Software engineer at TechCorp, lives in Berlin, enjoys hiking")
        await user.remember("I live in Hamburg", name="Max")
        facts = (await user.facts())[-1].text
        assert "Hamburg" in facts
        assert "Berlin" not in facts
        assert "TechCorp" in facts
        assert "hiking" in facts
        assert "I live" not in facts
        assert await memory.user("42", space="another").portrait() is None


@pytest.mark.req("B1", "B2")
async def test_gruzilkin_is_sergey_and_no_longer_likes_pizza(location: str) -> None:
    async with connect(location) as memory:
        user = memory.user("gruzilkin", space="900")
        await user.remember("that gruzilkin is Sergey")
        await user.remember("that gruzilkin likes pizza")
        assert await user.portrait() == "gruzilkin is Sergey.\ngruzilkin likes pizza."
        forgotten = await user.forget("that gruzilkin likes pizza")
        assert forgotten
        assert forgotten.found
        assert forgotten.facts == "gruzilkin is Sergey."
        unknown = await user.forget("that gruzilkin likes sushi")
        assert (bool(unknown), unknown.found) == (False, False)
        assert await user.portrait() == "gruzilkin is Sergey."
        versions = await user.facts()
        assert [(version.version, version.cause) for version in versions] == [
            (1, "that gruzilkin is Sergey"),
            (2, "that gruzilkin likes pizza"),
            (3, "forget: that gruzilkin likes pizza"),
        ]


async def test_gruzilkin_with_a_model(location: str) -> None:
    scripted = model(
        {
            "remember": [{"facts": "gruzilkin is Sergey."}, {"facts": "gruzilkin is Sergey and likes pizza."}],
            "forget": [{"found": True, "facts": "gruzilkin is Sergey."}, {"found": False, "facts": "ignored"}],
        }
    )
    async with scripted, connect(location, scripted=scripted) as memory:
        user = memory.user("gruzilkin")
        await user.remember("that gruzilkin is Sergey")
        await user.remember("that gruzilkin likes pizza")
        assert (await user.facts())[-1].text == "gruzilkin is Sergey and likes pizza."
        assert (await user.forget("that gruzilkin likes pizza")).found
        missing = await user.forget("that gruzilkin plays chess")
        assert (missing.found, missing.facts) == (False, "gruzilkin is Sergey.")
        assert await user.portrait() == "gruzilkin is Sergey."
        assert {request.body.get("temperature") for request in asked(scripted, "remember")} == {0}


@pytest.mark.req("D2", "D3")
async def test_the_funeral_is_on_monday_at_nine(location: str) -> None:
    async with connect(location) as memory:
        user = memory.user("ann")
        await say(user, "Good morning!", "I have a funeral at church on Monday at 9am.", reply="I am sorry.")
        await memory.upkeep()
        (funeral,) = await user.memories("schedule", active=None)
        assert funeral.event is not None
        assert (funeral.event.start, funeral.event.timed) == (datetime(2026, 3, 9, 9, 0, tzinfo=UTC), True)
        assert funeral.importance >= 9
        assert funeral.band.colour == "red"
        (source,) = funeral.sources
        (said,) = [message for message in await user.history() if message.seq == source]
        assert (said.text, said.session, funeral.user) == (
            "I have a funeral at church on Monday at 9am.",
            said.session,
            "ann",
        )


async def test_what_do_i_have_monday_is_answered_by_time_and_by_search(location: str) -> None:
    async with connect(location) as memory:
        user = memory.user("ann")
        now = datetime.now(UTC)
        monday = now + timedelta(days=(7 - now.weekday()) % 7 or 7)
        await say(user, "I have a funeral at church on Monday at 9am.", "I like tea.", at=now)
        await memory.upkeep()
        found = await user.schedule("What do I have Monday?", at=now)
        assert ["funeral" in each.text for each in found] == [True]
        assert found[0].event is not None
        assert found[0].event.start.date() == monday.date()
        assert await user.schedule("What do I have on Wednesday?", at=now) == []
        hits = await user.search("What do I have Monday?", kinds=["memory"])
        assert "funeral" in hits[0].text


async def test_on_a_monday_monday_is_today_as_well() -> None:
    async with connect() as memory:
        user = memory.user("ann")
        monday = datetime(2126, 3, 4, 7, 0, tzinfo=UTC)
        assert monday.weekday() == 0
        await user.note("schedule", "Dentist", when=monday + timedelta(hours=2))
        await user.note("schedule", "Gym", when=monday + timedelta(days=7))
        await user.note("schedule", "Cinema", when=monday + timedelta(days=1))
        assert [each.text for each in await user.schedule("What do I have Monday?", at=monday)] == ["Dentist", "Gym"]
        assert [each.text for each in await user.schedule("and tomorrow?", at=monday)] == ["Cinema"]
        assert [each.text for each in await user.schedule(at=monday)] == ["Dentist", "Cinema", "Gym"]


async def test_the_schedule_has_neither_tasks_without_a_day_nor_facts_with_one() -> None:
    async with connect() as memory:
        user = memory.user("ann")
        monday = datetime(2126, 3, 4, 7, 0, tzinfo=UTC)
        await user.note("task", "Buy a lamp")
        await user.note("fact", "The museum opens", when=monday + timedelta(days=1))
        await user.note("schedule", "Dentist", when=monday + timedelta(days=1))
        assert [each.text for each in await user.schedule(at=monday)] == ["Dentist"]
        assert [each.text for each in await user.schedule("tomorrow", at=monday)] == ["Dentist"]


@pytest.mark.req("D2")
async def test_all_six_categories_can_be_noted_and_an_unknown_one_cannot() -> None:
    async with connect() as memory:
        user = memory.user("ann")
        for category in ("schedule", "fact", "task", "preference", "reminder", "other"):
            await user.note(category, f"a {category} of mine")
            assert len(await user.memories(category)) == 1
        with pytest.raises(InvalidInput, match="unknown category"):
            await user.note("gossip", "no")  # type: ignore[arg-type]
