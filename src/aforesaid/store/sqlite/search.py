"""Keyword search over the posting lists of one scope."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import apsw

from aforesaid.domain.checks import now
from aforesaid.domain.hit import Hit, Unembedded
from aforesaid.domain.memory import MemoryRecord, NoteKey, NoteKind, NoteMatch, UnembeddedNote
from aforesaid.domain.scope import Scope
from aforesaid.extras import np
from aforesaid.store.columns import Columns, columns_of
from aforesaid.store.memories import RelevantMemories
from aforesaid.store.messages import MessagesByNumber, inside
from aforesaid.store.ranking import (
    MOST_HAVING,
    MOST_SOURCES,
    Posting,
    RankedNote,
    TextMatches,
    best_hits,
    content_hash,
    covering,
    hit,
    posting,
    rank_notes,
    similarities,
    telling,
    words_asked,
)
from aforesaid.store.searches import (
    MatchText,
    MessageVectors,
    SearchMemories,
    SearchNotes,
    SearchText,
    TokenVectors,
    UnembeddedMessages,
    UnembeddedNotes,
)
from aforesaid.store.sql import USER, Conditions, for_sqlite
from aforesaid.store.sqlite import rows
from aforesaid.store.sqlite.caches import Caches
from aforesaid.store.sqlite.connection import owner_prefix
from aforesaid.store.sqlite.rows import answered, find_person
from aforesaid.text.languages import query_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from aforesaid.store.columns import Rows


_HAS_NOTES: Final = """
SELECT EXISTS (SELECT 1 FROM summary WHERE owner = ?1) OR EXISTS (SELECT 1 FROM memory WHERE owner = ?1)
"""
# One text with all numbers in it: handing over rows one by one would take ten times as long.
_POSTING: Final = "SELECT group_concat(doc) FROM log_posting WHERE term = ?"


def search(connection: apsw.Connection, caches: Caches, question: SearchText) -> list[Hit]:
    wanted = MatchText(question.scope, question.words, question.within, None, question.where)
    best = best_hits(match(connection, caches, wanted), question.limit)
    found = MessagesByNumber(question.scope, [seq for seq, _, _ in best], question.within)
    messages = {message.seq: message for message in answered(connection, found.answer())}
    return [hit(messages[seq], score, words) for seq, score, words in best]


def match(connection: apsw.Connection, caches: Caches, question: MatchText) -> TextMatches:
    """Return which messages have which words. Terms are looked up one by one: no query language is involved."""
    found = caches.find(connection, question.scope, question.within, question.where)
    if found is None:
        return TextMatches(columns_of(()), (), 1.0)
    place, columns, inside, documents, total, _ = found
    vectors = None if question.embedder is None else caches.few(connection, found, question.embedder)
    notes = question.within == "user" and bool(connection.execute(_HAS_NOTES, (place.number,)).get)
    postings = []
    for word, terms in query_words(question.words):
        rows, counts = _posting(connection, columns, [place.prefix + term for term in terms])
        made = posting(word, rows, counts, documents)
        if inside is not None:
            kept = inside[rows]
            made = Posting(word, made.rarity, rows[kept], counts[kept])
        postings.append(made)
    return TextMatches(columns, telling(postings), max(total / max(documents, 1), 1.0), notes, vectors)


def _posting(connection: apsw.Connection, columns: Columns, terms: Sequence[str]) -> tuple[Rows, NDArray[np.int64]]:
    listed = [connection.execute(_POSTING, (term,)).get for term in terms]
    found = [np.fromstring(numbers, dtype=np.int64, sep=",") for numbers in listed if numbers]
    if not found:
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.int64)
    # In order already, but for what several terms have found. A message comes once for each time it has the word.
    seqs = found[0] if len(found) == 1 else np.sort(np.concatenate(found))
    again = seqs[1:] == seqs[:-1]
    if not again.any():
        rows, _ = columns.locate(seqs)
        return rows, np.ones(len(rows), dtype=np.int64)
    first = np.flatnonzero(np.concatenate([[True], ~again]))
    rows, known = columns.locate(seqs[first])
    return rows, np.diff(first, append=len(seqs))[known]


_DUE: Final = """
SELECT seq, text, role FROM log
 WHERE seq > coalesce((SELECT up_to FROM embedder WHERE name = ?), 0) ORDER BY seq LIMIT ?
"""
_KNOWN: Final = """
SELECT v.value FROM vector v JOIN log ON log.seq = v.seq
 WHERE v.embedder = (SELECT id FROM embedder WHERE name = ?) AND v.content = ? AND log.text = ? LIMIT 1
"""
_OF_EMBEDDER: Final = """
v.embedder = (SELECT id FROM embedder WHERE name = {0}) AND v.seq IN (SELECT value FROM json_each({1}))
"""


def unembedded(connection: apsw.Connection, question: UnembeddedMessages) -> list[Unembedded]:
    return [
        Unembedded(seq, text, connection.execute(_KNOWN, (question.embedder, content_hash(text), text)).get, role=role)
        for seq, text, role in rows.every(connection.execute(_DUE, (question.embedder, question.limit)))
    ]


def of_tokens(connection: apsw.Connection, question: TokenVectors) -> dict[int, bytes]:
    if question.within == "user":
        return _of_user(connection, question.scope, question.encoder, question.seqs)
    limits = rows.answered(connection, inside(question.scope, question.within))
    limits.add(_OF_EMBEDDER, question.encoder, json.dumps(list(question.seqs)))
    query = for_sqlite(f"SELECT v.seq, v.value FROM vector v CROSS JOIN log ON log.seq = v.seq WHERE {limits}")
    return dict(rows.every(connection.execute(query, limits.values)))


def of_messages(connection: apsw.Connection, question: MessageVectors) -> dict[int, bytes]:
    return _of_user(connection, question.scope, question.embedder, question.seqs)


def _of_user(connection: apsw.Connection, scope: Scope, embedder: str, seqs: Sequence[int]) -> dict[int, bytes]:
    limits = Conditions(f"+v.owner = {USER}", *scope[:2])
    limits.add(_OF_EMBEDDER, embedder, json.dumps(list(seqs)))
    query = for_sqlite(f"SELECT v.seq, v.value FROM vector v WHERE {limits}")
    return dict(rows.every(connection.execute(query, limits.values)))


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
_COVERING: Final = (
    "id", "reach", "chunks", "owner", "first_seq", "last_seq", "fresh_seq", "thread", "began_at", "ended_at",
)  # fmt: skip
_SUMMARY: Final = f"""
SELECT text, created_at, {", ".join(_COVERING)} FROM summary WHERE id = ? AND owner = ? AND active = 1
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


def unembedded_notes(connection: apsw.Connection, question: UnembeddedNotes) -> list[UnembeddedNote]:
    summaries, memories = connection.execute(_MARKS, (question.embedder,)).fetchone() or (0, 0)
    kinds: tuple[tuple[NoteKind, int], ...] = (("summary", summaries), ("memory", memories))
    found: list[UnembeddedNote] = []
    for kind, mark in kinds:
        query, odd = _UNEMBEDDED.format(table=kind), kind == "memory"
        bindings = {"embedder": question.embedder, "mark": mark, "odd": odd, "limit": question.limit - len(found)}
        found += [UnembeddedNote(NoteKey(kind, note), text) for note, text in connection.execute(query, bindings)]
    return found


def search_notes(connection: apsw.Connection, question: SearchNotes) -> list[NoteMatch]:
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


_HAVING: Final = """
SELECT group_concat(rowid / 2) FROM (
    SELECT rowid FROM note_index WHERE note_index MATCH ? AND rowid % 2 = 1 ORDER BY rowid DESC LIMIT ?)
"""
_SOME: Final = "SELECT count(*) FROM (SELECT 1 FROM memory WHERE owner = ? LIMIT ?)"


def search_memories(connection: apsw.Connection, question: SearchMemories) -> list[tuple[MemoryRecord, float]]:
    """Return the memories that a question is about."""
    owner = find_person(connection, question.scope.space, question.scope.user)
    if owner is None:
        return []
    prefix, having = owner_prefix(owner), {}
    for word, terms in words_asked(question.words):
        wanted = " OR ".join([f'"{prefix}{term.replace(chr(34), chr(34) * 2)}"' for term in terms])
        listed = connection.execute(_HAVING, (wanted, MOST_HAVING)).get
        having[word] = [int(memory) for memory in listed.split(",")] if listed else []
    worded = covering(having, connection.execute(_SOME, (owner, MOST_HAVING)).get) if having else []
    found = RelevantMemories(
        question.scope, worded, question.messages, question.limit, question.dated, question.periods
    )
    return answered(connection, found.answer())


def _read(connection: apsw.Connection, owner: int, ranked: RankedNote) -> NoteMatch | None:
    key, execute = ranked.key, connection.execute
    if key.kind == "memory":
        row = execute(_MEMORY, (key.id, owner, now())).fetchone()
        return None if row is None else ranked.match(row[0], row[1], execute(_SAID, (key.id,)))
    row = execute(_SUMMARY, (key.id, owner)).fetchone()
    if row is None:
        return None
    summary = dict(zip(_COVERING, row[2:], strict=True))
    return ranked.match(row[0], row[1], execute(_BELOW.format(belongs=_BELONGS[summary["reach"]]), summary))
