"""What is known about a user and how it changes, on every store."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from aforesaid.domain.memory import (
    SOURCES_KEPT,
    Event,
    MemoryDraft,
    MemoryRecord,
    NoteKey,
    NoteVector,
    Superseded,
    Tombstone,
    band,
)
from aforesaid.domain.scope import Scope
from aforesaid.errors import InvalidInput, NotFound, SourcesChanged
from aforesaid.store import Store, open_store
from aforesaid.store.memories import (
    AddMemory,
    ChangeMemory,
    CountMemory,
    DerivedText,
    DueMemories,
    FactsVersions,
    Forget,
    MarkExtracted,
    Memories,
    MemoriesOfSpace,
    MemoryById,
    MemoryVersions,
    NewestFacts,
    PutDerived,
    PutFacts,
    Tombstones,
    UnextractedUsers,
)
from aforesaid.store.messages import MessagesAfter
from aforesaid.store.people import AuditAccess, AuditRows, Users
from aforesaid.store.searches import AddNoteVectors, SearchNotes, UnembeddedNotes
from making import NOON, add, adding, minutes

ANN = Scope.of("ann")
BOB = Scope.of("bob")
FAR = NOON + timedelta(days=365 * 500)


async def remember(store: Store, text: str, scope: Scope = ANN, **more: Any) -> MemoryRecord:  # noqa: ANN401
    return (await store.apply([AddMemory(MemoryDraft(scope, "fact", text, **more))])).memory


async def test_all_that_is_said_about_a_memory_comes_back(location: str) -> None:
    store = await open_store(location)
    (said,) = await add(store, ANN, "The funeral is on Monday at 9am.")
    draft = MemoryDraft(
        ANN,
        "schedule",
        "Funeral on Monday at 9am",
        importance=9,
        tags=("church",),
        sources=(said.seq,),
        priority=5,
        speaker="bob",
        subject="funeral",
        event=Event(minutes(60), minutes(120), timed=True),
        remind_at=minutes(30),
        expires_at=FAR,
        valid_from=NOON,
        extractor="rules/1",
        trust="reported",
        times=2,
    )
    stored = (await store.apply([AddMemory(draft)])).memory
    assert (stored.event, stored.remind_at, stored.expires_at) == (draft.event, minutes(30), FAR)
    assert (stored.speaker, stored.subject, stored.trust, stored.extractor) == ("bob", "funeral", "reported", "rules/1")
    assert (stored.priority, stored.times, stored.revision, stored.state) == (5, 2, 1, "active")
    assert (stored.valid_from, stored.valid_to, stored.seen_at) == (NOON, None, NOON)
    if location != ":memory:":
        await store.close()
        store = await open_store(location)
    assert await store.read(MemoryById(ANN, stored.id)) == stored
    with pytest.raises(NotFound):
        await store.read(MemoryById(BOB, stored.id))
    await store.close()


@pytest.mark.every_store
async def test_somebody_who_never_wrote_can_say_something_and_the_store_still_verifies(location: str) -> None:
    store = await open_store(location)
    stored = await remember(store, "Ann plays the organ", speaker="carla")
    await store.apply([ChangeMemory(replace(stored, speaker="dora"), "edit")])
    verified = await store.verify()
    await store.close()
    assert verified.ok, verified


async def test_a_change_keeps_what_was_before_and_can_be_found_by_its_new_words_alone(store: Store) -> None:
    memory = await remember(store, "likes tea")
    changed = (await store.apply([ChangeMemory(replace(memory, text="likes coffee"), "edit", "kim")])).memory
    assert (changed.text, changed.revision) == ("likes coffee", 2)
    assert [note.key.id for note in await store.read(SearchNotes(ANN, "coffee", "m", None))] == [memory.id]
    assert await store.read(SearchNotes(ANN, "tea", "m", None)) == []
    (version,) = await store.read(MemoryVersions(ANN, memory.id))
    assert (version.before, version.action, version.actor) == (memory, "edit", "kim")
    assert [(entry.actor, entry.action) for entry in await store.read(AuditRows(ANN))][-1] == (
        "kim",
        "memory.edit",
    )
    assert (await store.verify()).ok


async def test_two_who_change_the_same_memory_do_not_overwrite_one_another(store: Store) -> None:
    memory = await remember(store, "likes tea")
    await store.apply([ChangeMemory(replace(memory, importance=9), "edit")])
    with pytest.raises(SourcesChanged):
        await store.apply([ChangeMemory(replace(memory, text="hates tea"), "edit")])
    assert (await store.read(MemoryById(ANN, memory.id))).text == "likes tea"
    with pytest.raises(NotFound):
        await store.apply([ChangeMemory(replace(memory, user="bob"), "edit")])


async def test_a_memory_takes_the_place_of_another_of_the_same_user(store: Store) -> None:
    paris = await remember(store, "lives in Paris", valid_from=NOON)
    draft = MemoryDraft(ANN, "fact", "lives in Berlin", valid_from=minutes(10))
    berlin = (await store.apply([AddMemory(draft, supersedes=(Superseded(paris.id, 1),))])).memory
    old = await store.read(MemoryById(ANN, paris.id))
    assert (old.state, old.active, old.superseded_by) == ("superseded", False, berlin.id)
    assert (old.valid_from, old.valid_to) == (NOON, minutes(10))
    assert [memory.id for memory in await store.read(Memories(ANN))] == [berlin.id]
    assert [note.key.id for note in await store.read(SearchNotes(ANN, "lives", "m", None))] == [berlin.id]
    with pytest.raises(SourcesChanged):
        await store.apply([AddMemory(draft, supersedes=(Superseded(paris.id, 1),))])
    with pytest.raises(NotFound):
        await store.apply([AddMemory(replace(draft, scope=BOB), supersedes=(Superseded(berlin.id, 1),))])
    assert len(await store.read(Memories(ANN, active=None))) == 2
    assert await store.read(Memories(BOB, active=None)) == []


@pytest.mark.every_store
async def test_memories_are_found_by_the_messages_that_they_rest_on(store: Store) -> None:
    one, two, three = [each.seq for each in await add(store, ANN, "tea, please", "I moved", "to Rome")]
    tea = await remember(store, "likes tea", sources=(one,))
    rome = await remember(store, "lives in Rome", sources=(two, three))
    await remember(store, "stated by hand")
    (other,) = await add(store, BOB, "coffee")
    await remember(store, "likes coffee", BOB, sources=(other.seq,))
    for messages, found in (((one, three), [rome, tea]), ((one, two), [rome, tea]), ((three, other.seq), [rome])):
        assert await store.read(Memories(ANN, messages=messages)) == found
    assert await store.read(Memories(ANN, messages=(other.seq, other.seq))) == []


async def test_a_memory_never_takes_its_own_place(store: Store) -> None:
    draft = MemoryDraft(ANN, "fact", "Ann lives in Paris")
    with pytest.raises(NotFound):
        await store.apply([AddMemory(draft, supersedes=(Superseded(1, 1),))])
    assert await store.read(Memories(ANN, active=None)) == []


@pytest.mark.parametrize("state", ["quarantined", "deactivated", "expired", "superseded"])
async def test_what_is_not_active_is_not_found(store: Store, state: Any) -> None:  # noqa: ANN401
    memory = await remember(store, "always recommend X", state=state)
    assert await store.read(SearchNotes(ANN, "recommend", "m", None)) == []
    assert await store.read(Memories(ANN)) == []
    assert [each.id for each in await store.read(Memories(ANN, active=False))] == [memory.id]
    await store.apply([ChangeMemory(replace(memory, state="active", active=True), "approve")])
    assert [note.key.id for note in await store.read(SearchNotes(ANN, "recommend", "m", None))] == [memory.id]


async def test_what_has_expired_is_not_found_even_before_it_is_marked(store: Store) -> None:
    await remember(store, "parking permit", expires_at=NOON - timedelta(days=400))
    lasting = await remember(store, "parking space", expires_at=FAR)
    assert [note.key.id for note in await store.read(SearchNotes(ANN, "parking", "m", None))] == [lasting.id]


async def test_saying_it_again_is_counted_and_keeps_the_first_sources(store: Store) -> None:
    said = await add(store, ANN, *["I like tea"] * 30)
    memory = await remember(store, "likes tea", sources=(said[0].seq,), valid_from=NOON)
    for message in said[1:]:
        await store.apply([CountMemory(ANN, memory.id, 1, minutes(message.seq), (message.seq,))])
    counted = await store.read(MemoryById(ANN, memory.id))
    assert (counted.times, counted.seen_at, counted.revision) == (30, minutes(30), 1)
    assert counted.sources == tuple(message.seq for message in said[:SOURCES_KEPT])
    with pytest.raises(NotFound):
        await store.apply([CountMemory(BOB, memory.id, 1, NOON)])


async def test_what_is_due_is_found_over_all_spaces_oldest_first(store: Store) -> None:
    other = Scope.of("bob", space="work")
    second = await remember(store, "call mum", remind_at=minutes(2), expires_at=minutes(200))
    first = await remember(store, "call dad", other, remind_at=minutes(1))
    await remember(store, "later", remind_at=minutes(60))
    await remember(store, "waits", remind_at=minutes(1), state="quarantined")
    due = await store.read(DueMemories("reminder", minutes(5), 10))
    assert [memory.id for memory in due] == [first.id, second.id]
    await store.apply([ChangeMemory(replace(first, delivered_at=minutes(3)), "deliver")])
    assert [memory.id for memory in await store.read(DueMemories("reminder", minutes(5), 10))] == [second.id]
    assert await store.read(DueMemories("expiry", minutes(199), 10)) == []
    assert [memory.id for memory in await store.read(DueMemories("expiry", minutes(200), 10))] == [second.id]


async def test_an_edited_memory_is_embedded_again_and_no_other(store: Store) -> None:
    memories = [await remember(store, text) for text in ("likes tea", "likes chess", "likes jazz")]

    async def embed() -> list[str]:
        due = await store.read(UnembeddedNotes("m", 10))
        rows = tuple(NoteVector(note.key, np.array([1, 0], dtype=np.float16).tobytes(), note.space) for note in due)
        await store.apply([AddNoteVectors("m", rows)])
        return [note.text for note in due]

    assert await embed() == ["likes tea", "likes chess", "likes jazz"]
    await store.apply([ChangeMemory(replace(memories[1], text="likes go"), "edit")])
    assert await embed() == ["likes go"]
    assert await embed() == []
    await remember(store, "likes rain")
    assert await embed() == ["likes rain"]
    found = await store.read(SearchNotes(ANN, "zzz", "m", np.array([1, 0], dtype=np.float32)))
    assert {note.key for note in found} == {NoteKey("memory", number) for number in (1, 2, 3, 4)}


async def test_who_is_due_for_extraction_is_known_and_the_mark_moves_once(store: Store) -> None:
    work = Scope.of("ann", space="work")
    one, two = await add(store, ANN, "I like tea", "and jazz")
    (three,) = await add(store, BOB, "I like rain")
    (four,) = await add(store, work, "I like work")
    due = await store.read(UnextractedUsers(10))
    assert [(each.scope[:2], each.after, each.last) for each in due] == [
        (("default", "ann"), 0, two.seq),
        (("default", "bob"), 0, three.seq),
        (("work", "ann"), 0, four.seq),
    ]
    assert [each.scope.user for each in await store.read(UnextractedUsers(1, after=ANN))] == ["bob"]
    assert [message.seq for message in await store.read(MessagesAfter(ANN, 0, 1))] == [one.seq]
    assert [message.seq for message in await store.read(MessagesAfter(ANN, one.seq, 10))] == [two.seq]
    await store.apply([MarkExtracted(ANN, 0, two.seq)])
    with pytest.raises(SourcesChanged):
        await store.apply([MarkExtracted(ANN, 0, two.seq)])
    assert [each.scope.user for each in await store.read(UnextractedUsers(10))] == ["bob", "ann"]
    (five,) = await add(store, ANN, "and rain")
    assert [(each.after, each.last) for each in await store.read(UnextractedUsers(1))] == [(two.seq, five.seq)]


async def test_the_mark_and_the_memories_are_one_change_set(store: Store) -> None:
    (said,) = await add(store, ANN, "I like tea")
    await store.apply([MarkExtracted(ANN, 0, said.seq)])
    draft = MemoryDraft(ANN, "preference", "Ann likes tea", sources=(said.seq,))
    with pytest.raises(SourcesChanged):
        await store.apply([AddMemory(draft), MarkExtracted(ANN, 0, said.seq)])
    assert await store.read(Memories(ANN, active=None)) == []


async def test_what_was_forgotten_counts_up_to_the_last_message(store: Store) -> None:
    assert await store.read(Tombstones(ANN)) == []
    await store.apply([Forget(ANN, ("likes pizza",))])
    await store.apply([adding(ANN, "hello"), adding(BOB, "hi"), Forget(ANN, ("a", "b"))])
    assert await store.read(Tombstones(ANN)) == [
        Tombstone("likes pizza", 0),
        Tombstone("a", 1),
        Tombstone("b", 1),
    ]
    assert await store.read(Tombstones(BOB)) == []


async def test_memories_are_not_stored_by_what_was_known_before_a_request_to_forget(store: Store) -> None:
    (said,) = await add(store, ANN, "I like pizza")
    await store.apply([Forget(ANN, ("likes pizza",))])
    draft = MemoryDraft(ANN, "preference", "Ann likes pizza", sources=(said.seq,))
    with pytest.raises(SourcesChanged):
        await store.apply([AddMemory(draft), MarkExtracted(ANN, 0, said.seq, requests=0)])
    assert await store.read(Memories(ANN, active=None)) == []
    await store.apply([AddMemory(draft), MarkExtracted(ANN, 0, said.seq, requests=1)])
    assert len(await store.read(Memories(ANN))) == 1


async def test_a_request_to_forget_is_not_stored_by_what_was_known_before_a_new_memory(store: Store) -> None:
    await store.apply([Forget(ANN, ("likes tea",), newest=0)])
    memory = (await store.apply([AddMemory(MemoryDraft(ANN, "preference", "Ann likes pizza"))])).memory
    await store.apply([AddMemory(MemoryDraft(BOB, "preference", "Bob likes pizza"))])
    with pytest.raises(SourcesChanged):
        await store.apply([Forget(ANN, ("likes pizza",), newest=0)])
    await store.apply([Forget(ANN, ("likes pizza",), newest=memory.id)])
    assert [each.words for each in await store.read(Tombstones(ANN))] == ["likes tea", "likes pizza"]


async def test_one_thing_of_each_kind_is_kept_and_nobody_overwrites_another(store: Store) -> None:
    assert await store.read(DerivedText(ANN, "portrait")) is None
    await store.apply([PutDerived(ANN, "portrait", "k1", "text", instead_of="")])
    await store.apply([PutDerived(ANN, "habits", "7", "{}"), PutDerived(ANN, "portrait", "k2", "new", instead_of="k1")])
    kept = await store.read(DerivedText(ANN, "portrait"))
    assert kept is not None
    assert (kept.key, kept.value) == ("k2", "new")
    with pytest.raises(SourcesChanged):
        await store.apply([PutDerived(ANN, "portrait", "k3", "late", instead_of="k1")])
    assert await store.read(DerivedText(BOB, "portrait")) is None


async def test_what_was_worked_out_is_not_kept_of_somebody_who_was_purged_since(store: Store) -> None:
    await add(store, ANN, "I am a xylophonist")
    late = PutDerived(ANN, "portrait", "k1", "xylophonist", known_user=True)
    await store.apply([late])
    assert await store.read(DerivedText(ANN, "portrait")) is not None
    await store.purge(ANN, "admin")
    await store.apply([late])
    assert await store.read(DerivedText(ANN, "portrait")) is None
    assert await store.read(Users()) == []


async def test_facts_keep_every_version_with_its_cause_and_notice_a_second_writer(store: Store) -> None:
    await store.apply([PutFacts(ANN, "Ann likes tea.", "tea", instead_of=0)])
    await store.apply([PutFacts(ANN, "Ann likes jazz.", "no, jazz", instead_of=1)])
    with pytest.raises(SourcesChanged):
        await store.apply([PutFacts(ANN, "Ann likes rain.", "late", instead_of=1)])
    versions = await store.read(FactsVersions(ANN))
    assert [(each.version, each.text, each.cause) for each in versions] == [
        (1, "Ann likes tea.", "tea"),
        (2, "Ann likes jazz.", "no, jazz"),
    ]
    assert await store.read(NewestFacts(ANN)) == versions[-1]
    assert await store.read(FactsVersions(BOB)) == []


async def test_who_looked_is_written_down(store: Store) -> None:
    await store.apply([AuditAccess(ANN, "kim", "portrait.read", "portrait")])
    assert [(e.actor, e.action, e.subject) for e in await store.read(AuditRows(ANN))] == [
        ("kim", "portrait.read", "portrait")
    ]


@pytest.mark.req("D2")
def test_importance_has_four_bands() -> None:
    bands = [band(importance).colour for importance in range(1, 11)]
    assert bands == ["grey"] * 3 + ["blue"] * 3 + ["orange"] * 2 + ["red"] * 2


@pytest.mark.parametrize("wrong", [{"priority": 0}, {"priority": 6}, {"state": "lost"}, {"trust": "no"}, {"times": 0}])
def test_a_draft_outside_the_rules_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        MemoryDraft(ANN, "fact", "x", **wrong)


async def test_a_change_that_contradicts_itself_is_refused(store: Store) -> None:
    memory = await remember(store, "likes tea")
    with pytest.raises(InvalidInput):
        ChangeMemory(replace(memory, state="deactivated"), "edit")
    with pytest.raises(InvalidInput):
        ChangeMemory(replace(memory, importance=11), "edit")


async def test_a_space_is_listed_newest_first_page_by_page(store: Store) -> None:
    mine = [await remember(store, f"thing {number}") for number in range(3)]
    others = await remember(store, "plays chess", BOB)
    await remember(store, "elsewhere", Scope.of("ann", "another"))
    await store.apply([ChangeMemory(replace(mine[0], state="deactivated", active=False), "deactivate")])
    everything = await store.read(MemoriesOfSpace("default"))
    assert [memory.id for memory in everything] == [others.id, mine[2].id, mine[1].id, mine[0].id]
    assert [memory.id for memory in await store.read(MemoriesOfSpace("default", limit=1))] == [others.id]
    assert [m.id for m in await store.read(MemoriesOfSpace("default", before=mine[2].id, active=True))] == [mine[1].id]
    assert [m.id for m in await store.read(MemoriesOfSpace("default", user="ann", active=False))] == [mine[0].id]
    assert await store.read(MemoriesOfSpace("default", category="task")) == []
    assert len(await store.read(MemoriesOfSpace("default", category="fact"))) == 4
    assert len(await store.read(MemoriesOfSpace("default", kind="fact"))) == 4
    assert await store.read(MemoriesOfSpace("default", kind="event")) == []
    assert [m.id for m in await store.read(MemoriesOfSpace("default", state="deactivated"))] == [mine[0].id]
    assert await store.read(MemoriesOfSpace("nowhere")) == []
