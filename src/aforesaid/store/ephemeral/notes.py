"""Finding summaries and memories in memory."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from aforesaid.domain.checks import moment
from aforesaid.domain.clock import now
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.note import NoteKey, NoteMatch
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import Summary
from aforesaid.store.ephemeral import summaries
from aforesaid.store.ephemeral.state import State, person
from aforesaid.store.notes import MOST_SOURCES, rank_notes, similarities
from aforesaid.text.terms import query_words, terms

if TYPE_CHECKING:
    from aforesaid.store.questions.searches import Vector


def has_notes(state: State, scope: Scope) -> bool:
    """Tell whether the user has summaries or memories."""
    every: list[Summary | MemoryRecord] = [*state.summaries.values(), *state.memories.values()]
    return any((note.space, note.user) == person(scope) for note in every)


def find_notes(
    state: State, scope: Scope, words: str, embedder: str, vector: Vector | None, limit: int
) -> list[NoteMatch]:
    """Return the user's active notes that fit best."""
    every: list[Summary | MemoryRecord] = [*state.summaries.values(), *state.memories.values()]
    mine = {
        2 * note.id + isinstance(note, MemoryRecord): note for note in every if (note.space, note.user) == person(scope)
    }
    stored = {number: set(terms(note.text)) for number, note in mine.items()}
    having = {
        word: [number for number, found in stored.items() if not found.isdisjoint(wanted)]
        for word, wanted in query_words(words)
    }
    vectors = {number: state.note_vectors.get((embedder, _key(note))) for number, note in mine.items()}
    known = {} if vector is None else {number: value for number, value in vectors.items() if value is not None}
    return [
        NoteMatch(
            key=_key(note),
            text=note.text,
            at=note.created_at,
            sources=_sources(state, scope, note),
            words=ranked.words,
            coverage=ranked.coverage,
            similarity=ranked.similarity,
        )
        for ranked in rank_notes(having, similarities(known, vector), len(mine))
        for note in [mine[ranked.note]]
        if note.active and not (isinstance(note, MemoryRecord) and note.over_at(moment(now())))
    ][:limit]


def _key(note: Summary | MemoryRecord) -> NoteKey:
    return NoteKey("memory" if isinstance(note, MemoryRecord) else "summary", note.id)


def _sources(state: State, scope: Scope, note: Summary | MemoryRecord) -> tuple[str, ...]:
    messages = [entry.message for entry in state.inside(scope, "user")]
    if isinstance(note, MemoryRecord):
        return tuple(message.id for message in messages if message.seq in note.sources)
    fresh = note.first if note.reach == "chunks" else note.fresh
    below = (message.id for message in summaries.below(state, note) if message.seq >= fresh)
    return tuple(islice(below, MOST_SOURCES))
