"""Searches of the store in memory."""

from __future__ import annotations

from itertools import islice

from aforesaid.domain.checks import moment, now
from aforesaid.domain.hit import EVERY_MESSAGE, Hit, Similar
from aforesaid.domain.memory import MemoryRecord, NoteKey, NoteMatch
from aforesaid.domain.scope import Scope, is_direct
from aforesaid.domain.summary import Summary
from aforesaid.store import questions
from aforesaid.store.ephemeral.known_reads import below
from aforesaid.store.ephemeral.reader import Index, Reader
from aforesaid.store.ephemeral.state import State, not_searched, person, thread
from aforesaid.store.ranking import (
    MOST_SOURCES,
    Posting,
    TextMatches,
    best_hits,
    hit,
    posting,
    rank_notes,
    similarities,
    telling,
)
from aforesaid.store.vector_matrix import Matrix
from aforesaid.text.languages import query_words, terms


def search_text(reader: Reader, question: questions.SearchText) -> list[Hit]:
    """Return the messages that best match any of the words."""
    wanted = questions.MatchText(question.scope, question.words, question.within, None, question.where)
    best = best_hits(match_text(reader, wanted), question.limit)
    return [hit(reader.state.log[seq].message, score, found) for seq, score, found in best]


def match_text(reader: Reader, question: questions.MatchText) -> TextMatches:
    """Return which messages of the scope have which words."""
    import numpy as np  # noqa: PLC0415 - loaded with the first search

    # Rarity is judged among all that the scope's posting lists hold, like in the other stores.
    shared = question.within != "user" and not is_direct(question.scope.thread)
    index = _index(reader, question.scope, shared=shared)
    columns = index.columns()
    inside = np.ones(len(columns), dtype=bool)
    filtered = question.where != EVERY_MESSAGE
    if filtered or (question.within != "user" and (not shared or question.within == "session")):
        held = (entry.message for entry in reader.state.inside(question.scope, question.within))
        inside = np.isin(columns.seq, [each.seq for each in held if question.where.holds(each)])
    notes = question.within == "user" and has_notes(reader.state, question.scope)
    postings = []
    for word, stored_as in query_words(question.words):
        rows, counts = index.having(stored_as)
        rarity = posting(word, rows, counts, index.count).rarity
        kept = inside[rows]
        postings.append(Posting(word, rarity, rows[kept], counts[kept]))
    return TextMatches(columns, telling(postings), max(index.length / max(index.count, 1), 1.0), notes)


def _index(reader: Reader, scope: Scope, *, shared: bool) -> Index:
    """Return the words of a thread or of a user, brought up to date."""
    key = (shared, thread(scope) if shared else person(scope))
    index = reader.indexes.get(key)
    if index is None or not index.is_of(reader.state):
        index = reader.indexes[key] = Index(reader.state)
    index.grow(reader.state.numbers.said(key[1]) if shared else reader.state.numbers.owned(key[1]))
    return index


def search_vector(reader: Reader, question: questions.SearchVector) -> Similar | None:
    """Return the messages most similar to a vector."""
    inside = [entry.message for entry in reader.state.inside(question.scope, question.within)]
    gone = not_searched(inside)
    seqs = [message.seq for message in inside if message.seq not in gone and question.where.holds(message)]
    rows = [
        (seq, reader.state.vectors[question.embedder, seq])
        for seq in seqs
        if (question.embedder, seq) in reader.state.vectors
    ]
    matrix = Matrix()
    matrix.extend(rows)
    return matrix.similar(question.vector, question.limit, question.also)


def has_notes(state: State, scope: Scope) -> bool:
    """Tell whether the user has summaries or memories."""
    every: list[Summary | MemoryRecord] = [*state.summaries.values(), *state.memories.values()]
    return any((note.space, note.user) == person(scope) for note in every)


def search_notes(reader: Reader, question: questions.SearchNotes) -> list[NoteMatch]:
    """Return the user's active notes that fit best."""
    state, scope = reader.state, question.scope
    every: list[Summary | MemoryRecord] = [*state.summaries.values(), *state.memories.values()]
    mine = {
        2 * note.id + isinstance(note, MemoryRecord): note for note in every if (note.space, note.user) == person(scope)
    }
    stored = {number: set(terms(note.text)) for number, note in mine.items()}
    having = {
        word: [number for number, found in stored.items() if not found.isdisjoint(wanted)]
        for word, wanted in query_words(question.words)
    }
    vectors = {number: state.note_vectors.get((question.embedder, _key(note))) for number, note in mine.items()}
    known = {} if question.vector is None else {number: value for number, value in vectors.items() if value is not None}
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
        for ranked in rank_notes(having, similarities(known, question.vector), len(mine))
        for note in [mine[ranked.note]]
        if note.active and not (isinstance(note, MemoryRecord) and note.over_at(moment(now())))
    ][: question.limit]


def _key(note: Summary | MemoryRecord) -> NoteKey:
    return NoteKey("memory" if isinstance(note, MemoryRecord) else "summary", note.id)


def _sources(state: State, scope: Scope, note: Summary | MemoryRecord) -> tuple[str, ...]:
    messages = [entry.message for entry in state.inside(scope, "user")]
    if isinstance(note, MemoryRecord):
        return tuple(message.id for message in messages if message.seq in note.sources)
    fresh = note.first if note.reach == "chunks" else note.fresh
    found = (message.id for message in below(state, note) if message.seq >= fresh)
    return tuple(islice(found, MOST_SOURCES))
