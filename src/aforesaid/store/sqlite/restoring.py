"""Taking in rows of a dump. Messages are appended by the appender; this is about all that refers to them."""

from __future__ import annotations

import json
from typing import Final

from aforesaid.domain.checks import microseconds
from aforesaid.domain.clock import now
from aforesaid.domain.memory import Facts
from aforesaid.domain.message import Message
from aforesaid.domain.report import AuditEntry
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
from aforesaid.store.sqlite import restored_memories, restored_summaries, rows
from aforesaid.store.sqlite.names import find_thread
from aforesaid.store.sqlite.unit import Unit
from aforesaid.store.sqlite.vectors import content_hash

_SESSION: Final = "UPDATE session SET automatic = ?, timeout = ?, opened_by = ? WHERE thread = ? AND name = ?"
_HAS_FACTS: Final = "SELECT 1 FROM facts WHERE owner = ? AND text = ? AND created_at = ? AND cause = ?"
_ALL_FACTS: Final = "SELECT text, cause, created_at FROM facts WHERE owner = ? ORDER BY version"
_NEW_FACTS: Final = "INSERT INTO facts (owner, version, text, cause, created_at) VALUES (?, ?, ?, ?, ?)"
_HAS_FORGOTTEN: Final = "SELECT 1 FROM forgotten WHERE owner = ? AND words = ? AND up_to = ?"
_SETTING: Final = """
INSERT INTO setting (owner, key, value, updated_at) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT DO UPDATE SET value = ?3, updated_at = ?4 WHERE updated_at < ?4
"""
_USER: Final = "UPDATE person SET created_at = min(created_at, ?2), last_chunk = max(last_chunk, ?3) WHERE id = ?1"
_LOOKED_THROUGH: Final = """
UPDATE person SET extracted = max(extracted, ?2)
 WHERE id = ?1 AND (SELECT count(*) FROM log WHERE owner = ?1 AND seq <= ?2) = ?3
"""
_DAY: Final = """
INSERT INTO agenda (policy, space, user, thread, day, messages, characters, waiting, last_seq, done_at, done_seq)
VALUES (?1, ?2, '', '', ?3, 0, 0, 0, 0, ?4, ?5)
ON CONFLICT DO UPDATE SET done_at = max(coalesce(done_at, ?4), ?4), done_seq = max(done_seq, ?5)
 WHERE last_seq <= done_seq AND (done_at IS NULL OR done_at < ?4 OR done_seq < ?5)
"""
_SPENDING: Final = """
INSERT INTO spending (day, space, user, tokens) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT DO UPDATE SET tokens = ?4 WHERE tokens < ?4
"""
_AUDIT: Final = """
INSERT INTO audit (space, user, at, actor, action, subject)
SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE NOT EXISTS (
    SELECT 1 FROM audit WHERE space = ?1 AND user = ?2 AND at = ?3 AND actor = ?4 AND action = ?5 AND subject = ?6
)
"""
_NEW_EMBEDDER: Final = "INSERT INTO embedder (name, dimensions) VALUES (?, ?) ON CONFLICT DO NOTHING"
_VECTOR: Final = """
INSERT INTO vector (embedder, owner, seq, content, value)
SELECT (SELECT id FROM embedder WHERE name = ?1), owner, seq, ?3, ?4 FROM log WHERE seq = ?2
ON CONFLICT DO NOTHING
"""


def carry_out(unit: Unit, row: Row) -> Restored:  # noqa: C901, PLR0912 - a case for each kind of row
    """Store a row, unless it is here."""
    match row:
        case SummaryRow():
            return restored_summaries.restore(unit, row)
        case MemoryRow():
            return restored_memories.restore(unit, row)
        case SuccessorRow():
            return restored_memories.note_successor(unit, row)
        case SessionRow():
            _session(unit, row)
            return Restored(0, False)
        case Facts():
            return Restored(0, _facts(unit, row))
        case ForgottenRow():
            return Restored(0, _forgotten(unit, row))
        case UserRow():
            return Restored(0, _user(unit, row))
        case VectorOf():
            _vector(unit, row)
        case SettingRow():
            updated = _number(row.setting.updated_at)
            value = json.dumps(row.setting.value, ensure_ascii=False)
            owner = unit.names.owner(row.space, row.user, updated)
            unit.connection.execute(_SETTING, (owner, row.setting.key, value, updated))
        case DayRow():
            unit.connection.execute(_DAY, row)
        case SpendingRow():
            unit.connection.execute(_SPENDING, (row.day.isoformat(), *row[1:]))
        case AuditEntry():
            names = (row.actor, row.action, row.subject)
            unit.connection.execute(_AUDIT, (row.space, row.user, _number(row.at), *names))
        case Message():
            raise TypeError("messages are appended")
    return Restored(0, bool(unit.connection.changes()))


def _session(unit: Unit, row: SessionRow) -> None:
    session = row.session
    thread = find_thread(unit.connection, session.space, session.thread)
    if thread is not None:
        opened_by = unit.names.author(session.space, session.user, _number(session.started_at))
        timeout = round(session.timeout.total_seconds() * 1_000_000)
        unit.connection.execute(_SESSION, (row.automatic, timeout, opened_by, thread, session.id))
        unit.names.sessions.pop(thread, None)


def _facts(unit: Unit, row: Facts) -> bool:
    """Put a version where it belongs by its time."""
    created, execute = _number(row.updated_at), unit.connection.execute
    owner = unit.names.owner(row.space, row.user, created)
    if execute(_HAS_FACTS, (owner, row.text, created, row.cause)).get is not None:
        return False
    before = rows.every(execute(_ALL_FACTS, (owner,)))
    place = sum(at <= created for _, _, at in before)
    for version in range(len(before), place, -1):
        execute("UPDATE facts SET version = version + 1 WHERE owner = ? AND version = ?", (owner, version))
    execute(_NEW_FACTS, (owner, place + 1, row.text, row.cause, created))
    return True


def _forgotten(unit: Unit, row: ForgottenRow) -> bool:
    owner = unit.names.owner(row.space, row.user, now())
    if unit.connection.execute(_HAS_FORGOTTEN, (owner, row.words, row.up_to)).get is not None:
        return False
    query = "INSERT INTO forgotten (owner, words, up_to, at) VALUES (?, ?, ?, ?)"
    unit.connection.execute(query, (owner, row.words, row.up_to, now()))
    return True


def _user(unit: Unit, row: UserRow) -> bool:
    created = _number(row.created_at)
    known = unit.connection.execute(
        "SELECT 1 FROM person WHERE space = ? AND name = ? AND owner = 1", (row.space, row.user)
    ).get
    owner = unit.names.owner(row.space, row.user, created)
    unit.connection.execute(_USER, (owner, created, row.last_chunk))
    # Otherwise something of them is here that was not looked through there.
    unit.connection.execute(_LOOKED_THROUGH, (owner, row.extracted, row.looked_through))
    return known is None


def _vector(unit: Unit, row: VectorOf) -> None:
    text = unit.connection.execute("SELECT text FROM log WHERE seq = ?", (row.seq,)).get
    unit.connection.execute(_NEW_EMBEDDER, (row.embedder, len(row.value) // 2))
    unit.connection.execute(_VECTOR, (row.embedder, row.seq, content_hash(text or ""), row.value))


def _number(at: object) -> int:
    return microseconds(at, "a time of the row")
