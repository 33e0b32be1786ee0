"""A restart in the middle, two workers, a full disk: nothing is learned twice, and nothing is skipped."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from aforesaid.domain.receipt import Receipt
from aforesaid.errors import StoreFull
from aforesaid.memory import Memory
from aforesaid.store import Store
from aforesaid.store.memories import AddMemory, MarkExtracted
from aforesaid.store.messages import MessagesAfter
from aforesaid.store.operations import Change
from aforesaid.testing import Request
from facts.talking import connect, extraction, model, numbered, paused, say
from intercepting import Read, intercept


class Crash(BaseException):
    """As sudden as a power cut."""


def crash_at(store: Store, number: int, *, before: bool) -> None:
    """Let the process die at the nth change set that moves a mark: just before or just after it is stored."""
    apply, seen = store.apply, 0

    async def crashing(changes: Sequence[Change], *_: object, **__: object) -> Receipt:
        nonlocal seen
        marks = any(isinstance(change, MarkExtracted) for change in changes)
        seen += marks
        if marks and seen == number and before:
            raise Crash
        receipt = await apply(changes)
        if marks and seen == number:
            raise Crash
        return receipt

    store.apply = crashing  # type: ignore[method-assign]


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("with_model", [True, False])
async def test_a_restart_in_the_middle_extracts_nothing_twice_and_skips_nothing(
    tmp_path: Path, number: int, *, before: bool, with_model: bool
) -> None:
    animals = ["cats", "dogs", "horses", "rabbits", "parrots", "turtles"]

    def answer(request: Request) -> object:
        new = [text for number, text in numbered(request) if number is not None]
        places = {animal: place for place, animal in enumerate(animals) if f"I like {animal}" in new}
        first = min(places.values())
        return extraction(
            *(
                {"kind": "preference", "text": f"Ann likes {animal}.", "from": [place - first + 1]}
                for animal, place in places.items()
            )
        )

    scripted = model({"extract": answer})
    location = str(tmp_path / "memory.db")
    async with scripted:
        async with connect(location, scripted=scripted if with_model else None, extract_exchanges=2) as memory:
            user = memory.user("ann")
            async with paused(memory):
                for animal in animals:
                    await say(user, f"I like {animal}", reply="Good", name="Ann")
            if not with_model:
                # Rules look through a whole page at a time: make pages small.
                memory._services.upkeep.tasks[1]._made = small_pages(memory)  # type: ignore[attr-defined]
            crash_at(memory.store, number, before=before)
            with pytest.raises(Crash):
                await memory.upkeep()
        async with connect(location, scripted=scripted if with_model else None, extract_exchanges=2) as memory:
            await memory.upkeep()
            user = memory.user("ann")
            known = {each.text: each.times for each in await user.memories(active=None)}
            assert known == {f"Ann likes {animal}.": 1 for animal in animals}
            assert (await memory.verify()).ok


def small_pages(memory: Memory) -> object:
    extractor = memory._services.extractor()

    async def few(read: Read, question: MessagesAfter) -> object:
        return await read(replace(question, limit=min(question.limit, 4)))

    intercept(memory.store, MessagesAfter, few)
    return extractor


async def test_two_workers_do_not_learn_the_same_twice(tmp_path: Path) -> None:
    location = str(tmp_path / "memory.db")
    async with connect(location) as one, connect(location) as two:
        user = one.user("ann")
        async with paused(one):
            for number in range(40):
                await user.add("user", f"I live in town{number}.")
        await asyncio.gather(one.upkeep(), two.upkeep())
        await one.upkeep()
        known = await user.memories(active=None)
        assert len(known) == 40
        assert {each.times for each in known} == {1}
        assert [each.text for each in known if each.active] == ["ann lives in town39."]


async def test_a_failed_write_leaves_mark_and_memories_as_they_were(location: str) -> None:
    async with connect(location) as memory:
        user = memory.user("ann")
        async with paused(memory):
            await user.add("user", "I like tea.")
        apply = memory.store.apply

        async def full(changes: Sequence[Change], *_: object, **__: object) -> Receipt:
            if any(isinstance(change, AddMemory) for change in changes):
                raise StoreFull("no room")
            return await apply(changes)

        memory.store.apply = full  # type: ignore[method-assign]
        with pytest.raises(StoreFull):
            await memory.upkeep()
        memory.store.apply = apply  # type: ignore[method-assign]
        assert (await memory.upkeep()).remembered == 1
