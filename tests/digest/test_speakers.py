"""Summaries of conversations between people: who is heard, and what erasing finds."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from aforesaid.domain.summary import SummaryDraft
from aforesaid.errors import SourcesChanged
from aforesaid.memory import Memory
from aforesaid.models.prompts import load_prompt
from aforesaid.models.tokens import count_tokens
from aforesaid.store.messages import Messages
from aforesaid.store.summaries import Archive
from digesting import MovingClock, Scribe, remembering

TREE = {"extends": "archive", "tree_turns": 2}
ROLLING = {"extends": "session", "rolling_messages": 3, "rolling_keep": 1, "rolling_step": 2}
KINDS = pytest.mark.parametrize("profile", [TREE, ROLLING], ids=["tree", "rolling"])

PLANS = (
    ("ann", "We bought the house in Timbuktu yesterday, Bob!"),
    ("bob", "My brother Florent plants the walnut trees on 14 March."),
    ("ann", "The kitchen gets green tiles from Meissen."),
    ("bob", "I start as a stonemason in Bamberg on Monday."),
    ("ann", "The staircase is made of oak."),
)


@asynccontextmanager
async def house(
    location: str, profile: object, chat: Scribe | None = None
) -> AsyncGenerator[tuple[Memory, MovingClock]]:
    clock = MovingClock()
    async with remembering(location, profile, clock=clock, chat=chat) as memory:  # type: ignore[arg-type]
        yield memory, clock


async def say(
    memory: Memory, clock: MovingClock, said: Sequence[tuple[str, str]], thread: str | None = "house"
) -> None:
    for user, text in said:
        await memory.user(user, thread=thread).add("user", text, at=clock.forward(minutes=1), name=user.title())


async def texts(memory: Memory, user: str, thread: str | None = "house", *, active: bool | None = True) -> str:
    return "\n".join(each.text for each in await memory.user(user, thread=thread).summaries(active=active))


@pytest.mark.defect("M12")
@KINDS
async def test_a_thread_is_told_from_all_who_spoke_each_under_their_name(location: str, profile: object) -> None:
    async with house(location, profile) as (memory, clock):
        await say(memory, clock, PLANS + (("ann", "Good night!"), ("bob", "Good night!")))
        for user in ("ann", "bob"):
            await memory.user(user, thread="house").summarize()
            told = await texts(memory, user)
            assert "Ann (2026-03-01): We bought the house in Timbuktu yesterday, Bob!" in told
            assert "Bob: My brother Florent plants the walnut trees on 14 March." in told
            assert "Ann: My brother" not in told


@pytest.mark.defect("M12")
@KINDS
async def test_nobody_is_told_what_was_said_where_they_did_not_speak(location: str, profile: object) -> None:
    async with house(location, profile) as (memory, clock):
        await say(memory, clock, [("bob", "My cellar has a leak, says the plumber Ottokar.")], "cellar")
        await say(memory, clock, [("bob", "I owe the bank of Zwickau 4,000 euros.")], None)
        await memory.user("cleo").set("memory_enabled", False)
        await say(memory, clock, [("cleo", "My sister Hildegard left the convent."), *PLANS])
        await memory.user("ann", thread="house").summarize()
        told = await texts(memory, "ann", active=None)
        assert "Florent" in told
        assert not any(word in told for word in ("Ottokar", "Zwickau", "Hildegard"))


@pytest.mark.defect("M12")
async def test_a_model_reads_the_other_half_of_a_conversation(location: str) -> None:
    chat = Scribe()
    chat.says = " Ann bought the house in Timbuktu and Bob starts as a stonemason in Bamberg."
    async with house(location, TREE, chat) as (memory, clock):
        await say(memory, clock, PLANS)
        await memory.user("ann", thread="house").summarize()
        assert "Florent" in chat.asked[-1][1]
        assert "Timbuktu" in chat.asked[-1][1]


@pytest.mark.defect("W1")
@pytest.mark.req("G17")
@pytest.mark.every_store
@pytest.mark.parametrize("how", ["erase", "purge", "take back"])
@KINDS
async def test_what_is_erased_goes_from_the_summaries_of_those_who_heard_it(
    location: str, profile: object, how: str
) -> None:
    async with house(location, profile) as (memory, clock):
        ann, bob = (memory.user(user, thread="house") for user in ("ann", "bob"))
        await say(memory, clock, PLANS)
        (first,) = (await ann.summarize())[:1]
        assert "Florent" in first.text
        await ann.edit_summary(first.id, "Ann heard that Florent plants trees.", editor="ann")
        await say(
            memory, clock, [("cleo", "The chimney sweep Pius comes at noon."), ("ann", "My roof is red slate.")], "roof"
        )
        await say(memory, clock, [("ann", "My cellar has a blue door."), ("ann", "The garden wall is of basalt.")])
        await ann.summarize()
        spoken = next(each for each in await bob.history() if "Florent" in each.text)
        if how == "erase":
            await bob.erase(spoken)
        elif how == "purge":
            await memory.purge("bob")
        else:
            await bob.take_back(spoken.id)
        for user in ("ann", "cleo"):
            assert "Florent" not in await texts(memory, user, active=None)
        assert (await memory.verify()).ok
        await ann.summarize()
        told = await texts(memory, "ann", active=None)
        assert "Timbuktu" in told
        assert "Florent" not in told
        assert ("stonemason" in told) == (how != "purge")


@pytest.mark.defect("W1")
@pytest.mark.req("G17")
async def test_no_file_has_the_words_of_a_person_who_was_purged(tmp_path: Path) -> None:
    place = tmp_path / "memory.db"
    async with house(f"sqlite:{place}", {**TREE, "tree_level": 2, "tree_active": 3}) as (memory, clock):
        for part in range(4):
            await say(memory, clock, [(user, f"{text} ({part})") for user, text in PLANS])
            await memory.user("ann", thread="house").summarize()
        summaries = await memory.user("ann").summaries(active=None)
        assert max(each.level for each in summaries) >= 2
        await memory.user("ann").roll_back(summaries[0].id)
        assert "Florent" in await texts(memory, "ann", active=None)
        await memory.purge("bob")
    assert not [
        path for path in tmp_path.iterdir() if b"Florent" in path.read_bytes() or b"Bamberg" in path.read_bytes()
    ]


@pytest.mark.defect("W1")
@pytest.mark.req("G17")
async def test_summaries_of_others_stay_when_they_heard_nothing_of_what_is_erased(location: str) -> None:
    async with house(location, TREE) as (memory, clock):
        ann, bob = (memory.user(user, thread="house") for user in ("ann", "bob"))
        await say(memory, clock, PLANS)
        await ann.summarize()
        kept = await ann.summaries(active=None)
        clock.forward(hours=3)
        await say(memory, clock, [("bob", "Later, the well is dry.")])
        await say(memory, clock, [("bob", "The attic has bats.")], "attic")
        await bob.erase((await memory.user("bob").history())[-2:])
        assert await ann.summaries(active=None) == kept


@pytest.mark.defect("W1", "W3")
@pytest.mark.req("G17")
@pytest.mark.every_store
async def test_a_summary_is_not_stored_when_what_it_heard_was_erased_meanwhile(location: str) -> None:
    async with house(location, TREE) as (memory, clock):
        ann, bob = (memory.user(user, thread="house") for user in ("ann", "bob"))
        await say(memory, clock, PLANS)
        own = [each.seq for each in await memory.store.read(Messages(ann.scope))]
        heard = [each.seq for each in await memory.store.read(Messages(bob.scope))]
        draft = SummaryDraft(
            ann.scope, "Florent plants trees.", messages=tuple(own), shown=tuple(own), heard=tuple(heard)
        )
        await bob.erase((await bob.history())[0])
        with pytest.raises(SourcesChanged, match="erased since"):
            await memory.store.apply([Archive(draft)])
        assert await ann.summaries(active=None) == []


@pytest.mark.defect("W1")
@pytest.mark.req("G17")
async def test_erasing_finds_who_heard_it_after_a_move_to_another_store(location: str, tmp_path: Path) -> None:
    async with house(":memory:", TREE) as (memory, clock):
        await say(memory, clock, PLANS)
        await memory.user("ann", thread="house").summarize()
        await memory.export(tmp_path / "all.jsonl")
    async with house(location, TREE) as (memory, clock):
        await say(memory, clock, [("cleo", "Something else.")])
        await memory.load(tmp_path / "all.jsonl")
        assert "Florent" in await texts(memory, "ann")
        await memory.purge("bob")
        assert "Florent" not in await texts(memory, "ann", active=None)


@pytest.mark.defect("L2")
@pytest.mark.parametrize("name", ["summarize", "fold", "roll", "week", "day", "history", "portrait"])
def test_the_instructions_of_a_prompt_have_at_most_350_tokens(name: str) -> None:
    assert count_tokens(load_prompt(name).sections["system"]) <= 350


@pytest.mark.defect("Q6")
async def test_the_days_of_a_group_are_told_from_what_everybody_said_there_on_them() -> None:
    async with house(":memory:", "community") as (memory, clock):
        await say(memory, clock, PLANS[:2])
        clock.forward(days=3)
        await say(memory, clock, [("ann", "The kitchen gets green tiles from Meissen."), ("bob", "hahaha")])
        await say(memory, clock, [("bob", "My cellar has a leak, says the plumber Ottokar.")], "cellar")
        ann = memory.user("ann", thread="house")
        today, week = await ann.summarize_thread(days=1), await ann.summarize_thread(days=7)
        clock.forward(days=1)
        await say(memory, clock, [("bob", "hahaha"), ("cleo", "lol")])
        assert today == "Ann (2026-03-04): The kitchen gets green tiles from Meissen."
        assert all(word in week for word in ("Timbuktu", "Florent", "Meissen"))
        assert "Ottokar" not in week
        assert await ann.summarize_thread(days=1) == "A quiet day (messages: 2)"
        clock.forward(days=30)
        assert await ann.summarize_thread(days=7) == ""
