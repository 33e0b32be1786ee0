"""From every summary to the messages below it and back; edits; what is measured."""

from __future__ import annotations

from typing import Any

import pytest

from aforesaid.digest.quality import measure
from aforesaid.domain.message import Message
from aforesaid.errors import InvalidInput, NotFound, SourcesChanged, TooLarge
from aforesaid.models.embed import DeterministicEmbedder
from aforesaid.models.embed.caching import MessageVectors
from aforesaid.store.sqlite import MemoryStore
from digesting import Scribe, remembering, talk
from making import NOON


@pytest.mark.parametrize("profile", ["archive", "session", "community", "account"])
async def test_every_message_and_every_summary_above_it_know_each_other(location: str, profile: str) -> None:
    keys: dict[str, Any] = {
        "extends": profile,
        "tree_turns": 2,
        "rolling_messages": 4,
        "rolling_keep": 2,
        "rolling_step": 2,
    }
    async with remembering(location, {**keys, "short_term": 5}) as memory:
        ann = memory.user("ann")
        for part in range(14):
            await talk(ann, 2, first=2 * part, at=None)
            await memory.upkeep()
        summaries = [each for each in await ann.summaries(active=None) if not each.replaced]
        below = {each.id: {message.id for message in await ann.summary_messages(each.id)} for each in summaries}
        assert all(len(below[each.id]) == each.messages for each in summaries)
        for message in await ann.history(limit=100):
            above = {each.id for each in await ann.message_summaries(message)}
            assert above == {each.id for each in summaries if message.id in below[each.id]}
            assert above == {each.id for each in await ann.message_summaries(message.id)}
        if profile == "archive":
            top = (await ann.summaries())[0]
            assert top.level >= 2
            oldest = (await ann.history(limit=100))[0]
            levels = [each.level for each in await ann.message_summaries(oldest)]
            assert levels == list(range(1, top.level + 1))
        with pytest.raises(NotFound):
            await memory.user("bob").summary_messages(summaries[0].id)


@pytest.mark.req("E9")
async def test_an_edit_is_a_new_version_and_can_be_taken_back(location: str) -> None:
    async with remembering(location, {"extends": "archive", "tree_turns": 2}) as memory:
        ann = memory.user("ann")
        await talk(ann, 2)
        await memory.upkeep()
        (summary,) = await ann.summaries()
        edited = await ann.edit_summary(summary.id, "Ann bought three apples.", editor="carol")
        assert (edited.version, edited.replaces, edited.edited_by, edited.chunks) == (2, summary.id, "carol", (1,))
        assert [each.text for each in await ann.summaries()] == ["Ann bought three apples."]
        (hit,) = await ann.search("three apples", kinds=["summary"])
        assert (hit.id, hit.text, len(hit.sources)) == (str(edited.id), "Ann bought three apples.", 4)
        with pytest.raises(SourcesChanged, match="not active"):
            await ann.edit_summary(summary.id, "Again.")
        with pytest.raises(SourcesChanged, match="newer version"):
            await ann.roll_back(summary.id)
        trail = [(entry.actor, entry.action) for entry in await ann.audit()]
        assert trail[-1] == ("carol", "summary.revise")
        await ann.roll_back(edited.id)
        assert await ann.summaries() == [summary]
        await ann.roll_back(summary.id)
        assert await ann.summaries() == []
        assert all(message.active for message in await ann.history())
        await memory.upkeep()
        assert len(await ann.summaries()) == 0, "what a person took back is not done again before something is said"
        assert (await memory.verify()).ok


async def test_what_cannot_be_a_summary_is_refused(location: str) -> None:
    async with remembering(location, "archive") as memory:
        ann = memory.user("ann")
        await ann.add("user", "Hello.")
        (summary,) = await ann.summarize()
        with pytest.raises(InvalidInput, match="empty"):
            await ann.edit_summary(summary.id, "  ")
        with pytest.raises(TooLarge):
            await ann.edit_summary(summary.id, "x" * 20_001)
        with pytest.raises(NotFound):
            await memory.user("bob").edit_summary(summary.id, "Stolen.")
        with pytest.raises(InvalidInput, match="unknown kind"):
            await ann.summaries(kind="novel")  # type: ignore[arg-type]


async def test_what_stands_below_another_summary_cannot_be_edited_any_more(location: str) -> None:
    async with remembering(location, {"extends": "archive", "tree_turns": 1}) as memory:
        ann = memory.user("ann")
        for number in range(6):
            await talk(ann, 1, first=number)
            await memory.upkeep()
        below = (await ann.summaries(active=False))[0]
        with pytest.raises(SourcesChanged, match="stands for it"):
            await ann.edit_summary(below.id, "Too late.")


def said(seq: int, text: str, name: str = "Ann") -> Message:
    return Message(seq, str(seq), "s", "u", "t", "s-1", "user", "u", name, text, NOON, NOON, True, None, b"")


@pytest.mark.req("E9")
async def test_quality_is_measured_and_what_is_invented_is_named() -> None:
    messages = [said(1, "I moved to Berlin yesterday with 2 cats."), said(2, "Their names are Miso and Udon.")]
    vectors = MessageVectors(MemoryStore(), DeterministicEmbedder())
    good = await measure("On 2026-02-28 Ann moved to Berlin with 2 cats, Miso and Udon.", messages, (), vectors)
    assert good.invented == ()
    assert good.grounded == 1.0
    assert good.coverage is not None
    bad = await measure("On 2025-01-01 Ann moved to Paris with 3 cats, Miso and Udon.", messages, (), vectors)
    assert set(bad.invented) == {"2025-01-01", "Paris", "3"}
    assert bad.grounded == 0.4
    other = await measure("Nothing much happened at all.", messages, (), vectors)
    assert other.coverage is not None
    assert other.coverage < good.coverage
    assert 0 < other.compression < good.compression
    assert (await measure("Ann moved.", messages, (), None)).coverage is None
    assert (await measure("A picture.", [said(3, "")], (), vectors)).coverage is None
    quoting = await measure("Ann (2026-03-01): Their names are Miso and Udon.", messages[1:], (), vectors)
    assert quoting.coverage == pytest.approx(1.0, abs=0.003)  # a number of a stored vector has one byte


@pytest.mark.req("E9")
async def test_quality_is_stored_with_the_summary(location: str) -> None:
    scribe = Scribe()
    scribe.says = ": apples in Berlin"
    async with remembering(location, "archive", chat=scribe, embedder=DeterministicEmbedder()) as memory:
        ann = memory.user("ann")
        await talk(ann, 10)
        await memory.upkeep()
        (summary,) = await ann.summaries()
        assert summary.quality is not None
        assert summary.quality.compression < 0.1
        assert summary.quality.coverage is not None
