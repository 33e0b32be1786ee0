"""Memories of a dump, with what they were before."""

from __future__ import annotations

import json
from typing import Final

from aforesaid.domain.checks import microseconds
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.memory_change import SOURCES_KEPT
from aforesaid.domain.scope import Scope
from aforesaid.domain.transfer import MemoryRow, Restored, SuccessorRow
from aforesaid.store import records
from aforesaid.store.hashed import hashed
from aforesaid.store.postgres import memories
from aforesaid.store.postgres.note_search import embed_again
from aforesaid.store.postgres.unit import Unit
from aforesaid.text.terms import terms

_KNOWN: Final = """
SELECT m.id, m.revision, m.text FROM memory m
 WHERE m.space = $1 AND m.owner = $2 AND m.created_at = $3 AND coalesce((
     SELECT v.was ->> 'text' FROM memory_version v WHERE v.space = m.space AND v.memory = m.id AND v.revision = 1
 ), m.text) = $4
"""
_FIRST: Final = 7
_NEW: Final = f"""
INSERT INTO memory (space, id, owner, created_at, revision, terms, {", ".join(records.MEMORY)})
VALUES ($1, $2, $3, $4, $5, $6, {", ".join(f"${_FIRST + place}" for place in range(len(records.MEMORY)))})
"""
_SET: Final = f"""
UPDATE memory SET revision = $3, terms = $4, {", ".join(f"{name} = ${5 + place}" for place, name in enumerate(records.MEMORY))}
 WHERE space = $1 AND id = $2
"""
_NEW_VERSION: Final = """
INSERT INTO memory_version (space, memory, revision, at, actor, action, was) VALUES ($1, $2, $3, $4, $5, $6, $7::json)
"""
_SAID_AGAIN: Final = """
UPDATE memory SET times = greatest(times, $3), seen_at = greatest(seen_at, $4) WHERE space = $1 AND id = $2
"""
_SUCCESSOR: Final = "UPDATE memory SET superseded_by = $3 WHERE space = $1 AND id = $2"
_SUCCESSOR_THEN: Final = """
UPDATE memory_version SET was = jsonb_set(was::jsonb, '{superseded_by}', to_jsonb($4::bigint))::json
 WHERE space = $1 AND memory = $2 AND revision = $3
"""


async def restore(unit: Unit, row: MemoryRow) -> Restored:
    """Store a memory and what it was, or bring the one that is here to the state that it got later elsewhere."""
    new = row.memory
    scope = Scope.of(new.user, new.space)
    created = microseconds(new.created_at, "the time")
    unit.own(scope, created)
    known = await unit.first(_KNOWN, new.space, new.user, created, row.first_text)
    found, values, revision = hashed(terms(new.text)), memories.as_row(new), 1 + len(row.versions)
    if known is None:
        numbers = unit.numbers[new.space]
        number = numbers.memory = max(numbers.memory + 1, new.id)
        unit.later(_NEW, new.space, number, new.user, created, revision, found, *values)
        _keep_versions(unit, number, row, 0)
    else:
        number, before, text = known
        if before < revision:
            _keep_versions(unit, number, row, before - 1)
            unit.later(_SET, new.space, number, revision, found, *values)
            if new.text != text:
                embed_again(unit, scope, number)
        unit.later(_SAID_AGAIN, new.space, number, new.times, microseconds(new.seen_at, "the time"))
    memories.add_sources(unit, scope, number, new.sources, max(SOURCES_KEPT, 0 if known else len(new.sources)))
    return Restored(number, known is None)


def note_successor(unit: Unit, row: SuccessorRow) -> Restored:
    """Write down which memory took the place of another."""
    if row.revision is None:
        unit.later(_SUCCESSOR, row.space, row.memory, row.by)
    else:
        unit.later(_SUCCESSOR_THEN, row.space, row.memory, row.revision, row.by)
    return Restored(row.memory, False)


def _keep_versions(unit: Unit, number: int, row: MemoryRow, kept: int) -> None:
    for revision, version in enumerate(row.versions[kept:], kept + 1):
        at = microseconds(version.at, "the time")
        was = json.dumps(_as_stored(version.before), ensure_ascii=False)
        unit.later(_NEW_VERSION, row.memory.space, number, revision, at, version.actor, version.action, was)


def _as_stored(memory: MemoryRecord) -> dict[str, object]:
    return dict(zip(records.MEMORY, memories.as_row(memory), strict=True))
