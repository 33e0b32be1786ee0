"""Memories of a dump, with what they were before."""

from __future__ import annotations

import json
from typing import Final

from aforesaid.domain.checks import microseconds
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.memory_change import SOURCES_KEPT
from aforesaid.domain.note import NoteKey
from aforesaid.domain.transfer import MemoryRow, Restored, SuccessorRow
from aforesaid.store import records
from aforesaid.store.sqlite import memories, note_search
from aforesaid.store.sqlite.unit import Unit

_KNOWN: Final = """
SELECT m.id, m.revision, m.text FROM memory m
 WHERE m.owner = ?1 AND m.created_at = ?2 AND coalesce((
     SELECT json_extract(v.was, '$.text') FROM memory_version v WHERE v.memory = m.id AND v.revision = 1), m.text) = ?3
"""
_NEW_VERSION: Final = "INSERT INTO memory_version (memory, revision, at, actor, action, was) VALUES (?, ?, ?, ?, ?, ?)"
_SAID_AGAIN: Final = "UPDATE memory SET times = max(times, ?), seen_at = max(seen_at, ?) WHERE id = ?"
_SUCCESSOR_THEN: Final = """
UPDATE memory_version SET was = json_set(was, '$.superseded_by', ?) WHERE memory = ? AND revision = ?
"""


def restore(unit: Unit, row: MemoryRow) -> Restored:
    """Store a memory and what it was, or bring the one that is here to the state that it got later elsewhere."""
    new, execute = row.memory, unit.connection.execute
    created = microseconds(new.created_at, "the time")
    owner = unit.names.owner(new.space, new.user, created)
    known = execute(_KNOWN, (owner, created, row.first_text)).fetchone()
    if known is None:
        number = max(new.id, 1 + (execute("SELECT seq FROM sqlite_sequence WHERE name = 'memory'").get or 0))
        columns = ", ".join(records.MEMORY)
        marks = ", ?" * len(records.MEMORY)
        values = memories.as_row(unit, new)
        execute(
            f"INSERT INTO memory (id, owner, created_at, revision, {columns}) VALUES (?, ?, ?, ?{marks})",
            (number, owner, created, 1 + len(row.versions), *values),
        )
        _keep_versions(unit, number, row, 0)
        note_search.index(unit, owner, NoteKey("memory", number), new.text)
    else:
        number, revision, text = known
        if revision <= len(row.versions):
            _keep_versions(unit, number, row, revision - 1)
            pairs = ", ".join(f"{name} = ?" for name in records.MEMORY)
            values = memories.as_row(unit, new)
            execute(f"UPDATE memory SET {pairs}, revision = ? WHERE id = ?", (*values, 1 + len(row.versions), number))
            if new.text != text:
                note_search.index_again(unit, owner, NoteKey("memory", number), text, new.text)
        execute(_SAID_AGAIN, (new.times, microseconds(new.seen_at, "the time"), number))
    memories.add_sources(unit, number, owner, new.sources, max(SOURCES_KEPT, 0 if known else len(new.sources)))
    return Restored(number, known is None)


def note_successor(unit: Unit, row: SuccessorRow) -> Restored:
    """Write down which memory took the place of another."""
    if row.revision is None:
        unit.connection.execute("UPDATE memory SET superseded_by = ? WHERE id = ?", (row.by, row.memory))
    else:
        unit.connection.execute(_SUCCESSOR_THEN, (row.by, row.memory, row.revision))
    return Restored(row.memory, False)


def _keep_versions(unit: Unit, number: int, row: MemoryRow, kept: int) -> None:
    for revision, version in enumerate(row.versions[kept:], kept + 1):
        at = microseconds(version.at, "the time")
        was = json.dumps(_as_stored(unit, version.before), ensure_ascii=False)
        unit.connection.execute(_NEW_VERSION, (number, revision, at, version.actor, version.action, was))


def _as_stored(unit: Unit, memory: MemoryRecord) -> dict[str, object]:
    values = memories.as_row(unit, memory)
    return {
        name: int(value) if isinstance(value, bool) else value
        for name, value in zip(records.MEMORY, values, strict=True)
    }
