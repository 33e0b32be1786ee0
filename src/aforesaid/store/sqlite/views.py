"""Reads of what summaries cover, and of stretches of the log."""

from __future__ import annotations

import json
from datetime import date
from typing import Final

import apsw

from aforesaid.domain.message import Message
from aforesaid.domain.report import Activity
from aforesaid.domain.summary import Summary
from aforesaid.errors import NotFound, quoted
from aforesaid.store import questions, records
from aforesaid.store.sqlite import rows
from aforesaid.store.sqlite.names import find_person, find_thread

_NOBODY: Final = -1
_BELOW: Final = (
    "log.owner = ?1 AND log.seq BETWEEN ?2 AND ?3 AND log.at BETWEEN ?4 AND ?5 AND (?6 IS NULL OR log.thread = ?6)"
)
_ABOVE: Final = f"""
{rows.SUMMARY}
 WHERE y.owner = ?1 AND y.rolled_back = 0 AND y.replaced = 0
   AND CASE y.reach
         WHEN 'chunks' THEN ?3 IN (SELECT value FROM json_each(y.chunks))
         WHEN 'sources' THEN EXISTS (
             SELECT 1 FROM summary_source x JOIN summary z ON z.id = x.source WHERE x.summary = y.id
                AND ?2 BETWEEN z.first_seq AND z.last_seq AND ?4 BETWEEN z.began_at AND z.ended_at)
         ELSE ?2 BETWEEN y.first_seq AND y.last_seq AND ?4 BETWEEN y.began_at AND y.ended_at
              AND (y.reach = 'user' OR y.thread = ?5)
       END
 ORDER BY y.kind, y.level, y.id
"""


def below(connection: apsw.Connection, summary: int) -> list[Message]:
    """Return the messages that a view covers. Whoever asks has found it in their scope."""
    owner, thread, first, last, began, ended, reach = rows.one(
        connection.execute(
            "SELECT owner, thread, first_seq, last_seq, began_at, ended_at, reach FROM summary WHERE id = ?", (summary,)
        )
    )
    if reach == "sources":
        query = "SELECT source FROM summary_source WHERE summary = ?"
        sources = [source for (source,) in connection.execute(query, (summary,))]
        found = {message.seq: message for source in sources for message in below(connection, source)}
        return [found[seq] for seq in sorted(found)]
    here = thread if reach == "thread" else None
    query = f"{rows.MESSAGE} WHERE {_BELOW} ORDER BY log.seq"
    return records.messages(rows.every(connection.execute(query, (owner, first, last, began, ended, here))))


def above(connection: apsw.Connection, question: questions.SummariesAbove) -> list[Summary]:
    """Return the summaries that a message lies below."""
    owner = find_person(connection, question.scope.space, question.scope.user)
    found = connection.execute(
        "SELECT chunk, at, thread FROM log WHERE seq = ? AND owner = ?", (question.seq, owner)
    ).fetchone()
    if found is None:
        raise NotFound(f"{quoted(question.scope.user)} has no message with the number {question.seq}")
    chunk, at, thread = found
    return [rows.summary(row) for row in connection.execute(_ABOVE, (owner, question.seq, chunk, at, thread))]


def following(connection: apsw.Connection, question: questions.MessagesAfter) -> list[Message]:
    """Return the user's oldest messages after one, in the scope's thread or in all."""
    where = ["owner = ?", "seq > ?"]
    values: list[int | None] = [
        _number(find_person(connection, question.scope.space, question.scope.user)),
        question.after,
    ]
    if question.here:
        where.append("thread = ?")
        values.append(_number(find_thread(connection, question.scope.space, question.scope.thread)))
    if not question.archived:
        where.append("active = 1")
    # Named, because the size of an owner's log is not known to the planner.
    index = "log_by_owner" if question.archived else "log_active_by_owner"
    picked = f"SELECT seq FROM log INDEXED BY {index} WHERE {' AND '.join(where)} ORDER BY seq LIMIT ?"
    query = f"{rows.MESSAGE} WHERE log.seq IN ({picked}) ORDER BY log.seq"
    return records.messages(rows.every(connection.execute(query, (*values, question.limit))))


def said_between(connection: apsw.Connection, question: questions.MessagesBetween) -> list[Message]:
    """Return what was said in a space, from one moment to before another, by when it was said."""
    query = f"""
    {rows.MESSAGE} WHERE log.seq IN (
        SELECT l.seq FROM thread h CROSS JOIN log l ON l.thread = h.id WHERE h.space = ? AND l.at >= ? AND l.at < ?
    ) ORDER BY log.at, log.seq
    """
    return records.messages(rows.every(connection.execute(query, (question.space, question.since, question.until))))


def said_per_day(connection: apsw.Connection, question: questions.ActivityPerDay) -> list[Activity]:
    """Return how much was said in a space on each day of UTC, oldest first."""
    query = """
    SELECT date(l.at / 1000000, 'unixepoch'), count(*), count(*) FILTER (WHERE l.role = 'user')
      FROM thread h CROSS JOIN log l ON l.thread = h.id
     WHERE h.space = ?1 AND l.at >= ?2 AND l.at < ?3 AND (?4 IS NULL OR l.owner = ?4)
     GROUP BY 1 ORDER BY 1
    """
    owner = None if question.user is None else _number(find_person(connection, question.space, question.user))
    found = connection.execute(query, (question.space, question.since, question.until, owner))
    return [Activity(date.fromisoformat(day), messages, turns) for day, messages, turns in rows.every(found)]


def vectors(connection: apsw.Connection, question: questions.MessageVectors) -> dict[int, bytes]:
    """Return the vectors of those of the messages that are the user's and have one."""
    query = """
    SELECT seq, value FROM vector WHERE embedder = (SELECT id FROM embedder WHERE name = ?)
       AND seq IN (SELECT value FROM json_each(?)) AND +owner = ?
    """
    owner = _number(find_person(connection, question.scope.space, question.scope.user))
    return dict(rows.every(connection.execute(query, (question.embedder, json.dumps(list(question.seqs)), owner))))


def without_model(connection: apsw.Connection, question: questions.SummariesWithoutModel) -> list[Summary]:
    """Return active summaries that neither a model nor a person wrote."""
    query = f"""
    {rows.SUMMARY} WHERE y.kind = ? AND y.id > ? AND y.prompt = ? AND y.active = 1 AND y.model IS NULL
       AND y.edited_by IS NULL ORDER BY y.id LIMIT ?
    """
    return [
        rows.summary(row)
        for row in connection.execute(query, (question.kind, question.after, question.prompt, question.limit))
    ]


def _number(found: int | None) -> int:
    return _NOBODY if found is None else found
