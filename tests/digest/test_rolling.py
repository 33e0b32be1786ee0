"""The rolling summary: the document's states, its formula, and what a model gets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aforesaid.digest.rolling import RollingLedger, RollingRules, decide, needs_regeneration
from aforesaid.digest.tree import Roll, that_fit
from aforesaid.errors import InvalidInput
from aforesaid.memory import UserMemory
from aforesaid.models.embed import DeterministicEmbedder
from digesting import MovingClock, Scribe, remembering

RULES = RollingRules()


async def say(user: UserMemory, up_to: int, first: int = 1) -> None:
    """Say M1, M2, …, in turns."""
    for number in range(first, up_to + 1):
        await user.add("user" if number % 2 else "assistant", f"M{number} is about the garden.")


@pytest.mark.req("E6")
def test_the_documents_formula() -> None:
    assert needs_regeneration(30, 10, RULES)
    assert not needs_regeneration(29, 10, RULES)
    assert needs_regeneration(40, 20, RULES)
    assert [decide(RollingLedger(total, 10, 0), RULES).plan for total in (29, 30)] == [None, Roll(10)]


@pytest.mark.req("E5")
def test_the_first_summary_comes_with_twenty_messages_or_eight_thousand_tokens() -> None:
    assert decide(RollingLedger(19, 0, 31_999), RULES).plan is None
    assert decide(RollingLedger(20, 0, 100), RULES).plan == Roll(10)
    assert decide(RollingLedger(12, 0, 32_000), RULES).plan == Roll(2)
    assert decide(RollingLedger(10, 0, 99_000), RULES).plan is None, "the newest ten are always kept"
    assert decide(RollingLedger(9, 0, 0), RULES, asked=True).plan is None
    assert decide(RollingLedger(15, 0, 0), RULES, asked=True).plan == Roll(5)


@pytest.mark.req("E9")
def test_thresholds_can_be_chosen_and_a_change_of_topic_is_a_reason_too() -> None:
    mine = RollingRules(messages=6, keep=2, step=3)
    assert decide(RollingLedger(6, 0, 0), mine).plan == Roll(4)
    assert decide(RollingLedger(8, 4, 0), mine).plan is None
    assert decide(RollingLedger(8, 4, 0, topic_ends=1), mine).plan == Roll(1)
    assert decide(RollingLedger(8, 4, 0, topic_ends=3), mine).plan == Roll(3), "a topic is covered whole"
    assert decide(RollingLedger(9, 4, 0), mine).plan == Roll(3)


def test_very_long_texts_are_taken_in_parts() -> None:
    assert that_fit([10, 20, 30], 35) == 2
    assert that_fit([99], 35) == 1
    assert that_fit([], 35) == 0


@pytest.mark.req("E2", "E3", "E6", "E7")
async def test_the_documents_states_from_20_to_60_messages(location: str) -> None:
    scribe = Scribe()
    async with remembering(location, "session", chat=scribe) as memory:
        ann = memory.user("ann", thread="chat-1")
        await say(ann, 19)
        assert (await memory.upkeep()).summarised == 0
        assert [message["content"][:3] for message in await ann.messages_for_llm()][:2] == ["M1 ", "M2 "]
        for state, total in enumerate((20, 30, 40, 50, 60), 1):
            await say(ann, total, first=max(20, total - 9))
            assert (await memory.upkeep()).summarised == 1
            (summary,) = await ann.summaries(kind="rolling")
            assert (summary.text, summary.messages, summary.valid) == (f"S{state}", total - 10, True)
            head, *rest = await ann.messages_for_llm()
            assert head["role"] == "system"
            assert head["content"].endswith(f"\nS{state}")
            assert [message["content"] for message in rest] == [
                f"M{number} is about the garden." for number in range(total - 9, total + 1)
            ]
            # Made of the summary before and the ten new messages, and of nothing else.
            shown = scribe.asked[-1][1]
            assert [f"M{number} " in shown for number in range(1, total + 1)] == [
                total - 20 < number <= total - 10 for number in range(1, total + 1)
            ]
            assert (f"<summary>\nS{state - 1}\n</summary>" in shown) == (state > 1)
        assert len(await ann.history(limit=100)) == 60, "all messages stay"
        assert all(message.active for message in await ann.history(limit=100))
        assert (await memory.verify()).ok


@pytest.mark.req("E4", "E5")
async def test_a_summary_knows_what_it_covers_when_and_by_what_it_was_made(location: str) -> None:
    clock, scribe = MovingClock(), Scribe()
    async with remembering(location, "session", chat=scribe, clock=clock) as memory:
        ann = memory.user("ann")
        await say(ann, 20)
        await memory.upkeep()
        (summary,) = await ann.summaries()
        assert (summary.model, summary.prompt, summary.created_at) == ("test:scribe", "summarize/4", clock.time)
        assert (summary.first, summary.last, summary.messages) == (1, 10, 10)
        covered = await ann.summary_messages(summary.id)
        assert (summary.began_at, summary.ended_at) == (covered[0].at, covered[-1].at)
        assert summary.valid
        assert not replace(summary, messages=0).valid, "it must cover something"
        assert not replace(summary, text=" \n").valid, "it must say something"


@pytest.mark.req("E5")
async def test_without_a_model_it_is_made_of_the_sentences_themselves_and_never_too_long(location: str) -> None:
    async with remembering(location, "session") as memory:
        ann = memory.user("ann")
        for number in range(60):
            text = f"I planted {number} tulips, {number + 1} roses and a tree for Miso in the garden of Berlin. "
            await ann.add("user", text * 4)
            if number % 7 == 0:
                await memory.upkeep()
        await memory.upkeep()
        (summary,) = await ann.summaries()
        assert summary.model is None
        assert summary.messages == 50
        assert 0 < len(summary.text) <= 2000
        assert (await memory.verify()).ok


async def test_each_thread_has_its_own(location: str) -> None:
    async with remembering(location, "session") as memory:
        one, two = memory.user("ann", thread="one"), memory.user("ann", thread="two")
        for number in range(1, 41):
            await (one if number % 2 else two).add("user", f"This is message {number} about gardens.")
        await memory.upkeep()
        for thread, parity in ((one, 1), (two, 0)):
            (summary,) = [each for each in await thread.summaries() if each.thread == thread.scope.thread]
            assert [message.seq % 2 for message in await thread.summary_messages(summary.id)] == [parity] * 10
            assert len(await thread.messages_for_llm()) == 11


@pytest.mark.req("E7")
async def test_a_program_can_bring_its_own_summary(location: str) -> None:
    async with remembering(location, "session") as memory:
        ann = memory.user("ann")
        await say(ann, 15)
        first = await ann.update_summary("They talked about the garden.", 5, model="mine")
        assert (first.messages, first.model, first.last) == (5, "mine", 5)
        assert len(await ann.messages_for_llm()) == 11
        better = await ann.update_summary("Only the garden.", 5)
        assert (better.version, better.replaces, better.messages) == (2, first.id, 5)
        last = await ann.update_summary("The garden, at length.", 12)
        assert (last.messages, last.fresh, last.sources) == (12, 6, (better.id,))
        with pytest.raises(InvalidInput, match="covers 12 messages"):
            await ann.update_summary("Less.", 3)
        with pytest.raises(InvalidInput, match="has 15 messages"):
            await ann.update_summary("More.", 16)
        assert [summary.text for summary in await ann.summaries()] == ["The garden, at length."]
        assert (await memory.verify()).ok


@pytest.mark.defect("K8")
@pytest.mark.req("E2")
async def test_nothing_falls_between_the_summary_and_what_is_sent(location: str) -> None:
    async with remembering(location, "session") as memory:
        ann = memory.user("ann")
        await say(ann, 170)
        await ann.update_summary("They talked about the garden.", 10)
        head, *rest = await ann.messages_for_llm()
        assert head["content"].endswith("They talked about the garden.")
        assert [message["content"] for message in rest] == [
            f"M{number} is about the garden." for number in range(11, 171)
        ]
        assert (await ann.messages_for_llm(7))[1:] == rest, "the limit is for threads without a summary"


@pytest.mark.req("E9")
async def test_later_summaries_build_on_what_a_person_made_of_the_last_one(location: str) -> None:
    scribe = Scribe()
    async with remembering(location, "session", chat=scribe) as memory:
        ann = memory.user("ann")
        await say(ann, 20)
        await memory.upkeep()
        (summary,) = await ann.summaries()
        edited = await ann.edit_summary(summary.id, "The garden is in Potsdam, not in Berlin.", editor="ann")
        assert (edited.version, edited.replaces, edited.edited_by, edited.messages) == (2, summary.id, "ann", 10)
        assert (await ann.messages_for_llm())[0]["content"].endswith("Potsdam, not in Berlin.")
        await say(ann, 30, first=21)
        await memory.upkeep()
        assert "The garden is in Potsdam, not in Berlin." in scribe.asked[-1][1]
        (now,) = await ann.summaries()
        assert (now.messages, now.sources) == (20, (edited.id,))
        every = await ann.summaries(active=None)
        assert [each.text for each in every] == ["S1", "The garden is in Potsdam, not in Berlin.", "S2"]


@pytest.mark.req("E9")
async def test_a_summary_is_made_where_the_topic_changes(location: str) -> None:
    profile = {"extends": "session", "topic_changes": True, "rolling_messages": 100, "rolling_keep": 5}
    async with remembering(location, profile, embedder=DeterministicEmbedder()) as memory:
        ann = memory.user("ann")
        for number in range(12):
            await ann.add("user", f"garden tulips roses planting watering garden tulips {'again' * (number % 2)}")
        await memory.upkeep()
        assert await ann.summaries() == []
        for number in range(12):
            await ann.add("user", f"invoice lawyer contract payment deadline invoice lawyer {'now' * (number % 2)}")
        await memory.upkeep()
        (summary,) = await ann.summaries()
        assert summary.messages == 12


@pytest.mark.defect("B12")
async def test_a_change_of_topic_after_ten_messages_makes_a_summary_before_the_usual_twenty(location: str) -> None:
    profile = {"extends": "session", "topic_changes": True}
    async with remembering(location, profile, embedder=DeterministicEmbedder()) as memory:
        ann = memory.user("ann")
        for number in range(10):
            await ann.add("user", f"garden tulips roses planting watering garden tulips {'again' * (number % 2)}")
        for number in range(8):
            await ann.add("user", f"invoice lawyer contract payment deadline invoice lawyer {'now' * (number % 2)}")
        await memory.upkeep()
        (summary,) = await ann.summaries()
        assert (summary.first, summary.messages) == (1, 10), "the first topic, whole"
