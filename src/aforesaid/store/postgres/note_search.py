"""Finding summaries and memories by their words and their meaning."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Final

from aforesaid.domain.change import AddNoteVectors
from aforesaid.domain.checks import now
from aforesaid.domain.memory import NoteKey, NoteKind, NoteMatch, UnembeddedNote
from aforesaid.domain.scope import Scope
from aforesaid.store import questions
from aforesaid.store.hashed import number_of
from aforesaid.store.notes import MOST_SOURCES, RankedNote, rank_notes
from aforesaid.store.notes import number_of as note_number
from aforesaid.store.postgres.packages import HalfVector, Vector
from aforesaid.store.postgres.queries import Queries
from aforesaid.store.postgres.write_transaction import WriteTransaction
from aforesaid.text.languages import query_words

_TERMS: Final = """
SELECT 2 * id, terms FROM summary WHERE space = $1 AND owner = $2
UNION ALL SELECT 2 * id + 1, terms FROM memory WHERE space = $1 AND owner = $2
"""
_SIMILAR: Final = """
SELECT note, -(value::vector <#> $4::vector) FROM note_meaning WHERE space = $1 AND owner = $2 AND embedder = $3
"""
# A summary of summaries may stand for everything that was ever said: the log is read until there are enough.
_SUMMARIES: Final = f"""
SELECT 2 * y.id, y.text, y.created_at, l.seqs, l.given_ids FROM summary y CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(k.seq ORDER BY k.seq), '{{}}') AS seqs,
           coalesce(array_agg(k.given_id ORDER BY k.seq), '{{}}') AS given_ids
      FROM (SELECT log.seq, log.given_id FROM log WHERE log.space = $1 AND log.owner = $2 AND CASE y.reach
        WHEN 'chunks' THEN log.chunk = ANY(y.chunks)
        WHEN 'sources' THEN EXISTS (
            SELECT 1 FROM summary_source x JOIN summary z ON z.space = x.space AND z.id = x.source
             WHERE x.space = $1 AND x.summary = y.id AND log.seq BETWEEN z.first_seq AND z.last_seq
               AND log.at BETWEEN z.began_at AND z.ended_at)
        ELSE log.seq BETWEEN y.fresh_seq AND y.last_seq AND log.at BETWEEN y.began_at AND y.ended_at
             AND (y.reach = 'user' OR log.thread = y.thread)
        END AND log.seq BETWEEN y.first_seq AND y.last_seq ORDER BY log.seq LIMIT {MOST_SOURCES}) k
) l WHERE y.space = $1 AND y.owner = $2 AND y.id = ANY($3::bigint[]) AND y.active
"""
_MEMORIES: Final = """
SELECT 2 * m.id + 1, m.text, m.created_at, l.seqs, l.given_ids FROM memory m CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(log.seq ORDER BY log.seq), '{}') AS seqs,
           coalesce(array_agg(log.given_id ORDER BY log.seq), '{}') AS given_ids
      FROM memory_source s JOIN log ON log.space = s.space AND log.seq = s.seq
     WHERE s.space = $1 AND s.memory = m.id
) l WHERE m.space = $1 AND m.owner = $2 AND m.id = ANY($3::bigint[]) AND m.active
      AND (m.expires_at IS NULL OR m.expires_at > $4)
"""
# A note whose text was changed is embedded again: the mark goes back to it, and those after it have their vectors.
_UNEMBEDDED: Final = """
SELECT s.space, n.id, n.text
  FROM space s LEFT JOIN embedder e ON e.space = s.space AND e.name = $1
  CROSS JOIN LATERAL (
    SELECT t.id, t.text FROM {table} t WHERE t.space = s.space AND t.id > coalesce(e.{mark}, 0) AND NOT EXISTS (
        SELECT 1 FROM note_meaning v WHERE v.space = t.space AND v.owner = t.owner AND v.note = 2 * t.id + {odd}
           AND v.embedder = $1
    ) ORDER BY t.id LIMIT $2
  ) n WHERE s.{last} > coalesce(e.{mark}, 0) ORDER BY s.space, n.id LIMIT $2
"""
_ADD_VECTOR: Final = """
INSERT INTO note_meaning (space, owner, note, embedder, value)
SELECT space, owner, $3, $4, $5 FROM {table} WHERE space = $1 AND id = $2
ON CONFLICT DO NOTHING
"""
_SEEN: Final = """
INSERT INTO embedder (space, name, {mark}) VALUES ($1, $2, $3)
ON CONFLICT (space, name) DO UPDATE SET {mark} = greatest(embedder.{mark}, excluded.{mark})
"""
_DROP_VECTORS: Final = "DELETE FROM note_meaning WHERE space = $1 AND owner = $2 AND note = $3"
_GO_BACK: Final = "UPDATE embedder SET memories_up_to = least(memories_up_to, $2 - 1) WHERE space = $1"
_PAGE: Final = 50
"""Notes read at a time, until enough of them are active."""

_MARKS: Final[Mapping[NoteKind, str]] = {"summary": "summaries_up_to", "memory": "memories_up_to"}


def embed_again(transaction: WriteTransaction, scope: Scope, memory: int) -> None:
    """Let a memory whose text was changed be embedded again."""
    transaction.later(_DROP_VECTORS, scope.space, scope.user, note_number(NoteKey("memory", memory)))
    transaction.later(_GO_BACK, scope.space, memory)


async def unembedded(queries: Queries, question: questions.UnembeddedNotes) -> list[UnembeddedNote]:
    """Return the oldest notes that an embedder has not seen."""
    kinds: tuple[NoteKind, ...] = ("summary", "memory")
    found: list[UnembeddedNote] = []
    for kind in kinds:
        query = _UNEMBEDDED.format(table=kind, mark=_MARKS[kind], odd=int(kind == "memory"), last=f"last_{kind}")
        rows = await queries.rows(query, question.embedder, question.limit - len(found))
        found += [UnembeddedNote(NoteKey(kind, note), text, space) for space, note, text in rows]
    return found


def add_vectors(transaction: WriteTransaction, step: AddNoteVectors) -> None:
    """Store the vectors of notes, and how far the embedder has come."""
    import numpy as np  # noqa: PLC0415 - loaded with the first vector

    marks: dict[tuple[str, NoteKind], int] = {}
    for key, value, space in step.rows:
        vector = HalfVector(np.frombuffer(value, dtype=np.float16))
        transaction.later(_ADD_VECTOR.format(table=key.kind), space, key.id, note_number(key), step.embedder, vector)
        marks[space, key.kind] = max(marks.get((space, key.kind), 0), key.id)
    for (space, kind), up_to in marks.items():
        transaction.later(_SEEN.format(mark=_MARKS[kind]), space, step.embedder, up_to)


async def search(queries: Queries, question: questions.SearchNotes) -> list[NoteMatch]:
    """Return the active notes of a user that fit best."""
    here = question.scope.space, question.scope.user
    notes = await queries.rows(_TERMS, *here)
    if not notes:
        return []
    similar: dict[int, float] = {}
    if question.vector is not None:
        similar.update(await queries.rows(_SIMILAR, *here, question.embedder, Vector(question.vector)))
    ranked = rank_notes(_having(question.words, dict(notes)), similar, len(notes))
    matches: list[NoteMatch] = []
    while len(matches) < question.limit and (page := list(islice(ranked, _PAGE))):
        matches += await _read(queries, question.scope, page)
    return matches[: question.limit]


def _having(words: str, stored: Mapping[int, bytes]) -> dict[str, list[int]]:
    """Return which notes have each word of a query."""
    import numpy as np  # noqa: PLC0415

    known = {note: set(np.frombuffer(terms, dtype="<i8").tolist()) for note, terms in stored.items()}
    numbers = {word: list(map(number_of, wanted)) for word, wanted in query_words(words)}
    return {
        word: [note for note, found in known.items() if not found.isdisjoint(wanted)]
        for word, wanted in numbers.items()
    }


async def _read(queries: Queries, scope: Scope, ranked: list[RankedNote]) -> list[NoteMatch]:
    summaries = [each.note // 2 for each in ranked if each.note % 2 == 0]
    memories = [each.note // 2 for each in ranked if each.note % 2]
    here = scope.space, scope.user
    answers = await queries.together((_SUMMARIES, (*here, summaries)), (_MEMORIES, (*here, memories, now())))
    found = {row[0]: row for rows in answers for row in rows}
    return [
        each.match(row[1], row[2], zip(row[3], row[4], strict=True))
        for each in ranked
        if (row := found.get(each.note)) is not None
    ]
