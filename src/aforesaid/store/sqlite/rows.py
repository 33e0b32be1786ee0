"""Rows of the file as values of the domain."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import apsw

from aforesaid.domain.summary import Summary
from aforesaid.errors import StoreDamaged
from aforesaid.store import records
from aforesaid.store.dialects import for_sqlite
from aforesaid.store.questions import Question
from aforesaid.store.records import Row
from aforesaid.store.selects import Select

MESSAGE: Final = """
SELECT log.seq, log.given_id, o.space, o.name, t.name, s.name, log.role, a.name, log.name, log.text,
       log.at, log.stored_at, log.active, log.chunk, log.hash, log.replaces, log.replaced,
       log.details
  FROM log
  JOIN person o ON o.id = log.owner
  JOIN person a ON a.id = log.author
  JOIN thread t ON t.id = log.thread
  JOIN session s ON s.id = log.session
"""

SUMMARY: Final = """
SELECT y.id, o.space, o.name, t.name, y.kind, y.level, y.text, y.chunks,
       (SELECT json_group_array(source ORDER BY source) FROM summary_source WHERE summary = y.id),
       y.first_seq, y.last_seq, y.messages, y.model, y.prompt, y.created_at, y.active, y.rolled_back,
       y.began_at, y.ended_at, y.reach, y.fresh_seq, y.day, y.version, y.replaces, y.replaced, y.edited_by, y.details,
       y.quality
  FROM summary y
  JOIN person o ON o.id = y.owner
  JOIN thread t ON t.id = y.thread
"""

SESSION: Final = """
SELECT s.name, t.space, t.name, p.name, s.started_at, s.last_at, s.messages, s.timeout, s.automatic
  FROM session s
  JOIN thread t ON t.id = s.thread
  JOIN person p ON p.id = s.opened_by
"""


def every(cursor: apsw.Cursor) -> list[Row]:
    """Return all rows. What their columns hold is said by the query, not by a type."""
    return cursor.fetchall()


def one(cursor: apsw.Cursor) -> Row:
    """Return the row that the query is certain to have."""
    row: Row | None = cursor.fetchone()
    if row is None:
        raise StoreDamaged("a row that must be there is missing; run: aforesaid verify")
    return row


def summary(row: Row) -> Summary:
    """Read a row of SUMMARY."""
    return records.summary(row, json.loads)


def selected(
    selects: Mapping[type[Question[Any]], Select],
) -> dict[type[Question[Any]], Callable[[apsw.Connection, Any], Any]]:
    """Return the functions that answer questions by one statement."""
    return {kind: _answer(for_sqlite(select.text), select) for kind, select in selects.items()}


def _answer(text: str, select: Select) -> Callable[[apsw.Connection, Any], Any]:
    def answer(connection: apsw.Connection, question: Any) -> Any:  # noqa: ANN401 - the question says it
        values = [json.dumps(value) if isinstance(value, list) else value for value in select.values(question)]
        return select.read(question, every(connection.execute(text, values)))

    return answer
