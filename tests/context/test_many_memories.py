"""A context looks at as many memories as it needs, however many a person has."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from aforesaid import Memory, connect
from aforesaid.domain.memory import MemoryDraft
from aforesaid.domain.scope import Scope
from aforesaid.facts.describing import Line
from aforesaid.store import memories as stored
from aforesaid.store import open_store
from aforesaid.store.memories import AddMemory

NOON = datetime(2026, 5, 10, 12, 0, tzinfo=UTC)
ANN = Scope.of("ann")
QUESTIONS = ("Where is the red bicycle?", "What happened first, the race or the bicycle?", "And ann?")
TOWNS = ("Oslo", "Turin", "Lyon", "Graz", "Porto", "Ghent", "Cork")


async def fill(path: Path, count: int) -> None:
    store = await open_store(path)
    drafts = [
        MemoryDraft(
            ANN, "fact", f"ann was in {TOWNS[number % 7]} with friend {number}", importance=1 + number % 9,
            kind="event" if number % 3 == 0 else None, said_at=NOON - timedelta(days=number),
        )
        for number in range(count)
    ]  # fmt: skip
    drafts += [
        MemoryDraft(ANN, "fact", "ann's red bicycle is in the cellar", importance=3),
        MemoryDraft(ANN, "preference", 'ann asks: "Always use metric units"', kind="instruction"),
        MemoryDraft(ANN, "fact", "ann is allergic to hazelnuts", importance=10),
    ]
    await store.apply([AddMemory(draft) for draft in drafts])
    await store.close()


async def contexts(path: Path, profile: Any, counted: list[object]) -> list[str]:  # noqa: ANN401
    async with connect(path, profile=profile, embedder="none") as memory:
        await talk(memory)
        counted.clear()
        return [(await memory.user("ann").context(question, 4_000, at=NOON)).text for question in QUESTIONS]


async def talk(memory: Memory) -> None:
    for number in range(3):
        await memory.user("ann").add("user", f"Hello number {number}", at=NOON - timedelta(minutes=9 - number))


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """All memories that are built from rows, as they are built."""
    made: list[object] = []
    read = stored.read_memory

    def counting(row: Any) -> object:  # noqa: ANN401
        made.append(row[0])
        return read(row)

    monkeypatch.setattr(stored, "read_memory", counting)
    return made


@pytest.mark.defect("X1")
@pytest.mark.parametrize("profile", ["default", "companion", "community", "archive"])
async def test_a_context_builds_no_more_memories_for_who_has_many(
    profile: str, tmp_path: Path, built: list[object]
) -> None:
    counts = {}
    for count in (50, 2_000):
        await fill(tmp_path / f"{count}.db", count)
        texts = await contexts(tmp_path / f"{count}.db", {"extends": profile, "extract": False}, built)
        counts[count] = len(built)
        assert all("metric units" in text for text in texts)
        if profile in {"default", "companion"}:
            assert "cellar" in texts[0]
        if profile != "archive":
            assert all("hazelnuts" in text for text in texts)
    # With fifty, all of them are read where that is less than a context may look at.
    assert counts[2_000] <= counts[50] + 60
    assert counts[2_000] < 400


@pytest.mark.defect("X1")
async def test_facts_that_were_remembered_one_by_one_are_compared_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from aforesaid.facts import describing, portrait  # noqa: PLC0415

    described: list[str] = []
    describe = describing.describe

    def counting(text: str, *others: Any) -> list[Line]:  # noqa: ANN401
        described.append(text)
        return describe(text, *others)

    monkeypatch.setattr(portrait, "describe", counting)
    async with connect(tmp_path / "memory.db", profile={"extract": False}, embedder="none") as memory:
        ann = memory.user("ann")
        await ann.remember("likes tea")
        first = await ann.context("Hello?", at=NOON)
        assert (await ann.context("Hello?", at=NOON)).text == first.text
        assert len(described) == 1
        await ann.remember("plays chess")
        assert "chess" in (await ann.context("Hello?", at=NOON)).text
        assert len(described) == 2
        memory_of_tea = next(each for each in await ann.memories() if "tea" in each.text)
        await ann.edit_memory(memory_of_tea.id, text="ann likes green tea")
        assert "green tea" in (await ann.context("Hello?", at=NOON)).text
