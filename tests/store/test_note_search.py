"""Summaries and memories are found, on every store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aforesaid.domain.memory import MemoryDraft, NoteKey, NoteVector
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import SummaryDraft
from aforesaid.store import Store, open_store
from aforesaid.store.memories import AddMemory, ChangeMemory, MemoryById
from aforesaid.store.messages import Messages
from aforesaid.store.ranking import MOST_SOURCES
from aforesaid.store.searches import AddNoteVectors, SearchNotes, UnembeddedNotes
from aforesaid.store.sqlite import search
from aforesaid.store.summaries import Archive, RollBack
from aforesaid.store.vector_matrix import unpacked
from making import add, adding

ANN = Scope.of("ann")
BOB = Scope.of("bob")


async def remember(store: Store, scope: Scope, text: str, *sources: int) -> int:
    receipt = await store.apply([AddMemory(MemoryDraft(scope, "fact", text, sources=sources))])
    return receipt.memory.id


async def summarise(store: Store, scope: Scope, text: str, *messages: int) -> int:
    receipt = await store.apply([Archive(SummaryDraft(scope, text, messages=messages))])
    return receipt.summary.id


def vector(*numbers: float) -> bytes:
    return np.array(numbers, dtype=np.float16).tobytes()


async def test_notes_are_found_by_their_words_in_any_form_with_their_sources(store: Store) -> None:
    one, two = await add(store, ANN, "I moved to Berlin", "and found a flat")
    memory = await remember(store, ANN, "Ann keeps two hives on the roof", one.seq)
    summary = await summarise(store, ANN, "Ann moved to Berlin and keeps bees", one.seq, two.seq)
    (found,) = await store.read(SearchNotes(ANN, "a hive", "m", None))
    assert (found.key, found.words, found.sources) == (NoteKey("memory", memory), ("hive",), (one.id,))
    both = await store.read(SearchNotes(ANN, "Who keeps bees?", "m", None))
    assert [note.key for note in both] == [NoteKey("summary", summary), NoteKey("memory", memory)]
    assert both[0].sources == (one.id, two.id)
    assert both[0].coverage == 1.0 > both[1].coverage > 0


async def test_notes_of_others_and_notes_that_were_taken_back_are_not_found(store: Store) -> None:
    (message,) = await add(store, ANN, "a secret")
    await remember(store, ANN, "the secret is in the garden")
    summary = await summarise(store, ANN, "Ann has a secret", message.seq)
    assert len(await store.read(SearchNotes(ANN, "secret", "m", None))) == 2
    assert await store.read(SearchNotes(BOB, "secret", "m", None)) == []
    await store.apply([RollBack(ANN, summary)])
    assert [note.key.kind for note in await store.read(SearchNotes(ANN, "secret", "m", None))] == ["memory"]


async def test_notes_are_compared_by_meaning_once_an_embedder_has_seen_them(store: Store) -> None:
    first = await remember(store, ANN, "likes tea")
    second = await remember(store, ANN, "likes football")
    due = await store.read(UnembeddedNotes("m", 10))
    assert [(note.key, note.text) for note in due] == [
        (NoteKey("memory", first), "likes tea"),
        (NoteKey("memory", second), "likes football"),
    ]
    rows = tuple(
        NoteVector(note.key, value, note.space) for note, value in zip(due, (vector(1, 0), vector(0, 1)), strict=True)
    )
    await store.apply([AddNoteVectors("m", rows)])
    await store.apply([AddNoteVectors("m", rows)])
    assert await store.read(UnembeddedNotes("m", 10)) == []
    assert len(await store.read(UnembeddedNotes("another", 1))) == 1
    found = await store.read(SearchNotes(ANN, "zzz", "m", np.array([0, 1], dtype=np.float32), limit=1))
    assert [(note.key.id, note.similarity) for note in found] == [(second, 1.0)]
    assert await store.read(SearchNotes(ANN, "zzz", "another", np.array([0, 1], dtype=np.float32))) == []
    assert (await store.verify()).ok


async def test_notes_that_were_changed_added_or_taken_away_are_compared_as_they_are_now(store: Store) -> None:
    asked = SearchNotes(ANN, "zzz", "m", np.array([0, 1], dtype=np.float32))

    async def embed(memory: int, *numbers: float) -> None:
        await store.apply([AddNoteVectors("m", (NoteVector(NoteKey("memory", memory), vector(*numbers), "default"),))])

    async def found() -> list[tuple[int, float | None]]:
        return [(note.key.id, note.similarity) for note in await store.read(asked)]

    first, second, third = [await remember(store, ANN, f"number {number}") for number in range(3)]
    await embed(first, 1, 0)
    await embed(second, 0, 1)
    assert await found() == [(second, 1.0), (first, 0.0)]
    await embed(third, 0, 1)
    assert await found() == [(third, 1.0), (second, 1.0), (first, 0.0)]
    memory = await store.read(MemoryById(ANN, second))
    await store.apply([ChangeMemory(replace(memory, text="another number"), "edit")])
    await embed(second, 1, 0)
    assert await found() == [(third, 1.0), (second, 0.0), (first, 0.0)]
    memory = await store.read(MemoryById(ANN, third))
    await store.apply([ChangeMemory(replace(memory, state="deactivated", active=False), "deactivate")])
    assert await found() == [(second, 0.0), (first, 0.0)]


async def test_the_vector_of_a_note_is_read_once_for_all_searches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []

    def counting(values: Sequence[bytes]) -> np.ndarray[Any, np.dtype[np.float32]]:
        read.append(len(values))
        return unpacked(values)

    monkeypatch.setattr(search, "unpacked", counting)
    store = await open_store(f"sqlite:{tmp_path / 'memory.db'}")
    for number in range(4):
        key = NoteKey("memory", await remember(store, ANN, f"number {number}"))
        await store.apply([AddNoteVectors("m", (NoteVector(key, vector(1, number), "default"),))])
        for _ in range(3):
            await store.read(SearchNotes(ANN, "number", "m", np.array([0, 1], dtype=np.float32)))
    await store.close()
    assert sum(read) == 4


async def test_no_more_notes_are_handed_out_for_embedding_than_asked_for(store: Store) -> None:
    for message in await add(store, ANN, "one", "two", "three"):
        await summarise(store, ANN, f"summary of {message.text}", message.seq)
        await remember(store, ANN, f"memory of {message.text}", message.seq)
    assert [len(await store.read(UnembeddedNotes("m", limit))) for limit in (2, 3, 4, 6, 7)] == [
        2,
        3,
        4,
        6,
        6,
    ]


async def test_of_a_summary_of_very_much_the_first_sources_are_named(store: Store) -> None:
    changes = [adding(ANN, f"message {number}") for number in range(MOST_SOURCES + 5)]
    await store.apply(changes)
    messages = await store.read(Messages(ANN, limit=len(changes)))
    await summarise(store, ANN, "Ann counted", *(message.seq for message in messages))
    (found,) = await store.read(SearchNotes(ANN, "counted", "m", None))
    assert found.sources == tuple(message.id for message in messages[:MOST_SOURCES])
