"""Vectors of messages as the database stores them."""

from __future__ import annotations

from typing import Final

from aforesaid.domain.change import AddVectors
from aforesaid.domain.hit import Unembedded
from aforesaid.store import questions
from aforesaid.store.dialects import for_postgres
from aforesaid.store.hashed import content_hash
from aforesaid.store.postgres.packages import HalfVector
from aforesaid.store.postgres.queries import Queries, insert_rows, over_rows
from aforesaid.store.postgres.rows import answered
from aforesaid.store.postgres.write_transaction import WriteTransaction
from aforesaid.store.sql.messages import inside

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


def halves(sent: bytes) -> bytes:
    """Turn what the database sends of a vector into numbers of half precision in a row."""
    import numpy as np  # noqa: PLC0415

    return np.frombuffer(sent, dtype=">f2", offset=4).astype(np.float16).tobytes()
