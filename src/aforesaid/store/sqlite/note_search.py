"""Finding summaries and memories by their words and their meaning."""

from __future__ import annotations

from typing import Final

import apsw

from aforesaid.domain.change import AddNoteVectors
from aforesaid.domain.checks import now
from aforesaid.domain.memory import NoteKey, NoteKind, NoteMatch, UnembeddedNote
from aforesaid.store import questions
from aforesaid.store.notes import MOST_SOURCES, RankedNote, number_of, rank_notes, similarities
from aforesaid.store.records import Row
from aforesaid.store.sqlite import rows
from aforesaid.store.sqlite.connection import owner_prefix
from aforesaid.store.sqlite.names import find_person
from aforesaid.store.sqlite.vectors import NEW_EMBEDDER
from aforesaid.store.sqlite.write_transaction import WriteTransaction
from aforesaid.text.languages import query_words

_INDEX: Final = "INSERT INTO note_index (rowid, terms) VALUES (?2, index_terms(?1, 0, 0, ?3))"
_UNINDEX: Final = "INSERT INTO note_index (note_index, rowid, terms) VALUES ('delete', ?2, index_terms(?1, 0, 0, ?3))"
_NOTES: Final = """
SELECT (SELECT count(*) FROM summary WHERE owner = ?1) + (SELECT count(*) FROM memory WHERE owner = ?1)
"""
# Few are active, however many there were: summaries of summaries archive their sources.
_ACTIVE: Final = """
SELECT 2 * id FROM summary WHERE owner = ?1 AND active = 1
UNION ALL SELECT 2 * id + 1 FROM memory WHERE owner = ?1 AND active = 1
"""
_VECTORS: Final = """
SELECT note, value FROM note_vector WHERE embedder = (SELECT id FROM embedder WHERE name = ?2) AND owner = ?1
"""
_ACTIVE_VECTORS: Final = f"{_VECTORS} AND note IN ({_ACTIVE})"
_IN_A_ROW: Final = 4
"""A vector is read this many times as fast in a row with all others as alone."""
_SUMMARY: Final = """
SELECT text, created_at, id, reach, chunks, owner, first_seq, last_seq, fresh_seq, thread, began_at, ended_at
  FROM summary WHERE id = ? AND owner = ? AND active = 1
"""
# A summary of summaries may stand for everything that was ever said: the log is read until there are enough.
_BELOW: Final = f"""
SELECT l.seq, l.given_id FROM log l WHERE l.owner = :owner AND l.seq BETWEEN :first_seq AND :last_seq AND {{belongs}}
 ORDER BY l.seq LIMIT {MOST_SOURCES}
"""
_WITHIN: Final = "l.seq >= :fresh_seq AND l.at BETWEEN :began_at AND :ended_at"
_BELONGS: Final = {
    "chunks": "l.chunk IN (SELECT value FROM json_each(:chunks))",
    "sources": """EXISTS (
        SELECT 1 FROM summary_source x JOIN summary z ON z.id = x.source
         WHERE x.summary = :id AND l.seq BETWEEN z.first_seq AND z.last_seq
           AND l.at BETWEEN z.began_at AND z.ended_at)""",
    "thread": f"{_WITHIN} AND l.thread = :thread",
    "user": _WITHIN,
}
_MEMORY: Final = """
SELECT text, created_at FROM memory
 WHERE id = ? AND owner = ? AND active = 1 AND (expires_at IS NULL OR expires_at > ?)
"""
_SAID: Final = (
    "SELECT l.seq, l.given_id FROM memory_source s JOIN log l ON l.seq = s.seq WHERE s.memory = ? ORDER BY l.seq"
)
# A note whose text was changed is embedded again: the mark goes back to it, and those after it have their vectors.
_UNEMBEDDED: Final = """
SELECT id, text FROM {table} WHERE id > :mark AND NOT EXISTS (
    SELECT 1 FROM note_vector v WHERE v.embedder = (SELECT id FROM embedder WHERE name = :embedder)
       AND v.owner = {table}.owner AND v.note = 2 * {table}.id + :odd
) ORDER BY id LIMIT :limit
"""
_MARKS: Final = "SELECT summaries_up_to, memories_up_to FROM embedder WHERE name = ?"
_ADD_VECTOR: Final = """
INSERT INTO note_vector (embedder, owner, note, value)
SELECT (SELECT id FROM embedder WHERE name = ?1), owner, ?3, ?4 FROM {table} WHERE id = ?2
ON CONFLICT DO NOTHING
"""
_SEEN: Final = "UPDATE embedder SET {mark} = max({mark}, ?) WHERE name = ?"


def index(transaction: WriteTransaction, owner: int, key: NoteKey, text: str) -> None:
    """Make a note that was just stored findable."""
    transaction.connection.execute(_INDEX, (owner, number_of(key), text))


def index_again(transaction: WriteTransaction, owner: int, key: NoteKey, before: str, text: str) -> None:
    """Make a note whose text was changed findable by its new words, and let it be embedded again."""
    transaction.connection.execute(_UNINDEX, (owner, number_of(key), before))
    transaction.connection.execute(_INDEX, (owner, number_of(key), text))
    transaction.connection.execute("DELETE FROM note_vector WHERE owner = ? AND note = ?", (owner, number_of(key)))
    mark = "summaries_up_to" if key.kind == "summary" else "memories_up_to"
    transaction.connection.execute(f"UPDATE embedder SET {mark} = min({mark}, ? - 1)", (key.id,))


def unembedded(connection: apsw.Connection, question: questions.UnembeddedNotes) -> list[UnembeddedNote]:
    """Return the oldest notes that an embedder has not seen."""
    summaries, memories = connection.execute(_MARKS, (question.embedder,)).fetchone() or (0, 0)
    kinds: tuple[tuple[NoteKind, int], ...] = (("summary", summaries), ("memory", memories))
    found: list[UnembeddedNote] = []
    for kind, mark in kinds:
        query, odd = _UNEMBEDDED.format(table=kind), kind == "memory"
        bindings = {"embedder": question.embedder, "mark": mark, "odd": odd, "limit": question.limit - len(found)}
        found += [UnembeddedNote(NoteKey(kind, note), text) for note, text in connection.execute(query, bindings)]
    return found


def add_vectors(transaction: WriteTransaction, step: AddNoteVectors) -> None:
    """Store the vectors of notes, and how far the embedder has come."""
    execute = transaction.connection.execute
    for key, value, _ in step.rows:
        execute(NEW_EMBEDDER, (step.embedder, len(value) // 2))
        execute(_ADD_VECTOR.format(table=key.kind), (step.embedder, key.id, number_of(key), value))
        mark = "summaries_up_to" if key.kind == "summary" else "memories_up_to"
        execute(_SEEN.format(mark=mark), (key.id, step.embedder))


def search(connection: apsw.Connection, question: questions.SearchNotes) -> list[NoteMatch]:
    """Return the active notes of a user that fit best."""
    owner = find_person(connection, question.scope.space, question.scope.user)
    if owner is None:
        return []
    count = connection.execute(_NOTES, (owner,)).get
    if not count:
        return []
    prefix, having = owner_prefix(owner), {}
    for word, terms in query_words(question.words):
        query = "SELECT doc FROM note_posting WHERE term = ?"
        having[word] = [doc for term in terms for (doc,) in connection.execute(query, (prefix + term,))]
    having = {word: list(dict.fromkeys(found)) for word, found in having.items()}
    active = {note for (note,) in connection.execute(_ACTIVE, (owner,))}
    vectors: dict[int, bytes] = {}
    if question.vector is not None:
        query = _VECTORS if count < _IN_A_ROW * len(active) else _ACTIVE_VECTORS
        found = rows.every(connection.execute(query, (owner, question.embedder)))
        vectors.update((note, value) for note, value in found if note in active)
    matches: list[NoteMatch] = []
    for ranked in rank_notes(having, similarities(vectors, question.vector), count):
        match = _read(connection, owner, ranked) if ranked.note in active else None
        if match is not None:
            matches.append(match)
            if len(matches) == question.limit:
                break
    return matches


def _read(connection: apsw.Connection, owner: int, ranked: RankedNote) -> NoteMatch | None:
    key = ranked.key
    if key.kind == "summary":
        row = connection.execute(_SUMMARY, (key.id, owner)).fetchone()
    else:
        row = connection.execute(_MEMORY, (key.id, owner, now())).fetchone()
    if row is None:
        return None
    sources = _below(connection, row) if key.kind == "summary" else connection.execute(_SAID, (key.id,))
    return ranked.match(row[0], row[1], sources)


def _below(connection: apsw.Connection, row: Row) -> apsw.Cursor:
    names = ("id", "reach", "chunks", "owner", "first_seq", "last_seq", "fresh_seq", "thread", "began_at", "ended_at")
    summary = dict(zip(names, row[2:], strict=True))
    return connection.execute(_BELOW.format(belongs=_BELONGS[summary["reach"]]), summary)
