"""Memories, facts and settings on every store."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from aforesaid.domain.memory import MemoryDraft, MemoryRecord
from aforesaid.domain.scope import Scope
from aforesaid.errors import InvalidInput, NotFound
from aforesaid.store import Store, open_store
from aforesaid.store.dumping import Restore
from aforesaid.store.memories import AddMemory, FactsVersions, Memories, NewestFacts, PutFacts
from aforesaid.store.people import AuditRows, PutSetting, Settings
from making import add, adding

ANN = Scope.of("ann")
BOB = Scope.of("bob")


async def test_memories_come_most_important_first_with_their_sources(store: Store) -> None:
    (said,) = await add(store, ANN, "The dentist is on Monday at nine.")
    drafts = [
        MemoryDraft(ANN, "fact", "Lives in Berlin"),
        MemoryDraft(ANN, "schedule", "Dentist Monday 9am", importance=8, tags=("health", "zähne"), sources=(said.seq,)),
        MemoryDraft(ANN, "preference", "Prefers tea"),
    ]
    stored = [(await store.apply([AddMemory(draft)])).results[0] for draft in drafts]
    found = await store.read(Memories(ANN))
    assert [memory.text for memory in found] == ["Dentist Monday 9am", "Prefers tea", "Lives in Berlin"]
    assert found == [stored[1], stored[2], stored[0]]
    assert isinstance(stored[1], MemoryRecord)
    assert (stored[1].sources, stored[1].tags) == ((said.seq,), ("health", "zähne"))
    assert await store.read(Memories(BOB)) == []


async def test_a_message_and_a_memory_that_cites_it_can_be_one_change_set(store: Store) -> None:
    receipt = await store.apply(
        [adding(ANN, "I like tea"), AddMemory(MemoryDraft(ANN, "fact", "likes tea", sources=(1,)))]
    )
    assert receipt.message.seq == 1
    assert [memory.sources for memory in await store.read(Memories(ANN))] == [(1,)]


async def test_a_memory_cannot_rest_on_somebody_elses_message(store: Store) -> None:
    (theirs,) = await add(store, BOB, "I am Bob")
    with pytest.raises(NotFound):
        await store.apply([AddMemory(MemoryDraft(ANN, "fact", "is Bob", sources=(theirs.seq,)))])
    assert await store.read(Memories(ANN)) == []


@pytest.mark.parametrize("wrong", [{"importance": 0}, {"importance": 11}, {"category": "gossip"}, {"text": ""}])
def test_a_memory_outside_the_rules_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        MemoryDraft(**{"scope": ANN, "category": "fact", "text": "x", **wrong})  # type: ignore[arg-type]


async def test_facts_have_versions_and_the_newest_is_read(store: Store) -> None:
    assert await store.read(NewestFacts(ANN)) is None
    await store.apply([PutFacts(ANN, "Ann likes pizza.", cause="remember that I like pizza")])
    await store.apply([PutFacts(ANN, "Ann likes sushi.", cause="no, sushi")])
    facts = await store.read(NewestFacts(ANN))
    assert facts is not None
    assert (facts.text, facts.version) == ("Ann likes sushi.", 2)
    assert await store.read(NewestFacts(BOB)) is None


TEXTS = ("a", "a\nb", "a\nb\nc", "a\nc", "a\nx\nc", "", "c\na", "c\n\na", "c\n\na\na", "a\na")


@pytest.mark.defect("X2")
async def test_each_version_of_facts_is_the_text_that_was_put_whatever_lines_came_and_went(store: Store) -> None:
    for text in TEXTS:
        await store.apply([PutFacts(ANN, text, text or "nothing")])
        newest = await store.read(NewestFacts(ANN))
        assert newest is not None
        assert newest.text == text
    assert [facts.text for facts in await store.read(FactsVersions(ANN))] == [*TEXTS]
    found = await store.verify()
    assert found.ok, found


async def test_a_version_of_facts_that_is_restored_goes_where_it_belongs_by_its_time(store: Store) -> None:
    for text in ("a", "a\nb", "b\nc"):
        await store.apply([PutFacts(ANN, text, "x")])
    versions = await store.read(FactsVersions(ANN))
    between = replace(versions[0], text="a\nz", updated_at=versions[1].updated_at - timedelta(microseconds=1))
    empty = replace(between, text="", cause="forget", updated_at=between.updated_at - timedelta(microseconds=1))
    await store.apply([Restore(between), Restore(empty)])
    await store.apply([PutFacts(ANN, "b\nc\nd", "x")])
    texts = [facts.text for facts in await store.read(FactsVersions(ANN))]
    assert sorted(texts[:3]) == ["", "a", "a\nz"]
    assert texts[3:] == ["a\nb", "b\nc", "b\nc\nd"]
    assert (await store.verify()).ok


@pytest.mark.req("A1")
async def test_settings_are_set_changed_and_taken_back(location: str) -> None:
    store = await open_store(location)
    await store.apply([PutSetting(ANN, "summary_every_n", 15), PutSetting(ANN, "memory_enabled", True)])
    await store.apply([PutSetting(ANN, "summary_every_n", 20), PutSetting(BOB, "memory_enabled", False)])
    if location != ":memory:":
        await store.close()
        store = await open_store(location)
    assert [(setting.key, setting.value) for setting in await store.read(Settings(ANN))] == [
        ("memory_enabled", True),
        ("summary_every_n", 20),
    ]
    await store.apply([PutSetting(ANN, "summary_every_n", None)])
    assert [setting.key for setting in await store.read(Settings(ANN))] == ["memory_enabled"]
    assert [entry.subject for entry in await store.read(AuditRows(ANN))][-1] == "summary_every_n"
    await store.close()
