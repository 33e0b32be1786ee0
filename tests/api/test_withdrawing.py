"""Editing, taking back and erasing messages through the API."""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

import aforesaid
from aforesaid import Part, ToolCall
from aforesaid.domain.message import Message
from aforesaid.domain.receipt import Receipt
from aforesaid.domain.scope import Subject
from aforesaid.errors import InvalidInput, NotFound, WrongState
from aforesaid.memory import Memory
from aforesaid.store import Progress
from aforesaid.store.agenda import Advance, PlannedEntry
from aforesaid.store.memories import AddMemory, MarkExtracted
from aforesaid.store.operations import Change
from aforesaid.store.summaries import AddView, Archive
from digesting import Scribe, remembering
from facts.talking import connect, paused
from making import minutes

CALL = ToolCall("c1", "weather", "{}")


def before_storing(memory: Memory, kinds: tuple[type, ...], act: Callable[[], Awaitable[object]]) -> None:
    """Do something just before the first change of these kinds is stored."""
    apply, done = memory.store.apply, False

    async def acting(changes: Sequence[Change], progress: Progress | None = None) -> Receipt:
        nonlocal done
        if not done and any(isinstance(change, kinds) for change in changes):
            done = True
            await act()
        return await apply(changes, progress)

    memory.store.apply = acting  # type: ignore[method-assign]


def texts(messages: list[Message]) -> list[str]:
    return [message.text for message in messages]


async def test_an_edit_keeps_what_it_does_not_name(location: str) -> None:
    async with aforesaid.connect(location) as memory:
        ann = memory.user("ann", thread="general")
        first = (
            await ann.add("user", "one", id="m1", author="carol", name="Carol", metadata={"a": 1}, reply_to="x")
        ).message
        second = (await memory.user("ann").edit(first, "two")).message
        assert (second.text, second.author, second.name, second.at) == ("two", "carol", "Carol", first.at)
        assert (second.thread, second.metadata, second.reply_to) == ("general", {"a": 1}, "x")
        third = (await ann.edit("m1", metadata={"b": 2}, kind="text")).message
        assert (third.text, third.metadata, third.kind) == ("two", {"b": 2}, "text")
        assert third.replaces == second.seq
        fourth = (await ann.edit(first, metadata={}, parts=[Part("image", name="a.png")])).message
        assert (fourth.text, fourth.metadata, fourth.parts) == ("two", {}, (Part("image", name="a.png"),))
        assert texts(await ann.history()) == ["two"]
        assert len(await ann.history(versions=True)) == 4


async def test_an_edit_that_changes_nothing_stores_nothing() -> None:
    async with aforesaid.connect(":memory:") as memory:
        ann = memory.user("ann")
        first = (await ann.add("user", "one", metadata={"a": 1})).message
        edited = await ann.edit(first, "two")
        again = await ann.edit(first, "two", metadata={"a": 1})
        assert (again.duplicate, again.message) == (True, edited.message)
        assert len(await ann.history(versions=True)) == 2


async def test_an_edited_text_takes_the_place_of_the_parts_that_are_text() -> None:
    async with aforesaid.connect(":memory:") as memory:
        ann = memory.user("ann")
        parts = [Part("text", "Look!"), Part("image", "a cat")]
        first = (await ann.add("user", parts=parts)).message
        second = (await ann.edit(first, "See!")).message
        assert (second.text, second.parts) == ("See!", (Part("image", "a cat"),))
        third = (await ann.edit(first, parts=[Part("image", "a dog")])).message
        assert third.text == "See!", "words that were given stay"
        other = (await ann.add("user", parts=parts)).message
        changed = (await ann.edit(other, parts=[Part("image", "a dog")])).message
        assert changed.text == "a dog", "words that were made of the parts are made again"


async def test_a_message_that_was_taken_back_is_gone_for_readers(location: str) -> None:
    async with aforesaid.connect(location) as memory:
        ann = memory.user("ann")
        secret = (await ann.add("user", "My secret is marzipan.")).message
        await ann.add("assistant", "I will not tell.")
        await ann.context("What is my secret?", budget=1000)
        receipt = await ann.take_back(secret)
        assert receipt.message.taken_back
        assert texts(await ann.history()) == ["I will not tell."]
        assert await ann.search("marzipan", kinds=("message",)) == []
        context = await ann.context("What is my secret?", budget=1000)
        assert "marzipan" not in context.text
        assert "marzipan" not in str(await ann.messages_for_llm())
        again = await ann.take_back(secret.id)
        assert (again.duplicate, again.message.seq) == (True, receipt.message.seq)
        with pytest.raises(WrongState):
            await ann.edit(secret, "something else")
        for wrong in ("unknown", "#99"):
            with pytest.raises(NotFound):
                await ann.take_back(wrong)
        with pytest.raises(NotFound):
            await memory.user("bob").take_back(secret)
        assert [row.action for row in await ann.audit()] == ["messages.take_back"]


async def test_summaries_are_made_again_without_what_was_taken_back(location: str) -> None:
    scribe = Scribe()
    async with remembering(location, {"extends": "companion", "summaries": "tree"}, chat=scribe) as memory:
        ann = memory.user("ann")
        said = []
        for count in range(10):
            at = minutes(count)
            said.append((await ann.add("user", f"Line {count}, and marzipan{count}.", at=at)).message)
            await ann.add("assistant", "I see.", at=at + timedelta(seconds=5))
        await memory.upkeep()
        (before,) = await ann.summaries(kind="tree")
        scribe.asked.clear()
        await ann.take_back(said[3])
        assert await ann.summaries(kind="tree") == []
        await memory.upkeep()
        (after,) = await ann.summaries(kind="tree")
        assert (after.id > before.id, after.messages) == (True, 19)
        (asked,) = [text for operation, text in scribe.asked if operation == "summarize"]
        assert "marzipan2" in asked
        assert "marzipan3" not in asked
        assert (await memory.verify()).ok


@pytest.mark.parametrize("policy", ["tree", "rolling", "tiers"])
async def test_a_conversation_that_was_taken_back_leaves_nothing_to_summarise(policy: str) -> None:
    scribe = Scribe()
    async with remembering(":memory:", {"extends": "companion", "summaries": policy}, chat=scribe) as memory:
        ann = memory.user("ann")
        for count in range(3):
            await ann.take_back((await ann.add("user", f"marzipan {count}", at=minutes(count))).message)
        await ann.summarize()
        assert "marzipan" not in str(scribe.asked)
        assert all("marzipan" not in summary.text for summary in await ann.summaries(active=None))


@pytest.mark.parametrize("policy", ["tree", "rolling", "tiers", "calendar"])
async def test_words_that_are_taken_back_while_they_are_summarised_are_in_no_summary(
    location: str, policy: str
) -> None:
    async with remembering(location, {"extends": "companion", "summaries": policy}) as memory:
        ann = memory.user("ann")
        secret = (await ann.add("user", "My secret is marzipan.", at=minutes(-240))).message
        for count in range(1, 60):
            await ann.add("assistant" if count % 2 else "user", f"Line {count} of the report.", at=minutes(count - 240))
        before_storing(memory, (Archive, AddView), lambda: ann.take_back(secret))
        for _ in range(2):
            await (ann.day() if policy == "calendar" else ann.summarize())
        found = await ann.summaries(active=None)
        assert found
        assert all("marzipan" not in summary.text for summary in found)
        assert (await memory.verify()).ok


@pytest.mark.parametrize("edited", [True, False])
async def test_words_that_are_withdrawn_while_memories_are_extracted_are_no_memory(
    location: str, *, edited: bool
) -> None:
    async with connect(location) as memory:
        ann = memory.user("ann")
        async with paused(memory):
            first = (await ann.add("user", "My dog is called Zorbinax.")).message
            await ann.add("user", "I live in Lisbon.")
        before_storing(
            memory, (AddMemory,), lambda: ann.edit(first, "My cat is called Ada.") if edited else ann.take_back(first)
        )
        await memory.upkeep()
        found = [each.text for each in await ann.memories(active=None)]
        assert not [text for text in found if "Zorbinax" in text]
        assert [text for text in found if "Lisbon" in text]
        assert bool([text for text in found if "Ada" in text]) is edited


async def test_an_edit_takes_the_memories_of_the_old_words_with_it(location: str) -> None:
    async with connect(location) as memory:
        ann = memory.user("ann")
        first = (await ann.add("user", "I live in Lisbon. My dog is called Rex.")).message
        await memory.upkeep()
        assert len(await ann.memories()) == 2
        await ann.add("user", "I have a parrot. My dog is called Rex.", replaces=first)
        assert await ann.memories() == []
        await memory.upkeep()
        found = [each.text for each in await ann.memories()]
        assert not [text for text in found if "Lisbon" in text]
        assert [text for text in found if "parrot" in text]
        assert [text for text in found if "Rex" in text], "it is still said"


@pytest.mark.parametrize("policy", ["tree", "rolling", "tiers"])
async def test_a_context_has_no_summary_of_a_conversation_that_was_taken_back(policy: str) -> None:
    async with remembering(":memory:", {"extends": "companion", "summaries": policy}) as memory:
        ann = memory.user("ann")
        for count in range(60):
            await ann.add("assistant" if count % 2 else "user", f"Line {count}.", at=minutes(count))
        assert await ann.clear() == 60
        await ann.summarize()
        await memory.upkeep()
        context = await ann.context("What was said in words?", budget=4000)
        assert "nothing was said" not in str(context.messages)
        assert "nothing was said" not in str(await ann.messages_for_llm())
        assert await ann.search("nothing was said in words", kinds=("summary",), min_score=0) == []
        for count in range(60):
            await ann.add("assistant" if count % 2 else "user", f"I like marzipan {count}.", at=minutes(100 + count))
        await ann.summarize()
        found = [each.text for each in await ann.summaries() if "marzipan" in each.text]
        assert found
        assert all("nothing was said" not in text for text in found), "later summaries do not repeat it"


async def test_an_edited_message_does_not_break_the_summary_of_its_day() -> None:
    scribe = Scribe()
    async with remembering(":memory:", {"extends": "companion", "summaries": "calendar"}, chat=scribe) as memory:
        ann = memory.user("ann")
        first = (await ann.add("user", "I like cats.", at=minutes(-240))).message
        await ann.edit(first, "I like dogs.")
        scribe.answers = [{"summaries": []}]
        await ann.day()
        (asked,) = [text for _, text in scribe.asked]
        assert "dogs" in asked
        assert "cats" not in asked


async def test_erased_messages_are_gone_and_counted(location: str) -> None:
    async with aforesaid.connect(location) as memory:
        ann = memory.user("ann", actor="panel")
        first = (await ann.add("user", "secret")).message
        await ann.edit(first, "secret again")
        second = (await ann.add("user", "another", id="m2")).message
        await ann.add("user", "kept")
        done = await ann.erase([first, "m2"])
        assert done.messages == 3
        assert texts(await ann.history(versions=True)) == ["kept"]
        for gone in (second, "m2"):
            with pytest.raises(NotFound):
                await ann.erase(gone)
        erased = [row for row in await ann.audit() if row.action == "messages.erase"]
        assert [(row.actor, row.subject) for row in erased] == [("panel", "3 messages, 0 summaries, 0 memories")]


async def test_nothing_is_erased_if_one_of_the_messages_is_another_users(location: str) -> None:
    async with aforesaid.connect(location) as memory:
        ann, bob = memory.user("ann"), memory.user("bob")
        mine = (await ann.add("user", "mine")).message
        other = (await bob.add("user", "Bob's")).message
        with pytest.raises(NotFound, match="nothing was erased"):
            await ann.erase([mine, other])
        assert texts(await ann.history()) == ["mine"]
        assert texts(await bob.history()) == ["Bob's"]


async def test_a_message_is_read_in_its_newest_version(location: str) -> None:
    async with aforesaid.connect(location) as memory:
        ann = memory.user("ann", thread="general")
        await ann.add("user", "I like cats.", id="u1")
        await ann.edit("u1", "I like dogs.")
        second = (await ann.edit("u1", "I like owls.")).message
        assert [(await ann.message(name)).text for name in ("u1", second.id)] == ["I like owls."] * 2
        assert (await ann.message("u1", versions=True)).text == "I like cats."
        seen_by_bob = await memory.user("bob", thread="general").message("u1", within="thread")
        assert seen_by_bob.text == "I like owls."


async def test_a_message_that_was_taken_back_is_not_found(location: str) -> None:
    async with aforesaid.connect(location) as memory:
        ann = memory.user("ann")
        await ann.add("user", "never mind", id="u1")
        await ann.take_back("u1")
        with pytest.raises(NotFound):
            await ann.message("u1")
        assert (await ann.message("u1", versions=True)).text == "never mind"


def test_the_blocking_api_has_all_of_it() -> None:
    with aforesaid.open(":memory:") as memory:
        ann = memory.user("ann")
        first = ann.add("assistant", tool_calls=[CALL]).message
        assert ann.edit(first, "Let me see.").message.tool_calls == (CALL,)
        assert ann.take_back(first).message.taken_back
        assert ann.history() == []
        assert ann.erase(first).messages == 3


@pytest.mark.defect("W7")
@pytest.mark.parametrize("profile", ["archive", "account"])
async def test_a_summary_counts_and_shows_what_it_was_made_from(location: str, profile: str) -> None:
    async with remembering(location, profile) as memory:
        ann = memory.user("ann")
        said = [(await ann.add("user", text, at=minutes(n))).message for n, text in enumerate("abcd")]
        await ann.take_back(said[0])
        await ann.edit(said[1], "bb")
        await ann.edit(said[1], "bbb")
        (summary,) = await ann.summarize()
        assert summary.messages == 3
        assert texts(await ann.summary_messages(summary.id)) == ["bbb", "c", "d"]
        await ann.edit(said[2], "cc")
        assert texts(await ann.summary_messages(summary.id)) == ["bbb", "c", "d"], "the words that it was made from"
        await ann.take_back(said[2])
        await ann.add("user", "e", at=minutes(5))
        (again,) = await ann.summarize()
        assert again.messages == len(await ann.summary_messages(again.id)) == 3
        assert (await memory.verify()).ok


@pytest.mark.defect("W7")
async def test_a_summary_of_ones_own_covers_as_many_messages_as_one_sees(location: str) -> None:
    async with remembering(location, "session") as memory:
        chat = memory.user("ann", thread="t")
        said = [(await chat.add("user", text, at=minutes(n))).message for n, text in enumerate("abcd")]
        await chat.take_back(said[1])
        assert (await chat.update_summary("A and c.", 2)).messages == 2
        made = await chat.update_summary("All.", 3)
        assert (made.messages, texts(await chat.summary_messages(made.id))) == (3, ["a", "c", "d"])
        with pytest.raises(InvalidInput, match="this thread has 3 messages"):
            await chat.update_summary("More.", 4)
        assert (await memory.verify()).ok


@pytest.mark.defect("W3")
@pytest.mark.req("G17")
@pytest.mark.parametrize("changes", [(Advance,), (AddMemory,), (Archive,), (MarkExtracted,)])
async def test_upkeep_goes_on_when_a_user_is_purged_meanwhile(location: str, changes: tuple[type, ...]) -> None:
    async with remembering(location, {"summaries": "tree"}) as memory:
        for user in ("ann", "bob"):
            for number in range(12):
                await memory.user(user).add("user", f"I live in town {number}.", at=minutes(number))
                await memory.user(user).add("assistant", "I see.", at=minutes(number))
        before_storing(memory, changes, lambda: memory.purge("ann"))
        assert (await memory.upkeep()).error is None
        assert [user.id for user in await memory.users()] == ["bob"]
        assert await memory.store.read(PlannedEntry(Subject("tree", "default", "ann"))) is None
        assert await memory.user("bob").summaries()
        assert (await memory.verify()).ok


WORD = "Quillonbrax"


def containing(word: str) -> list[str]:
    """Return the texts of caches that have a word. Caches are dictionaries with texts, or tuples with one, as keys."""

    def texts(value: object) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, tuple):
            for part in value:
                yield from texts(part)

    gc.collect()
    caches = [each for each in gc.get_objects() if isinstance(each, dict)]
    return [text for cache in caches for key in list(cache) for text in texts(key) if word.lower() in text.lower()]


@pytest.mark.parametrize("embedder", ["local", "process", "deterministic"])
async def test_no_cache_holds_a_word_of_somebody_who_was_purged(tmp_path: Path, embedder: str) -> None:
    settings = {"background": False}
    async with aforesaid.connect(tmp_path / "memory.db", embedder=embedder, settings=settings) as memory:
        ann = memory.user("ann")
        await ann.add("user", f"My cat is called {WORD}. I live in Bern, and I am allergic to nuts.")
        await ann.remember(f"has a cat called {WORD}")
        await memory.upkeep()
        await ann.search(f"Who is {WORD}?")
        await ann.context(f"What does {WORD} eat?")
        assert containing(WORD), "otherwise this test shows nothing"
        await memory.purge("ann")
        await memory.user("bob").search("anything")  # after what the encoder had to do before
        assert containing(WORD) == []


@pytest.mark.defect("S13")
async def test_a_message_that_was_taken_back_is_brought_back_with_its_last_words(location: str) -> None:
    async with aforesaid.connect(location) as memory:
        ann = memory.user("ann")
        first = (await ann.add("user", "I am allergic to hazelnuts.", id="m1", at=minutes(0))).message
        await ann.edit(first, "I am allergic to walnuts.")
        other = (await ann.add("user", "hello", at=minutes(1))).message
        by_hand = await ann.note("fact", "Carries an emergency pen", source=(await ann.history())[0])
        await memory.upkeep()
        await ann.take_back("m1")
        assert await ann.memories() == []
        assert await ann.bring_back(["m1", "m1", other]) == 1
        await memory.upkeep()
        back = (await ann.history())[0]
        assert (back.text, back.at) == ("I am allergic to walnuts.", first.at)
        texts_of = [each.text for each in await ann.memories()]
        assert by_hand.text in texts_of
        assert any("walnuts" in text for text in texts_of)
        assert await ann.search("walnuts", kinds=("message",))
        assert await ann.bring_back("m1") == 0
        with pytest.raises(NotFound):
            await ann.bring_back(["m1", "never"])
        assert (await memory.verify()).ok
        assert "messages.bring_back" in [row.action for row in await ann.audit()]
