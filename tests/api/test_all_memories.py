"""The memories of a whole space, for whoever looks after it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import aforesaid
from aforesaid.errors import InvalidInput, NotFound, SourcesChanged

pytestmark = pytest.mark.anyio


async def test_all_memories_of_a_space_can_be_listed_and_filtered(location: str) -> None:
    async with aforesaid.connect(location) as memory:
        ann, bob = memory.user("ann"), memory.user("bob")
        tea = await ann.note("preference", "Prefers TEA")
        chess = await bob.note("fact", "plays chess")
        over = datetime.now(UTC) - timedelta(days=1)
        gone = await ann.note("schedule", "was at the dentist", expires=over)
        await memory.user("ann", space="another").note("fact", "elsewhere")

        assert [each.id for each in await memory.memories()] == [chess.id, tea.id]
        assert [each.id for each in await memory.memories(active=None)] == [gone.id, chess.id, tea.id]
        assert [each.id for each in await memory.memories(state="expired")] == [gone.id]
        assert [each.id for each in await memory.memories("fact")] == [chess.id]
        assert [each.id for each in await memory.memories(user="ann")] == [tea.id]
        assert [each.id for each in await memory.memories(containing="tea")] == [tea.id]
        assert [each.id for each in await memory.memories(limit=1)] == [chess.id]
        assert [each.id for each in await memory.memories(before=chess.id)] == [tea.id]
        assert len(await memory.memories(space="another")) == 1
        assert (await memory.memory(tea.id)) == tea


async def test_an_id_of_another_space_looks_like_none(location: str) -> None:
    async with aforesaid.connect(location) as memory:
        theirs = await memory.user("ann", space="another").note("fact", "elsewhere")
        for number in (theirs.id, 999, 2**63 - 1):
            with pytest.raises(NotFound, match=f"there is no memory {number}"):
                await memory.memory(number)
        with pytest.raises(InvalidInput):
            await memory.memory(0)


async def test_many_that_do_not_fit_are_passed_over() -> None:
    async with aforesaid.connect(":memory:") as memory:
        ann = memory.user("ann")
        wanted = await ann.note("fact", "the needle")
        over = datetime.now(UTC) - timedelta(days=1)
        for number in range(20):
            await ann.note("fact", f"hay {number}", expires=over)
        assert [each.id for each in await memory.memories(limit=3)] == [wanted.id]
        assert [each.id for each in await memory.memories(containing="needle", limit=3)] == [wanted.id]


@pytest.mark.req("D14")
async def test_whoever_looks_is_named_in_the_audit_log(location: str) -> None:
    async with aforesaid.connect(location) as memory:
        await memory.user("ann").note("fact", "plays chess")
        ann = memory.user("ann", actor="clerk")
        await ann.history()
        await ann.search("chess")
        await ann.context("What does Ann play?")
        await ann.summaries()
        await memory.memories(actor="clerk")
        entries = await memory.user("ann").audit()
    seen = [(entry.actor, entry.action) for entry in entries if entry.actor == "clerk"]
    assert seen == [
        ("clerk", "messages.read"),
        ("clerk", "memory.search"),
        ("clerk", "context.read"),
        ("clerk", "summaries.read"),
        ("clerk", "memory.read"),
    ]


async def test_a_correction_of_something_that_others_changed_is_refused(location: str) -> None:
    async with aforesaid.connect(location) as memory:
        ann = memory.user("ann")
        seen = await ann.note("fact", "plays chess")
        changed = await ann.edit_memory(seen.id, text="plays go", revision=seen.revision)
        with pytest.raises(SourcesChanged, match="changed after it was read"):
            await ann.edit_memory(seen.id, text="plays bridge", revision=seen.revision)
        with pytest.raises(SourcesChanged):
            await ann.deactivate(seen.id, revision=seen.revision)
        assert (await ann.deactivate(seen.id, revision=changed.revision)).state == "deactivated"
