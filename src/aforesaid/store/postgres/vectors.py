"""Vectors of messages: stored, and compared by the database itself."""

from __future__ import annotations

from typing import Final

from aforesaid.domain.change import AddVectors
from aforesaid.domain.message_filter import EVERY_MESSAGE
from aforesaid.domain.vector import Similar, Unembedded
from aforesaid.store import questions
from aforesaid.store.dialects import for_postgres
from aforesaid.store.hashed import content_hash
from aforesaid.store.postgres.packages import HalfVector, Vector
from aforesaid.store.postgres.queries import Queries, insert_rows, over_rows
from aforesaid.store.postgres.rows import answered
from aforesaid.store.postgres.write_transaction import WriteTransaction
from aforesaid.store.sql.messages import add_filter, inside

_MANY: Final = 4_000
"""Similarities that are returned, best first, unless a question asks for more."""

_SEEN: Final = insert_rows(
    "embedder",
    "name text, up_to bigint",
    "ON CONFLICT (space, name) DO UPDATE SET up_to = greatest(embedder.up_to, excluded.up_to)",
)
_ADD: Final = over_rows(
    """
    INSERT INTO meaning (space, seq, embedder, owner, content, value)
    SELECT log.space, log.seq, {0}::text, log.owner, new.content, new.value
      FROM {rows} JOIN log ON log.space = {space} AND log.seq = new.seq
    ON CONFLICT DO NOTHING
    """,
    "seq bigint, content bigint, value halfvec",
)
_DUE: Final = """
SELECT s.space, l.seq, l.text
  FROM space s LEFT JOIN embedder e ON e.space = s.space AND e.name = $1
  CROSS JOIN LATERAL (
    SELECT seq, text FROM log WHERE space = s.space AND seq > coalesce(e.up_to, 0) ORDER BY seq LIMIT $2
  ) l WHERE s.last_seq > coalesce(e.up_to, 0) ORDER BY s.space, l.seq LIMIT $2
"""
_KNOWN: Final = over_rows(
    """
    SELECT DISTINCT ON (l.space, l.text) l.space, l.text, halfvec_send(v.value)
      FROM {rows} JOIN meaning v ON v.space = {space} AND v.content = new.content AND v.embedder = {0}
      JOIN log l ON l.space = v.space AND l.seq = v.seq
    """,
    "content bigint",
)
_OF_MESSAGES: Final = """
SELECT seq, halfvec_send(value) FROM meaning WHERE space = $1 AND owner = $2 AND embedder = $3 AND seq = ANY($4::bigint[])
"""
_JOIN_LOG: Final = "JOIN log ON log.space = v.space AND log.seq = v.seq"
# The stored numbers are compared at full precision with the vector that was asked for. A product is the cosine, because
# all vectors have the length one.
_SCORES: Final = """
SELECT v.seq, -(v.value::vector <#> {vector}::vector) AS score
  FROM meaning v {join} WHERE {limit} AND v.embedder = {embedder}
"""
_NEWEST_OF_USER: Final = """
v.seq != ALL(ARRAY(SELECT log.seq FROM log WHERE log.space = $1 AND log.owner = $2 AND log.replaced))
"""
_BEST: Final = """
WITH scored AS MATERIALIZED ({scores}), best AS (SELECT * FROM scored ORDER BY score DESC, seq DESC LIMIT {limit})
SELECT 0, seq, score FROM best
UNION ALL SELECT 1, seq, score FROM scored WHERE seq = ANY({also}::bigint[]) AND seq NOT IN (SELECT seq FROM best)
UNION ALL SELECT 2, count(*), avg(score) FROM scored
UNION ALL SELECT 3, count(*), stddev_pop(score) FROM scored
"""


def add(transaction: WriteTransaction, step: AddVectors) -> None:
    """Store vectors, and how far the embedder has come in each space."""
    import numpy as np  # noqa: PLC0415 - loaded with the first vector

    if not step.rows:
        return
    marks: dict[str, int] = {}
    new = []
    for row in step.rows:
        if row.value:
            value = HalfVector(np.frombuffer(row.value, dtype=np.float16))
            new.append((row.space, row.seq, content_hash(row.text), value))
        marks[row.space] = max(marks.get(row.space, 0), row.seq)
    if new:
        transaction.later_rows(_ADD, new, step.embedder)
    transaction.later_rows(_SEEN, [(space, step.embedder, up_to) for space, up_to in marks.items()])


async def unembedded(queries: Queries, question: questions.UnembeddedMessages) -> list[Unembedded]:
    """Return the oldest messages, space by space, that an embedder has not seen, with the vectors of equal texts."""
    due = await queries.rows(_DUE, question.embedder, question.limit)
    if not due:
        return []
    contents = {(space, content_hash(text)) for space, _, text in due}
    found = await queries.rows_of(_KNOWN, list(contents), question.embedder)
    known = {(space, text): halves(value) for space, text, value in found}
    return [Unembedded(seq, text, known.get((space, text)), space) for space, seq, text in due]


async def of_messages(queries: Queries, question: questions.MessageVectors) -> dict[int, bytes]:
    """Return the vectors of those of the messages that are the user's and have one."""
    found = await queries.rows(
        _OF_MESSAGES, question.scope.space, question.scope.user, question.embedder, list(question.seqs)
    )
    return {seq: halves(value) for seq, value in found}


async def of_tokens(queries: Queries, question: questions.TokenVectors) -> dict[int, bytes]:
    """Return the token vectors of those of the messages that the scope holds and that have some."""
    limits = await answered(queries, inside(question.scope, question.within))
    limits.add("v.embedder = {0} AND v.seq = ANY({1}::bigint[])", question.encoder, list(question.seqs))
    join, where = _JOIN_LOG, str(limits)
    if question.within == "user":
        join, where = "", where.replace("log.", "v.")
    query = for_postgres(f"SELECT v.seq, halfvec_send(v.value) FROM meaning v {join} WHERE {where}")
    return {seq: halves(value) for seq, value in await queries.rows(query, *limits.values)}


async def similar(queries: Queries, question: questions.SearchVector) -> Similar | None:
    """Return the messages of the scope that are most similar to a vector."""
    import numpy as np  # noqa: PLC0415

    limits = await answered(queries, inside(question.scope, question.within))
    add_filter(limits, question.where)
    join, where = _JOIN_LOG, f"{limits} AND NOT log.replaced"
    if question.within == "user" and question.where == EVERY_MESSAGE:
        join, where = "", f"{str(limits).replace('log.', 'v.')} AND {_NEWEST_OF_USER}"
    vector, embedder = limits.bind(Vector(question.vector)), limits.bind(question.embedder)
    scores = _SCORES.format(vector=vector, embedder=embedder, join=join, limit=where)
    most, also = limits.bind(max(_MANY, question.limit)), limits.bind(list(question.also))
    found = await queries.rows(for_postgres(_BEST.format(scores=scores, limit=most, also=also)), *limits.values)
    by_kind: dict[int, list[tuple[int, float]]] = {}
    for kind, seq, score in found:
        by_kind.setdefault(kind, []).append((seq, score))
    [(total, mean)], [(_, deviation)] = by_kind[2], by_kind[3]
    if not total:
        return None
    # Ties go to the newer message, so that the answer is always the same.
    best = sorted(by_kind.get(0, ()), key=lambda row: (-row[1], -row[0])) + sorted(by_kind.get(1, ()))
    return Similar(
        np.array([row[0] for row in best], dtype=np.int64),
        np.array([row[1] for row in best], dtype=np.float32),
        float(mean),
        float(deviation),
    )


def halves(sent: bytes) -> bytes:
    """Turn what the database sends of a vector into numbers of half precision in a row."""
    import numpy as np  # noqa: PLC0415

    return np.frombuffer(sent, dtype=">f2", offset=4).astype(np.float16).tobytes()
