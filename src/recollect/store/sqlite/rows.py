"""Rows of the file as values of the domain."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from datetime import date, timedelta
from typing import Any, Final

import apsw

from recollect.domain.checks import moment
from recollect.domain.message import Message, message_id
from recollect.domain.session import Session
from recollect.domain.summary import Quality, Summary
from recollect.errors import StoreDamaged

Row = tuple[Any, ...]

MESSAGE: Final = """
SELECT log.seq, log.given_id, o.space, o.name, t.name, s.name, log.role, a.name, log.name, log.text,
       log.at, log.stored_at, log.active, log.chunk, log.hash
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
        raise StoreDamaged("a row that must be there is missing; run: recollect verify")
    return row


def message(row: Row) -> Message:
    """Read a row of MESSAGE."""
    return Message(
        seq=row[0],
        id=message_id(row[0], row[1]),
        space=row[2],
        user=row[3],
        thread=row[4],
        session=row[5],
        role=row[6],
        author=row[7],
        name=row[8],
        text=row[9],
        at=moment(row[10]),
        stored_at=moment(row[11]),
        active=bool(row[12]),
        chunk=row[13],
        hash=row[14],
    )


def messages(rows: Iterable[Row]) -> list[Message]:
    """Read rows of MESSAGE."""
    return [message(row) for row in rows]


def summary(row: Row) -> Summary:
    """Read a row of SUMMARY."""
    return Summary(
        id=row[0],
        space=row[1],
        user=row[2],
        thread=row[3],
        kind=row[4],
        level=row[5],
        text=row[6],
        chunks=tuple(json.loads(row[7])),
        sources=tuple(json.loads(row[8])),
        first=row[9],
        last=row[10],
        messages=row[11],
        model=row[12],
        prompt=row[13],
        created_at=moment(row[14]),
        active=bool(row[15]),
        rolled_back=bool(row[16]),
        began_at=moment(row[17]),
        ended_at=moment(row[18]),
        reach=row[19],
        fresh=row[20],
        day=date.fromisoformat(row[21]) if row[21] else None,
        version=row[22],
        replaces=row[23],
        replaced=bool(row[24]),
        edited_by=row[25],
        details=None if row[26] is None else json.loads(row[26]),
        quality=None if row[27] is None else _quality(json.loads(row[27])),
    )


def quality_text(quality: Quality | None) -> str | None:
    """Write down how good a summary is."""
    return None if quality is None else json.dumps(asdict(quality), ensure_ascii=False)


def _quality(stored: dict[str, Any]) -> Quality:
    return Quality(**{**stored, "invented": tuple(stored["invented"])})


def session(row: Row) -> Session:
    """Read a row of SESSION."""
    return Session(
        id=row[0],
        space=row[1],
        thread=row[2],
        user=row[3],
        started_at=moment(row[4]),
        last_activity=moment(row[5]),
        messages=row[6],
        timeout=timedelta(microseconds=row[7]),
    )
