"""Questions about summaries and what they cover."""

from __future__ import annotations

from typing import Final

from aforesaid.domain.message import Message, in_time_order
from aforesaid.domain.summary import Summary
from aforesaid.errors import NotFound, quoted
from aforesaid.store import questions, records
from aforesaid.store.records import Row
from aforesaid.store.sql.statements import Answer, Conditions, first, rows
from aforesaid.store.sql.tables import A_THREAD, ACTIVE, MESSAGE, OWNED, SUMMARY, SUMMARY_OF_ANY_SPACE, USER

_REACH: Final = f"SELECT reach, chunks FROM summary WHERE {OWNED} AND id = $3"
# The plus keeps SQLite from reading all of the owner's messages: the chunks are the shorter way.
_IN_CHUNKS: Final = f"""
{MESSAGE} WHERE [[log.space = $1 AND log.owner = $2 AND log.chunk = ANY($3::bigint[])
 ~ log.chunk IN (SELECT value FROM json_each($3)) AND +log.owner = (
    SELECT id FROM person WHERE space = $1 AND name = $2)]]
"""
_COVERS: Final = """
SELECT owner, thread, first_seq, last_seq, began_at, ended_at, reach FROM summary
 WHERE [[space = $1 AND ]]id = $2
"""
_SOURCES: Final = "SELECT source FROM summary_source WHERE [[space = $1 AND ]]summary = $2"
_BELOW: Final = f"""
{MESSAGE} WHERE [[log.space = $1 AND ]]log.owner = $2 AND log.seq BETWEEN $3 AND $4 AND log.at BETWEEN $5 AND $6
   AND ([[$7::text ~ $7]] IS NULL OR log.thread = $7) ORDER BY log.seq
"""
_PLACE: Final = f"SELECT chunk, at, thread FROM log WHERE {OWNED} AND seq = $3"
_ABOVE: Final = f"""
{SUMMARY}
 WHERE [[y.space = $1 AND ]]y.owner = {USER} AND [[NOT y.rolled_back ~ y.rolled_back = 0]] AND NOT y.replaced
   AND CASE y.reach
         WHEN 'chunks' THEN [[$4::bigint = ANY(y.chunks) ~ $4 IN (SELECT value FROM json_each(y.chunks))]]
         WHEN 'sources' THEN EXISTS (
             SELECT 1 FROM summary_source x JOIN summary z ON [[z.space = x.space AND ]]z.id = x.source
              WHERE [[x.space = $1 AND ]]x.summary = y.id
                AND $3 BETWEEN z.first_seq AND z.last_seq AND $5 BETWEEN z.began_at AND z.ended_at)
         ELSE $3 BETWEEN y.first_seq AND y.last_seq AND $5 BETWEEN y.began_at AND y.ended_at
              AND (y.reach = 'user' OR y.thread = $6)
       END
 ORDER BY y.kind[[ COLLATE "C"]], y.level, y.id
"""
_WITHOUT_MODEL: Final = f"""
{SUMMARY_OF_ANY_SPACE} WHERE y.kind = $1 AND y.id > $3 AND y.prompt = $2 AND {ACTIVE.format("y")} AND y.model IS NULL
   AND y.edited_by IS NULL ORDER BY y.id [[FETCH FIRST $4 ROWS WITH TIES ~ LIMIT $4]]
"""


def of_rows(_: object, found: list[Row]) -> list[Summary]:
    """Read rows of SUMMARY."""
    return [records.summary(row) for row in found]


def summaries(question: questions.Summaries) -> Answer[list[Summary]]:
    """Return the user's summaries, highest level first."""
    limits = Conditions(f"[[y.space = $1 AND ]]y.owner = {USER}", *question.scope[:2])
    limits.add_if("y.kind = {0}", question.kind)
    limits.add_if("y.day = {0}", None if question.day is None else question.day.isoformat())
    limits.add_if(f"y.thread = {A_THREAD}", question.scope.thread if question.here else None)
    if question.active is not None:
        limits.add(ACTIVE.format("y") if question.active else "NOT y.active")
    text = f"{SUMMARY} WHERE {limits} ORDER BY y.level DESC, y.id"
    return of_rows(question, (yield from rows(text, *limits.values)))


def summary(question: questions.SummaryById) -> Answer[Summary]:
    """Return one of the user's summaries."""
    text = f"{SUMMARY} WHERE [[y.space = $1 AND ]]y.owner = {USER} AND y.id = $3"
    row = yield from first(text, *question.scope[:2], question.summary)
    if row is None:
        raise _unknown(question)
    return records.summary(row)


def covered(question: questions.CoveredMessages) -> Answer[list[Message]]:
    """Return the messages below a summary."""
    whose = question.scope[:2]
    found = yield from first(_REACH, *whose, question.summary)
    if found is None:
        raise _unknown(question)
    reach, chunks = found
    if reach == "chunks":
        return in_time_order(records.messages((yield from rows(_IN_CHUNKS, *whose, chunks))))
    return in_time_order((yield from _below(question.scope.space, question.summary)))


def _below(space: str, summary: int) -> Answer[list[Message]]:
    """Return the messages that a view covers. Whoever asks has found it in their scope."""
    ((owner, thread, *between, reach),) = yield from rows(_COVERS, space, summary)
    if reach != "sources":
        here = thread if reach == "thread" else None
        return records.messages((yield from rows(_BELOW, space, owner, *between, here)))
    found: dict[int, Message] = {}
    for (source,) in (yield from rows(_SOURCES, space, summary)):
        found |= {message.seq: message for message in (yield from _below(space, source))}
    return [found[seq] for seq in sorted(found)]


def above(question: questions.SummariesAbove) -> Answer[list[Summary]]:
    """Return the summaries that a message lies below."""
    whose = question.scope[:2]
    found = yield from first(_PLACE, *whose, question.seq)
    if found is None:
        raise NotFound(f"{quoted(question.scope.user)} has no message with the number {question.seq}")
    return of_rows(question, (yield from rows(_ABOVE, *whose, question.seq, *found)))


def without_model(question: questions.SummariesWithoutModel) -> Answer[list[Summary]]:
    """Return active summaries that neither a model nor a person wrote.

    In PostgreSQL, those of several spaces with the same number come together.
    """
    found = yield from rows(_WITHOUT_MODEL, question.kind, question.prompt, question.after, question.limit)
    return of_rows(question, found)


def _unknown(question: questions.SummaryById | questions.CoveredMessages) -> NotFound:
    return NotFound(f"{quoted(question.scope.user)} has no summary {question.summary}")
