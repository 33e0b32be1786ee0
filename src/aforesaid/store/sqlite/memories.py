"""Reads of memories."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import apsw

from aforesaid.domain.checks import microseconds, moment
from aforesaid.domain.literals import Timely
from aforesaid.domain.memory import MemoryRecord, MemoryVersion
from aforesaid.errors import NotFound, quoted
from aforesaid.store import questions, records
from aforesaid.store.sqlite import rows
from aforesaid.store.sqlite.names import find_person

_COLUMNS: Final = ", ".join(f"m.{name}" for name in records.MEMORY)
_MEMORY: Final = f"""
SELECT m.id, o.space, o.name,
       (SELECT json_group_array(s.seq ORDER BY s.seq) FROM memory_source s WHERE s.memory = m.id),
       m.created_at, m.revision, (SELECT name FROM person WHERE id = m.speaker), {_COLUMNS}
  FROM memory m JOIN person o ON o.id = m.owner
"""
_TIMELY: Final[Mapping[Timely, str]] = {
    "unseen": """
        m.active = 1 AND m.seen_at <= ?1 AND NOT EXISTS (
            SELECT 1 FROM memory_version v WHERE v.memory = m.id AND v.at > ?1) ORDER BY m.seen_at, m.id
    """,
    "expiry": "m.active = 1 AND m.expires_at IS NOT NULL AND m.expires_at <= ? ORDER BY m.expires_at, m.id",
    "reminder": (
        "m.active = 1 AND m.remind_at IS NOT NULL AND m.delivered_at IS NULL AND m.remind_at <= ? "
        "ORDER BY m.remind_at, m.id"
    ),
}


def every(connection: apsw.Connection) -> Iterator[MemoryRecord]:
    """Give out the memories of all users, by number."""
    for row in connection.execute(f"{_MEMORY} ORDER BY m.id"):
        yield _memory(row)


def read(connection: apsw.Connection, question: questions.Memories) -> list[MemoryRecord]:
    """Return the user's memories, most important first."""
    owner = find_person(connection, question.scope.space, question.scope.user)
    where = "WHERE m.owner = ?1 AND (?2 IS NULL OR m.active = ?2) ORDER BY m.importance DESC, m.id DESC"
    return _memories(connection.execute(f"{_MEMORY} {where}", (owner, question.active)))


def find(connection: apsw.Connection, question: questions.MemoryById) -> MemoryRecord:
    """Return one memory of the user."""
    owner = find_person(connection, question.scope.space, question.scope.user)
    found = _memories(connection.execute(f"{_MEMORY} WHERE m.id = ? AND m.owner = ?", (question.memory, owner)))
    if not found:
        raise NotFound(f"{quoted(question.scope.user)} has no memory {question.memory}")
    return found[0]


def listed(connection: apsw.Connection, question: questions.MemoriesOfSpace) -> list[MemoryRecord]:
    """Return the newest memories by space, user, state, category and the id that they are below, so many of them."""
    where = """
     WHERE o.space = ?1 AND (?2 IS NULL OR o.name = ?2) AND (?3 IS NULL OR m.active = ?3)
       AND (?4 IS NULL OR m.category = ?4) AND (?5 IS NULL OR m.id < ?5) ORDER BY m.id DESC LIMIT ?6
    """
    return _memories(
        connection.execute(
            f"{_MEMORY} {where}",
            (question.space, question.user, question.active, question.category, question.before, question.limit),
        )
    )


def timely(connection: apsw.Connection, question: questions.DueMemories) -> list[MemoryRecord]:
    """Return active memories, of all spaces, whose time has come."""
    return _memories(
        connection.execute(
            f"{_MEMORY} WHERE {_TIMELY[question.what]} LIMIT ?2",
            (microseconds(question.before, "the moment"), question.limit),
        )
    )


def versions(connection: apsw.Connection, question: questions.MemoryVersions) -> list[MemoryVersion]:
    """Return what a memory was before each of its changes, oldest first."""
    newest = find(connection, questions.MemoryById(question.scope, question.memory))
    query = "SELECT revision, at, actor, action, was FROM memory_version WHERE memory = ? ORDER BY revision"
    found = []
    for revision, at, actor, action, was in rows.every(connection.execute(query, (question.memory,))):
        values: dict[str, Any] = json.loads(was)
        speaker = connection.execute("SELECT name FROM person WHERE id = ?", (values["speaker"],)).get
        head = (
            newest.id,
            newest.space,
            newest.user,
            json.dumps(newest.sources),
            records.number_of(newest.created_at),
            revision,
        )
        before = _memory((*head, speaker, *(values.get(name) for name in records.MEMORY)))
        found.append(MemoryVersion(before, action, actor, moment(at)))
    return found


def _memories(found: Iterable[records.Row]) -> list[MemoryRecord]:
    return [_memory(row) for row in found]


def _memory(row: records.Row) -> MemoryRecord:
    """Read a row of _MEMORY."""
    number, space, user, sources, created, revision, speaker, *values = row
    it = dict(zip(records.MEMORY, values, strict=True))
    it |= {"speaker": speaker, "tags": json.loads(it["tags"])}
    return records.memory(number, space, user, created, revision, json.loads(sources), it)
