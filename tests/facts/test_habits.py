"""Preferences and style, counted in what somebody says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from aforesaid.memory import Memory, UserMemory
from aforesaid.store.memories import DerivedText
from aforesaid.store.messages import MessagesAfter
from facts.talking import connect
from intercepting import Read, intercept

EVENING = datetime(2026, 3, 5, 20, 15, tzinfo=UTC)


async def talk(user: UserMemory) -> None:
    for day in range(4):
        at = EVENING + timedelta(days=day)
        await user.add("user", f"Tell me something about gardening and roses, please. Day {day}", at=at)
        await user.add("assistant", "Roses like sun, water, and a lot of patience. " * 8)
        await user.add("user", "That was too long! 🌹", at=at + timedelta(minutes=1))
    await user.add("user", "Danke, das reicht mir für heute.", at=EVENING.replace(hour=6))


async def test_topics_hours_languages_lengths_and_tone_are_counted(location: str) -> None:
    async with connect(location, time_zone="Asia/Tokyo") as memory:
        user = memory.user("ann")
        await talk(user)
        await user.remember("I like roses")
        seen = await user.preferences()
        assert seen.turns == 9
        assert dict(seen.topics)["gardening"] == 4
        assert dict(seen.topics)["roses"] == 4
        assert "something" not in dict(seen.topics)
        assert seen.hours[0] == (5, 8)
        assert dict(seen.languages) == {"english": 8, "german": 1}
        assert seen.reply_length == "short"
        assert dict(seen.tone)["emoji"] == 4
        assert dict(seen.tone)["polite"] == 4
        assert seen.stated == ("ann likes roses.",)
        described = seen.describe()
        assert "gardening (4)" in described
        assert "short" in described


async def test_habits_counted_during_a_purge_are_not_stored(location: str) -> None:
    async with connect(location, extract=False) as memory:
        user = memory.user("ann")
        await talk(user)

        async def purge_after(read: Read, question: MessagesAfter) -> object:
            found = await read(question)
            if found:
                await memory.purge("ann")
            return found

        end = intercept(memory.store, MessagesAfter, purge_after)
        await user.preferences()
        end()
        assert await memory.store.read(DerivedText(user.scope, "habits")) is None
        assert await memory.users() == []


async def test_every_message_is_read_once_also_after_a_restart(location: str) -> None:
    async def counting(memory: Memory) -> list[int]:
        reads: list[int] = []

        async def counted(read: Read, question: MessagesAfter) -> object:
            found = await read(question)
            reads.append(len(found))
            return found

        intercept(memory.store, MessagesAfter, counted)
        return reads

    async with connect(location, extract=False) as memory:
        user = memory.user("ann")
        await talk(user)
        first = await user.preferences()
        if location == ":memory:":
            reads = await counting(memory)
            assert await user.preferences() == first
            assert sum(reads) == 0
            return
    async with connect(location, extract=False) as memory:
        user = memory.user("ann")
        reads = await counting(memory)
        assert await user.preferences() == first
        assert sum(reads) == 0
        await user.add("user", "More roses please, in detail.")
        second = await user.preferences()
        assert sum(reads) == 1
        assert (second.turns, dict(second.topics)["roses"]) == (10, 5)


async def test_a_reply_that_pleased_says_how_long_replies_should_be() -> None:
    async with connect() as memory:
        user = memory.user("ann")
        await user.add("user", "How do I prune roses?")
        await user.add("assistant", "word " * 100)
        await user.add("user", "Thanks, perfect!")
        assert (await user.preferences()).reply_length == "long"


async def test_what_others_say_and_what_nobody_says_counts_nothing() -> None:
    async with connect() as memory:
        user = memory.user("ann")
        empty = await user.preferences()
        assert (empty.turns, empty.topics, empty.reply_length, empty.describe()) == (0, (), "unknown", "")
        await user.add("user", "football football", author="bob")
        assert (await user.preferences()).turns == 0
