"""Reminders that are corrected: their time and their text change together, or each alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from aforesaid.errors import InvalidInput
from facts.talking import connect

NEXT_YEAR = datetime.now(UTC).year + 1
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.defect("P8")
@pytest.mark.req("G6")
async def test_a_new_text_with_another_time_moves_a_reminder(location: str) -> None:
    async with connect(location) as memory:
        ann = memory.user("ann")
        reminder = await ann.note("reminder", f"Call mum on December 1, {NEXT_YEAR} at 10am")
        edited = await ann.edit_memory(reminder.id, text=f"Call mum on December 3, {NEXT_YEAR} at 10am")
        assert edited.remind_at == datetime(NEXT_YEAR, 12, 3, 10, 0, tzinfo=UTC)
        assert edited.event is not None
        assert edited.event.start == edited.remind_at


@pytest.mark.defect("P8")
async def test_the_time_alone_and_the_text_alone_can_be_changed() -> None:
    async with connect() as memory:
        ann = memory.user("ann")
        reminder = await ann.note("reminder", f"Call mum on December 1, {NEXT_YEAR} at 10am")
        moved = await ann.edit_memory(reminder.id, when=datetime(NEXT_YEAR, 12, 5, 8, 0, tzinfo=UTC))
        assert (moved.text, moved.remind_at) == (reminder.text, datetime(NEXT_YEAR, 12, 5, 8, 0, tzinfo=UTC))
        renamed = await ann.edit_memory(reminder.id, text="Call dad")
        assert (renamed.text, renamed.remind_at) == ("Call dad", moved.remind_at)


async def test_a_corrected_typo_does_not_move_tomorrow() -> None:
    async with connect() as memory:
        ann = memory.user("ann")
        reminder = await ann.note("reminder", "Call mun tomorrow at 7")
        edited = await ann.edit_memory(reminder.id, text="Call mum tomorrow at 7")
        assert edited.remind_at == reminder.remind_at


@pytest.mark.defect("P8")
async def test_words_and_times_without_a_zone_are_in_the_zone_of_the_person() -> None:
    async with connect() as memory:
        ann = memory.user("ann")
        await ann.set("time_zone", "Europe/Berlin")
        reminder = await ann.note("reminder", "Call mum", when=f"{NEXT_YEAR}-07-01 10:00")
        assert reminder.remind_at == datetime(NEXT_YEAR, 7, 1, 8, 0, tzinfo=UTC)
        moved = await ann.edit_memory(reminder.id, when=datetime(NEXT_YEAR, 1, 1, 10, 0))  # noqa: DTZ001 - the point
        assert moved.remind_at == datetime(NEXT_YEAR, 1, 1, 9, 0, tzinfo=UTC)
        tomorrow = await ann.edit_memory(reminder.id, when="tomorrow at 7")
        assert tomorrow.remind_at is not None
        assert tomorrow.remind_at.astimezone(BERLIN).hour == 7


@pytest.mark.req("G6")
async def test_a_reminder_is_never_set_in_the_past() -> None:
    async with connect() as memory:
        ann = memory.user("ann")
        with pytest.raises(InvalidInput, match="is in the past"):
            await ann.note("reminder", "Call mum on 3 May 2020 at 10am")
        with pytest.raises(InvalidInput, match="is in the past"):
            await ann.note("reminder", "Call mum", when="2020-05-03 10:00")
        with pytest.raises(InvalidInput, match="is in the past"):
            await ann.note("reminder", "Call mum", when=datetime(2020, 5, 3, 10, tzinfo=UTC))
        today = await ann.note("reminder", "Call mum today")
        assert today.remind_at is not None
        assert today.remind_at > datetime.now(UTC)
        with pytest.raises(InvalidInput, match="no time can be read"):
            await ann.edit_memory(today.id, when="whenever")
        with pytest.raises(InvalidInput, match="is in the past"):
            await ann.edit_memory(today.id, when=datetime(2020, 5, 3, 10, tzinfo=UTC))
        assert (await ann.read_memory(today.id)).remind_at == today.remind_at


@pytest.mark.parametrize(
    ("when", "named"),
    [
        ("2020-05-03", "Sunday, 03 May 2020"),
        ("2020-05-03 10:00", "Sunday, 03 May 2020, 10:00"),
        ("May 2020", "Friday, 01 May 2020 to Sunday, 31 May 2020"),
    ],
)
async def test_a_time_in_the_past_is_named_as_it_was_asked_for(when: str, named: str) -> None:
    async with connect() as memory:
        await memory.user("ann").set("time_zone", "America/New_York")
        with pytest.raises(InvalidInput) as refused:
            await memory.user("ann").note("reminder", "Call mum", when=when)
        assert str(refused.value).startswith(f"{named} (America/New_York) is in the past")
        with pytest.raises(InvalidInput, match=rf"^{named} \(America/New_York\) is in the past"):
            await memory.user("ann").note("reminder", f"Call mum on {when}")


async def test_a_delivered_reminder_that_is_moved_rings_again() -> None:
    async with connect() as memory:
        ann = memory.user("ann")
        reminder = await ann.note("reminder", "Call mum", when=datetime.now(UTC) - timedelta(minutes=1))
        assert await ann.delivered(reminder.id)
        later = datetime.now(UTC) + timedelta(hours=1)
        await ann.edit_memory(reminder.id, when=later)
        assert [each.id for each in await memory.reminders(at=later)] == [reminder.id]


async def test_a_reminder_that_was_learned_before_it_was_set_does_not_ring_twice() -> None:
    async with connect() as memory:
        ann = memory.user("ann")
        message = (await ann.add("user", "Remind me to call the bank tomorrow at 10am.")).message
        await memory.upkeep()
        await ann.note("reminder", "call the bank", when="tomorrow at 10am", source=message)
        assert [each.text for each in await ann.reminders()] == ["call the bank"]


async def test_a_learned_reminder_whose_time_was_over_never_rings() -> None:
    async with connect() as memory:
        ann = memory.user("ann")
        await ann.add("user", "Remind me to call the bank on 3 May 2020 at 10am.")
        await memory.upkeep()
        assert await memory.reminders() == []


async def test_a_message_that_led_to_a_reminder_is_not_learned_as_another() -> None:
    async with connect() as memory:
        ann = memory.user("ann")
        message = (await ann.add("user", "Remind me to call the bank tomorrow at 10am.")).message
        await ann.note("reminder", "call the bank", when="tomorrow at 10am", source=message)
        await memory.upkeep()
        assert [each.text for each in await ann.reminders()] == ["call the bank"]
