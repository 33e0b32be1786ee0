"""Searches of the store in memory."""

from __future__ import annotations

from aforesaid.domain.hit import Hit
from aforesaid.domain.message_filter import EVERY_MESSAGE
from aforesaid.domain.note import NoteMatch
from aforesaid.domain.scope import Scope, is_direct
from aforesaid.domain.vector import Similar
from aforesaid.store import questions
from aforesaid.store.ephemeral.index import Index
from aforesaid.store.ephemeral.notes import find_notes, has_notes
from aforesaid.store.ephemeral.reader import Reader
from aforesaid.store.ephemeral.state import person, thread
from aforesaid.store.matrix import Matrix
from aforesaid.store.ranking import Posting, TextMatches, best_hits, hit, posting, telling
from aforesaid.text.terms import query_words


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
    seqs = [message.seq for message in inside if not message.replaced and question.where.holds(message)]
    rows = [
        (seq, reader.state.vectors[question.embedder, seq])
        for seq in seqs
        if (question.embedder, seq) in reader.state.vectors
    ]
    matrix = Matrix()
    matrix.extend(rows)
    return matrix.similar(question.vector, question.limit, question.also)


def search_notes(reader: Reader, question: questions.SearchNotes) -> list[NoteMatch]:
    """Return the user's active notes that fit best."""
    return find_notes(reader.state, question.scope, question.words, question.embedder, question.vector, question.limit)
