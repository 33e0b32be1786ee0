"""Taking in rows of a dump. Messages are appended by the appender; this is about all that refers to them."""

from __future__ import annotations

import json
from typing import Final

from aforesaid.domain.checks import microseconds
from aforesaid.domain.clock import now
from aforesaid.domain.memory import Facts
from aforesaid.domain.message import Message
from aforesaid.domain.report import AuditEntry
from aforesaid.domain.scope import Scope
from aforesaid.domain.transfer import (
    DayRow,
    ForgottenRow,
    MemoryRow,
    Restored,
    Row,
    SessionRow,
    SettingRow,
    SpendingRow,
    SuccessorRow,
    SummaryRow,
    UserRow,
    VectorOf,
)
from aforesaid.store.postgres import restored_memories, restored_summaries
from aforesaid.store.postgres.packages import HalfVector
from aforesaid.store.postgres.unit import Unit
from aforesaid.store.postgres.vectors import content_hash

_SESSION: Final = """
UPDATE session SET automatic = $4, timeout = $5, opened_by = $6
 WHERE space = $1 AND name = $3 AND md5(thread) = md5($2) AND thread = $2
"""
_AUTHOR: Final = "INSERT INTO person (space, name, created_at, revision) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING"
_HAS_FACTS: Final = """
SELECT 1 FROM facts WHERE space = $1 AND owner = $2 AND text = $3 AND created_at = $4 AND cause = $5
"""
_EARLIER_FACTS: Final = """
SELECT count(*), count(*) FILTER (WHERE created_at <= $3) FROM facts WHERE space = $1 AND owner = $2
"""
_MAKE_ROOM: Final = "UPDATE facts SET version = version + 1 WHERE space = $1 AND owner = $2 AND version = $3"
_NEW_FACTS: Final = "INSERT INTO facts (space, owner, version, text, cause, created_at) VALUES ($1, $2, $3, $4, $5, $6)"
_HAS_FORGOTTEN: Final = "SELECT 1 FROM forgotten WHERE space = $1 AND owner = $2 AND words = $3 AND up_to = $4"
_NEW_FORGOTTEN: Final = """
INSERT INTO forgotten (space, id, owner, words, up_to, at) VALUES ($1, $2, $3, $4, $5, $6)
"""
_SETTING: Final = """
INSERT INTO setting (space, owner, key, value, updated_at) VALUES ($1, $2, $3, $4::json, $5)
ON CONFLICT (space, owner, key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at
 WHERE setting.updated_at < excluded.updated_at RETURNING 1
"""
_KNOWN_USER: Final = "SELECT 1 FROM person WHERE space = $1 AND name = $2 AND owner"
_USER: Final = """
UPDATE person SET created_at = least(created_at, $3), last_chunk = greatest(last_chunk, $4) WHERE space = $1 AND name = $2
"""
_LOOKED_THROUGH: Final = """
UPDATE person SET extracted = greatest(extracted, $3)
 WHERE space = $1 AND name = $2 AND (SELECT count(*) FROM log WHERE space = $1 AND owner = $2 AND seq <= $3) = $4
"""
_DAY: Final = """
INSERT INTO agenda (policy, space, owner, thread, day, messages, characters, waiting, last_seq, done_at, done_seq)
VALUES ($1, $2, '', '', $3, 0, 0, 0, 0, $4, $5)
ON CONFLICT (space, policy, owner, thread, day) DO UPDATE SET done_at = greatest(agenda.done_at, excluded.done_at),
       done_seq = greatest(agenda.done_seq, excluded.done_seq)
 WHERE agenda.last_seq <= agenda.done_seq
   AND (agenda.done_at IS NULL OR agenda.done_at < excluded.done_at OR agenda.done_seq < excluded.done_seq) RETURNING 1
"""
_SPENT_BY: Final = """
INSERT INTO spending (space, day, owner, tokens) VALUES ($1, $2, $3, $4)
ON CONFLICT (space, day, owner) DO UPDATE SET tokens = excluded.tokens WHERE spending.tokens < excluded.tokens RETURNING 1
"""
# What all spent together is the sum of what is counted per space; what is missing is counted for no space.
_SPENT: Final = """
INSERT INTO spending (space, day, owner, tokens)
SELECT '', $1, '', $2 - had FROM (SELECT coalesce(sum(tokens), 0)::bigint AS had FROM spending WHERE day = $1 AND owner = '') s
 WHERE had < $2
ON CONFLICT (space, day, owner) DO UPDATE SET tokens = spending.tokens + excluded.tokens RETURNING 1
"""
_HAS_AUDIT: Final = """
SELECT 1 FROM audit WHERE space = $1 AND owner = $2 AND at = $3 AND actor = $4 AND action = $5 AND subject = $6
"""
_NEW_AUDIT: Final = """
INSERT INTO audit (space, id, owner, at, actor, action, subject) VALUES ($1, $2, $3, $4, $5, $6, $7)
"""
_VECTOR: Final = """
INSERT INTO meaning (space, seq, embedder, owner, content, value)
SELECT space, seq, $3, owner, $4, $5 FROM log WHERE space = $1 AND seq = $2
ON CONFLICT DO NOTHING RETURNING 1
"""
_TEXT: Final = "SELECT text FROM log WHERE space = $1 AND seq = $2"


def space_of(row: Row) -> str:
    """Return the space that a row belongs to. What all spent together belongs to none."""
    match row:
        case SessionRow():
            return row.session.space
        case SummaryRow():
            return row.summary.space
        case MemoryRow():
            return row.memory.space
        case _:
            return row.space


async def carry_out(unit: Unit, row: Row) -> Restored:  # noqa: C901, PLR0912 - a case for each kind of row
    """Store a row, unless it is here."""
    match row:
        case SummaryRow():
            return await restored_summaries.restore(unit, row)
        case MemoryRow():
            return await restored_memories.restore(unit, row)
        case SuccessorRow():
            return restored_memories.note_successor(unit, row)
        case SessionRow():
            _session(unit, row)
            return Restored(0, False)
        case Facts():
            return Restored(0, await _facts(unit, row))
        case ForgottenRow():
            return Restored(0, await _forgotten(unit, row))
        case UserRow():
            return Restored(0, await _user(unit, row))
        case AuditEntry():
            return Restored(0, await _audit(unit, row))
        case VectorOf():
            return Restored(0, await _vector(unit, row))
        case SettingRow():
            updated = _number(row.setting.updated_at)
            value = json.dumps(row.setting.value, ensure_ascii=False)
            unit.own(Scope.of(row.user, row.space), updated)
            changed = await unit.rows(_SETTING, row.space, row.user, row.setting.key, value, updated)
        case DayRow():
            changed = await unit.rows(_DAY, *row)
        case SpendingRow():
            day = row.day.isoformat()
            if row.user:
                changed = await unit.rows(_SPENT_BY, row.space, day, row.user, row.tokens)
            else:
                changed = await unit.rows(_SPENT, day, row.tokens)
        case Message():
            raise TypeError("messages are appended")
    return Restored(0, bool(changed))


def _session(unit: Unit, row: SessionRow) -> None:
    session = row.session
    revision = unit.numbers[session.space].first_revision
    unit.later(_AUTHOR, session.space, session.user, _number(session.started_at), revision)
    timeout = round(session.timeout.total_seconds() * 1_000_000)
    unit.later(_SESSION, session.space, session.thread, session.id, row.automatic, timeout, session.user)


async def _facts(unit: Unit, row: Facts) -> bool:
    """Put a version where it belongs by its time."""
    created, here = _number(row.updated_at), (row.space, row.user)
    unit.own(Scope.of(row.user, row.space), created)
    if await unit.value(_HAS_FACTS, *here, row.text, created, row.cause) is not None:
        return False
    count, place = await unit.one(_EARLIER_FACTS, *here, created)
    for version in range(count, place, -1):
        unit.later(_MAKE_ROOM, *here, version)
    unit.later(_NEW_FACTS, *here, place + 1, row.text, row.cause, created)
    return True


async def _forgotten(unit: Unit, row: ForgottenRow) -> bool:
    unit.own(Scope.of(row.user, row.space), now())
    if await unit.value(_HAS_FORGOTTEN, *row) is not None:
        return False
    numbers = unit.numbers[row.space]
    numbers.forgotten += 1
    unit.later(_NEW_FORGOTTEN, row.space, numbers.forgotten, row.user, row.words, row.up_to, now())
    return True


async def _user(unit: Unit, row: UserRow) -> bool:
    created, here = _number(row.created_at), (row.space, row.user)
    known = await unit.value(_KNOWN_USER, *here)
    unit.own(Scope.of(row.user, row.space), created)
    unit.later(_USER, *here, created, row.last_chunk)
    # Otherwise something of them is here that was not looked through there.
    unit.later(_LOOKED_THROUGH, *here, row.extracted, row.looked_through)
    return known is None


async def _audit(unit: Unit, row: AuditEntry) -> bool:
    at, said = _number(row.at), (row.actor, row.action, row.subject)
    if await unit.value(_HAS_AUDIT, row.space, row.user, at, *said) is not None:
        return False
    numbers = unit.numbers[row.space]
    numbers.audit += 1
    unit.later(_NEW_AUDIT, row.space, numbers.audit, row.user, at, *said)
    return True


async def _vector(unit: Unit, row: VectorOf) -> bool:
    import numpy as np  # noqa: PLC0415 - loaded with the first vector

    text = await unit.value(_TEXT, row.space, row.seq)
    value = HalfVector(np.frombuffer(row.value, dtype=np.float16))
    return bool(await unit.rows(_VECTOR, row.space, row.seq, row.embedder, content_hash(text or ""), value))


def _number(at: object) -> int:
    return microseconds(at, "a time of the row")
