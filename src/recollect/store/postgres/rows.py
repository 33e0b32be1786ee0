"""Rows of the database as values of the domain."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from datetime import date, timedelta
from typing import Any, Final

from recollect.domain.checks import moment
from recollect.domain.message import Message, message_id
from recollect.domain.session import Session
from recollect.domain.summary import Quality, Summary
from recollect.store.postgres.queries import Row

MESSAGE: Final = """
SELECT log.seq, log.given_id, log.space, log.owner, log.thread, s.name, log.role, log.author, log.name, log.text,
       log.at, log.stored_at, log.active, log.chunk, log.hash
  FROM log JOIN session s ON s.space = log.space AND s.id = log.session
"""

SUMMARY: Final = """
SELECT y.id, y.space, y.owner, y.thread, y.kind, y.level, y.text, y.chunks,
       ARRAY(SELECT x.source FROM summary_source x WHERE x.space = y.space AND x.summary = y.id ORDER BY x.source),
       y.first_seq, y.last_seq, y.messages, y.model, y.prompt, y.created_at, y.active, y.rolled_back,
       y.began_at, y.ended_at, y.reach, y.fresh_seq, y.day, y.version, y.replaces, y.replaced, y.edited_by, y.details,
       y.quality
  FROM summary y
"""

SESSION: Final = """
SELECT s.name, s.space, s.thread, s.opened_by, s.started_at, s.last_at, s.messages, s.timeout FROM session s
"""


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
        active=row[12],
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
        chunks=tuple(row[7]),
        sources=tuple(row[8]),
        first=row[9],
        last=row[10],
        messages=row[11],
        model=row[12],
        prompt=row[13],
        created_at=moment(row[14]),
        active=row[15],
        rolled_back=row[16],
        began_at=moment(row[17]),
        ended_at=moment(row[18]),
        reach=row[19],
        fresh=row[20],
        day=date.fromisoformat(row[21]) if row[21] else None,
        version=row[22],
        replaces=row[23],
        replaced=row[24],
        edited_by=row[25],
        details=row[26],
        quality=None if row[27] is None else _quality(row[27]),
    )


def quality_text(quality: Quality | None) -> str | None:
    """Write down how good a summary is."""
    return None if quality is None else json.dumps(asdict(quality), ensure_ascii=False)


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


def _quality(stored: dict[str, Any]) -> Quality:
    return Quality(**{**stored, "invented": tuple(stored["invented"])})
