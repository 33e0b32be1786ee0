"""Reads of what summaries cover."""

from __future__ import annotations

from typing import Final

from aforesaid.domain.message import Message
from aforesaid.domain.summary import Summary
from aforesaid.errors import NotFound, quoted
from aforesaid.store import questions, records
from aforesaid.store.postgres import rows
from aforesaid.store.postgres.queries import Queries

_COVERS: Final = """
SELECT owner, thread, first_seq, last_seq, began_at, ended_at, reach,
       ARRAY(SELECT x.source FROM summary_source x WHERE x.space = $1 AND x.summary = y.id)
  FROM summary y WHERE space = $1 AND id = $2
"""
_BELOW: Final = f"""
{rows.MESSAGE} WHERE log.space = $1 AND log.owner = $2 AND log.seq BETWEEN $3 AND $4 AND log.at BETWEEN $5 AND $6
   AND ($7::text IS NULL OR log.thread = $7) ORDER BY log.seq
"""
_PLACE: Final = "SELECT chunk, at, thread FROM log WHERE space = $1 AND seq = $2 AND owner = $3"
_ABOVE: Final = f"""
{rows.SUMMARY}
 WHERE y.space = $1 AND y.owner = $2 AND NOT y.rolled_back AND NOT y.replaced
   AND CASE y.reach
         WHEN 'chunks' THEN $4::bigint = ANY(y.chunks)
         WHEN 'sources' THEN EXISTS (
             SELECT 1 FROM summary_source x JOIN summary z ON z.space = x.space AND z.id = x.source
              WHERE x.space = $1 AND x.summary = y.id
                AND $3 BETWEEN z.first_seq AND z.last_seq AND $5 BETWEEN z.began_at AND z.ended_at)
         ELSE $3 BETWEEN y.first_seq AND y.last_seq AND $5 BETWEEN y.began_at AND y.ended_at
              AND (y.reach = 'user' OR y.thread = $6)
       END
 ORDER BY y.kind COLLATE "C", y.level, y.id
"""


async def below(queries: Queries, space: str, summary: int) -> list[Message]:
    """Return the messages that a view covers. Whoever asks has found it in their scope."""
    owner, thread, first, last, began, ended, reach, sources = await queries.one(_COVERS, space, summary)
    if reach == "sources":
        found = {message.seq: message for source in sources for message in await below(queries, space, source)}
        return [found[seq] for seq in sorted(found)]
    here = thread if reach == "thread" else None
    return records.messages(await queries.rows(_BELOW, space, owner, first, last, began, ended, here))


async def above(queries: Queries, question: questions.SummariesAbove) -> list[Summary]:
    """Return the summaries that a message lies below."""
    found = await queries.first(_PLACE, question.scope.space, question.seq, question.scope.user)
    if found is None:
        raise NotFound(f"{quoted(question.scope.user)} has no message with the number {question.seq}")
    chunk, at, thread = found
    return [
        rows.summary(row)
        for row in await queries.rows(
            _ABOVE, question.scope.space, question.scope.user, question.seq, chunk, at, thread
        )
    ]
