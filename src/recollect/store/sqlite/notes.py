"""Memories, facts and settings: what is written about a user apart from the log."""

from __future__ import annotations

import json
from typing import Final

from recollect.domain.change import AddMemory, PutFacts, PutSetting, Spend
from recollect.domain.checks import moment
from recollect.domain.clock import now
from recollect.domain.memory import Facts, Memory
from recollect.domain.note import NoteKey
from recollect.errors import NotFound
from recollect.store.sqlite import note_search
from recollect.store.sqlite.unit import Unit

_KNOWN_SOURCES: Final = "SELECT count(*) FROM log WHERE owner = ? AND seq IN (SELECT value FROM json_each(?))"
_NEW_MEMORY: Final = (
    "INSERT INTO memory (owner, category, text, importance, tags, created_at) VALUES (?, ?, ?, ?, ?, ?)"
)
_NEW_FACTS: Final = "INSERT INTO facts (owner, version, text, cause, created_at) VALUES (?, ?, ?, ?, ?)"
_SPEND: Final = """
INSERT INTO spending (day, space, user, tokens) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT DO UPDATE SET tokens = tokens + ?4
"""
_PUT_SETTING: Final = """
INSERT INTO setting (owner, key, value, updated_at) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT DO UPDATE SET value = ?3, updated_at = ?4
"""


def add_memory(unit: Unit, step: AddMemory) -> Memory:
    """Store a memory and its sources."""
    draft, created = step.draft, now()
    owner = unit.names.owner(draft.scope.space, draft.scope.user, created)
    execute = unit.connection.execute
    wanted = tuple(sorted(set(draft.sources)))
    if execute(_KNOWN_SOURCES, (owner, json.dumps(wanted))).get != len(wanted):
        raise NotFound("a source of the memory is not one of this user's messages")
    execute(
        _NEW_MEMORY,
        (owner, draft.category, draft.text, draft.importance, json.dumps(draft.tags, ensure_ascii=False), created),
    )
    number = unit.connection.last_insert_rowid()
    for seq in wanted:
        execute("INSERT INTO memory_source (memory, seq) VALUES (?, ?)", (number, seq))
    note_search.index(unit, owner, NoteKey("memory", number), draft.text)
    unit.audit(draft.scope, step.actor, "memory.add", f"memory {number}")
    return Memory(
        id=number,
        space=draft.scope.space,
        user=draft.scope.user,
        category=draft.category,
        text=draft.text,
        importance=draft.importance,
        tags=draft.tags,
        sources=wanted,
        created_at=moment(created),
        active=True,
    )


def put_facts(unit: Unit, step: PutFacts) -> Facts:
    """Store the next version of the facts."""
    created = now()
    owner = unit.names.owner(step.scope.space, step.scope.user, created)
    version = unit.connection.execute("SELECT coalesce(max(version), 0) + 1 FROM facts WHERE owner = ?", (owner,)).get
    unit.connection.execute(_NEW_FACTS, (owner, version, step.text, step.cause, created))
    unit.audit(step.scope, step.actor, "facts.put", f"version {version}")
    return Facts(step.scope.space, step.scope.user, step.text, version, moment(created))


def spend(unit: Unit, step: Spend) -> None:
    """Count tokens, for the user and for all together."""
    payers = [("", "")] if step.scope is None else [("", ""), (step.scope.space, step.scope.user)]
    for space, user in payers:
        unit.connection.execute(_SPEND, (step.day.isoformat(), space, user, step.tokens))


def put_setting(unit: Unit, step: PutSetting) -> None:
    """Set a setting, or take it back to its default."""
    changed = now()
    owner = unit.names.owner(step.scope.space, step.scope.user, changed)
    if step.value is None:
        unit.connection.execute("DELETE FROM setting WHERE owner = ? AND key = ?", (owner, step.key))
    else:
        unit.connection.execute(_PUT_SETTING, (owner, step.key, json.dumps(step.value, ensure_ascii=False), changed))
    unit.audit(step.scope, step.actor, "setting.put", step.key)
