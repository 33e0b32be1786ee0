"""Reminders become due, are delivered once to the right person, and go into any calendar."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from aforesaid.errors import InvalidInput
from aforesaid.facts import calendar
from facts.talking import connect, texts


@pytest.mark.req("D2")
async def test_a_reminder_becomes_due_and_is_delivered_once(location: str) -> None:
    now = datetime.now(UTC)
    async with connect(location) as memory:
        ann, bob = memory.user("ann"), memory.user("bob", space="work")
        await ann.add("user", "Remind me to call the bank tomorrow at 10am.", at=now - timedelta(days=1))
        await bob.note("reminder", "Water the plants", when=now - timedelta(minutes=1))
        await memory.upkeep()
        at = now + timedelta(days=1)
        due = await memory.reminders(at=at)
        assert {(each.space, each.user) for each in due} == {("default", "ann"), ("work", "bob")}
        assert [each.text for each in await bob.reminders(due=True)] == ["Water the plants"]
        (mine,) = await ann.reminders()
        assert mine.remind_at is not None
        assert (mine.remind_at.date(), mine.remind_at.hour) == (now.date(), 10)
        took = await asyncio.gather(*(ann.delivered(mine.id) for _ in range(5)))
        assert sorted(took) == [False] * 4 + [True]
        assert await ann.reminders() == []
        assert [each.user for each in await memory.reminders(at=at)] == ["bob"]
        assert (await ann.memories(state="expired"))[0].delivered_at is not None


async def test_what_is_not_due_yet_waits() -> None:
    now = datetime.now(UTC)
    async with connect() as memory:
        user = memory.user("ann")
        later = await user.note("reminder", "Call dad", when=now + timedelta(days=3))
        sooner = await user.note("reminder", "Call mum", when=now + timedelta(days=2))
        assert await memory.reminders() == []
        assert await user.reminders(due=True) == []
        assert [each.id for each in await user.reminders()] == [sooner.id, later.id]
        assert [each.id for each in await user.reminders(due=True, at=now + timedelta(days=2))] == [sooner.id]


async def test_a_reminder_without_a_time_is_listed_last_and_is_never_due(location: str) -> None:
    async with connect(location) as memory:
        user = memory.user("ann")
        someday = await user.note("reminder", "Learn Greek")
        dated = await user.note("reminder", "Call dad", when=datetime.now(UTC) + timedelta(days=3))
        assert someday.remind_at is None
        assert [each.id for each in await user.reminders()] == [dated.id, someday.id]
        assert await user.reminders(due=True, at=datetime.now(UTC) + timedelta(days=9)) == [dated]


async def test_a_day_without_a_time_reminds_in_the_morning_where_the_person_is() -> None:
    async with connect(time_zone="Europe/Berlin") as memory:
        user = memory.user("ann")
        await user.add("user", "Remind me to call mum tomorrow.", at=datetime(2126, 7, 1, 12, 0, tzinfo=UTC))
        await memory.upkeep()
        (reminder,) = await user.reminders()
        assert reminder.remind_at == datetime(2126, 7, 2, 7, 0, tzinfo=UTC)


async def test_what_is_no_reminder_cannot_be_delivered() -> None:
    async with connect() as memory:
        user = memory.user("ann")
        fact = await user.note("fact", "Ann likes tea")
        with pytest.raises(InvalidInput, match="no reminder"):
            await user.delivered(fact.id)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Pacific/Auckland", "America/Los_Angeles"])
async def test_a_calendar_holds_what_has_a_time(zone: str) -> None:
    async with connect(time_zone=zone) as memory:
        user = memory.user("ann")
        when = datetime(2126, 3, 9, 9, 0, tzinfo=UTC)
        await user.note(
            "schedule", "Funeral; church, 9am\nBring flowers \\ candles", when=when, importance=9, tags=["church"]
        )
        await user.note("reminder", "喝水" * 40, when=when)
        await user.note("fact", "Ann likes tea")
        await user.add("user", "My birthday party is on 2126-03-10.")
        await memory.upkeep()
        text = calendar(sorted(await user.memories(), key=lambda each: each.id), await user.time_zone())
    lines = text.split("\r\n")
    assert text.endswith("END:VCALENDAR\r\n")
    assert all(len(line.encode()) <= 75 for line in lines)
    unfolded = text.replace("\r\n ", "").split("\r\n")
    assert unfolded.count("BEGIN:VEVENT") == unfolded.count("END:VEVENT") == 3
    assert unfolded.count("BEGIN:VALARM") == 1
    assert "SUMMARY:Funeral\\; church\\, 9am\\nBring flowers \\\\ candles" in unfolded
    assert "DTSTART:21260309T090000Z" in unfolded
    assert "DTEND:21260309T100000Z" in unfolded
    assert "CATEGORIES:SCHEDULE,CHURCH" in unfolded
    assert "SUMMARY:" + "喝水" * 40 in unfolded
    assert "TRIGGER;VALUE=DATE-TIME:21260309T090000Z" in unfolded
    assert "DTSTART;VALUE=DATE:21260310" in unfolded
    assert "DTEND;VALUE=DATE:21260311" in unfolded
    assert not any("tea" in line for line in lines)


async def test_a_schedule_that_is_past_is_let_go_a_day_later() -> None:
    now = datetime.now(UTC)
    async with connect() as memory:
        user = memory.user("ann")
        await user.add("user", "I have a concert tomorrow at 8am.", at=now - timedelta(days=4))
        await user.note("schedule", "Theatre", when=now - timedelta(hours=3))
        await memory.upkeep()
        assert await texts(user) == ["Theatre"]
        (gone,) = await texts(user, state="expired")
        assert "concert" in gone
