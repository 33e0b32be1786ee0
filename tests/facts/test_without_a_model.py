"""With no model at all: remembering, forgetting, notes, schedules, the portrait; and nothing is made up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from aforesaid.store.memories import Memories, Tombstones
from aforesaid.text.words import words_of
from facts.talking import connect, paused, say, texts
from intercepting import Read, intercept

SAID = [
    "Hello there!",
    "I live in Berlin and I work at TechCorp as an engineer.",
    "My sister Clara lives in Rome.",
    "I love hiking but I hate coffee.",
    "What do you think about jazz?",
    "If I won the lottery I would buy a yacht.",
    "Just kidding, I am a dragon.",
    "I'm allergic to peanuts.",
    "Remind me to call the bank tomorrow at 10am.",
    "I have a dentist appointment tomorrow at 9am.",
    "Ich wohne seit 2019 in Hamburg.",
    "Me gusta el fútbol.",
    "我住在北京。",
    "ok",
]


@pytest.mark.req("D3")
async def test_what_is_learned_was_said(location: str) -> None:
    """Every word of a memory occurs in what was said, but for names, dates and the forms of verbs."""
    now = datetime.now(UTC)
    async with connect(location) as memory:
        user = memory.user("ann")
        for text in SAID:
            await user.add("user", text, at=now, name="Ann")
            await user.add("assistant", "You could buy a yacht, a castle or a spaceship.")
        await memory.upkeep()
        known = await user.memories(active=None)
        joined = "\n".join(each.text for each in known)
        for word in ("Berlin", "TechCorp", "hiking", "coffee", "peanuts", "bank", "dentist", "Clara"):
            assert word in joined, word
        for word in ("yacht", "castle", "dragon", "jazz", "lottery", "spaceship"):
            assert word not in joined, word
        said = {word for text in SAID for word in words_of(text)}
        made = {word for each in known for word in words_of(each.text)}
        invented = {word for word in made - said if not word.isdigit()}
        assert invented <= {"ann", "s", "lives", "works", "loves", "hates", "is", "has", "their"}, invented
        assert all(each.sources for each in known)


@pytest.mark.req("B2")
async def test_what_was_forgotten_is_not_learned_again_from_what_is_old(location: str) -> None:
    async with connect(location) as memory:
        user = memory.user("ann")
        async with paused(memory):
            await say(user, "I like pizza.", "I like tea.")
            assert not (await user.forget("pizza")).found  # nobody has looked at it yet
        await memory.upkeep()
        assert await texts(user) == ["ann likes tea."]
        assert (await user.forget("that I like tea")).found
        await memory.upkeep()
        assert await texts(user) == []
        assert await user.portrait() is None
        assert await texts(user, at=datetime.now(UTC)) == []
        # Saying it again later counts.
        await user.add("user", "I like pizza again.")
        await memory.upkeep()
        assert await texts(user) == ["ann likes pizza again."]


async def test_what_is_forgotten_while_it_is_learned_is_not_stored_afterwards(location: str) -> None:
    """The learner has decided by what it read, then the person forgets, then the learner writes."""
    async with connect(location) as memory:
        user = memory.user("ann")
        async with paused(memory):
            await say(user, "I like pizza.", "I like tea.")

        async def forgotten_since(read: Read, question: Tombstones) -> object:
            answer = await read(question)
            end()
            await user.forget("that I like pizza")
            return answer

        end = intercept(memory.store, Tombstones, forgotten_since)
        await memory.upkeep()
        assert await texts(user) == ["ann likes tea."]
        assert (await user.memories(active=None))[0].times == 1


async def test_what_is_learned_while_it_is_forgotten_is_forgotten(location: str) -> None:
    """Forgetting has read the memories, then one is learned, then the request is stored."""
    async with connect(location) as memory:
        user = memory.user("ann")
        async with paused(memory):
            await say(user, "I like pizza.", "I like tea.")

            async def learned_since(read: Read, question: Memories) -> object:
                answer = await read(question)
                end()
                await memory.upkeep()
                return answer

            end = intercept(memory.store, Memories, learned_since)
            assert (await user.forget("that I like pizza")).found
        assert await texts(user) == ["ann likes tea."]


async def test_forgetting_keeps_what_says_something_else(location: str) -> None:
    async with connect(location) as memory:
        user = memory.user("ann")
        for fact in ("likes pizza", "works at Pizza Hut", "hates sushi", "likes tea and jazz"):
            await user.remember(fact)
        forgotten = await user.forget("that ann likes pizza")
        assert forgotten
        assert [each.text for each in forgotten.memories] == ["ann likes pizza."]
        assert await user.portrait() == "ann works at Pizza Hut.\nann hates sushi.\nann likes tea and jazz."


async def test_remembering_twice_is_known_and_writes_nothing() -> None:
    async with connect() as memory:
        user = memory.user("ann")
        assert (await user.remember("I like tea")).outcome == "stored"
        audit = await user.audit()
        assert (await user.remember("likes tea")).outcome == "known"
        assert await user.audit() == audit
        assert len(await user.facts()) == 1


async def test_remembering_changes_single_memories_too() -> None:
    async with connect() as memory:
        user = memory.user("ann")
        await user.remember("I live in Paris")
        await user.remember("I moved to Berlin")
        assert await texts(user) == ["ann moved to Berlin."]
        assert await texts(user, state="superseded") == ["ann lives in Paris."]
        assert await user.portrait() == "ann moved to Berlin."
        assert [hit.text for hit in await user.search("Where does ann live? Berlin?", kinds=["memory"])] == [
            "ann moved to Berlin."
        ]


async def test_what_do_you_know_about_me() -> None:
    async with connect() as memory:
        user = memory.user("ann")
        assert await user.portrait() is None
        await user.remember("my name is Ann")
        await say(user, "I live in Berlin.")
        await user.note("schedule", "Dentist", when=datetime.now(UTC) + timedelta(days=2))
        await memory.upkeep()
        portrait = await user.portrait()
        assert portrait is not None
        assert {"ann's name is Ann.", "ann lives in Berlin.", "Dentist"} == set(portrait.split("\n"))


async def test_a_user_of_numbers_is_called_by_the_name_they_showed() -> None:
    async with connect() as memory:
        user = memory.user(12345)
        await user.remember("likes tea")
        assert await user.portrait() == "The user likes tea."
        await user.add("user", "I live in Berlin.", name="Max")
        await memory.upkeep()
        assert "Max lives in Berlin." in await texts(user)
