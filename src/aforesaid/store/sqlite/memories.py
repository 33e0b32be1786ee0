"""Memories in the file: written, changed, counted, taken the place of, and read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import apsw

from aforesaid.domain.checks import microseconds, moment
from aforesaid.domain.clock import now
from aforesaid.domain.literals import Timely
from aforesaid.domain.memory import MemoryDraft, MemoryRecord, MemoryVersion
from aforesaid.domain.memory_change import SOURCES_KEPT, AddMemory, ChangeMemory, CountMemory, Superseded
from aforesaid.domain.note import NoteKey
from aforesaid.domain.scope import Scope
from aforesaid.errors import NotFound, SourcesChanged, quoted
from aforesaid.store import questions, records
from aforesaid.store.sqlite import note_search, rows
from aforesaid.store.sqlite.names import find_person
from aforesaid.store.sqlite.unit import Unit

_KNOWN_SOURCES: Final = "SELECT count(*) FROM log WHERE owner = ? AND seq IN (SELECT value FROM json_each(?))"
_NEW: Final = (
    f"INSERT INTO memory (owner, created_at, {', '.join(records.MEMORY)}) VALUES (?, ?{', ?' * len(records.MEMORY)})"
)
_SET: Final = (
    f"UPDATE memory SET {', '.join(f'{name} = ?' for name in records.MEMORY)}, revision = revision + 1 WHERE id = ?"
)
_PAIRS: Final = ", ".join(f"'{name}', {name}" for name in records.MEMORY)
_COLUMNS: Final = ", ".join(f"m.{name}" for name in records.MEMORY)
_KEEP_VERSION: Final = f"""
INSERT INTO memory_version (memory, revision, at, actor, action, was)
SELECT id, revision, ?, ?, ?, json_object({_PAIRS}) FROM memory WHERE id = ?
"""
_ADD_SOURCES: Final = """
INSERT OR IGNORE INTO memory_source (memory, seq)
SELECT ?1, l.seq FROM log l WHERE l.owner = ?2 AND l.seq IN (SELECT value FROM json_each(?3)) ORDER BY l.seq LIMIT
       max(0, ?4 - (SELECT count(*) FROM memory_source WHERE memory = ?1))
"""
_COUNT: Final = "UPDATE memory SET times = times + ?, seen_at = max(seen_at, ?) WHERE id = ? AND owner = ?"
_SUPERSEDE: Final = """
UPDATE memory SET state = 'superseded', active = 0, valid_to = max(valid_from, ?), superseded_by = ?, reason = '',
       revision = revision + 1 WHERE id = ?
"""
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


def add(unit: Unit, step: AddMemory) -> MemoryRecord:
    """Store a memory and its sources, and mark those that it takes the place of."""
    draft, created = step.draft, now()
    owner = unit.names.owner(draft.scope.space, draft.scope.user, created)
    execute = unit.connection.execute
    wanted = sorted(set(draft.sources))
    if execute(_KNOWN_SOURCES, (owner, json.dumps(wanted))).get != len(wanted):
        raise NotFound("a source of the memory is not one of this user's messages")
    for old in step.supersedes:  # before the new one is there: it cannot take its own place
        _checked(unit, owner, draft.scope, old)
    since = created if draft.valid_from is None else records.number_of(draft.valid_from)
    execute(_NEW, (owner, created, *_new_row(unit, draft, since)))
    number = unit.connection.last_insert_rowid()
    for seq in wanted:
        execute("INSERT INTO memory_source (memory, seq) VALUES (?, ?)", (number, seq))
    note_search.index(unit, owner, NoteKey("memory", number), draft.text)
    unit.audit(draft.scope, step.actor, "memory.add", f"memory {number}")
    for old in step.supersedes:
        _supersede(unit, step, owner, old, number, since)
    return one(unit.connection, number)


def change(unit: Unit, step: ChangeMemory) -> MemoryRecord:
    """Put another value in the place of a memory; what it was is kept."""
    memory, execute = step.memory, unit.connection.execute
    scope = Scope.of(memory.user, memory.space)
    owner = unit.known_owner(scope)
    before = _checked(unit, owner, scope, Superseded(memory.id, memory.revision))
    execute(_KEEP_VERSION, (now(), step.actor, step.action, memory.id))
    execute(_SET, (*as_row(unit, memory), memory.id))
    if memory.text != before:
        note_search.index_again(unit, owner, NoteKey("memory", memory.id), before, memory.text)
    unit.audit(scope, step.actor, f"memory.{step.action}", f"memory {memory.id}")
    return one(unit.connection, memory.id)


def count(unit: Unit, step: CountMemory) -> None:
    """Count that a memory was said again."""
    owner = unit.known_owner(step.scope)
    execute = unit.connection.execute
    execute(_COUNT, (step.times, records.number_of(step.seen_at), step.memory, owner))
    if not unit.connection.changes():
        raise NotFound(f"{quoted(step.scope.user)} has no memory {step.memory}")
    add_sources(unit, step.memory, owner, step.sources, SOURCES_KEPT)


def add_sources(unit: Unit, memory: int, owner: int, sources: tuple[int, ...], most: int) -> None:
    """Note that a memory was said in these messages of its owner, until it has so many sources."""
    unit.connection.execute(_ADD_SOURCES, (memory, owner, json.dumps(sources), most))


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
        before = _memory((*head, speaker, *(values[name] for name in records.MEMORY)))
        found.append(MemoryVersion(before, action, actor, moment(at)))
    return found


def one(connection: apsw.Connection, memory: int) -> MemoryRecord:
    """Return a memory that is certain to be there."""
    return _memory(rows.one(connection.execute(f"{_MEMORY} WHERE m.id = ?", (memory,))))


def _supersede(unit: Unit, step: AddMemory, owner: int, old: Superseded, new: int, since: int) -> None:
    scope = step.draft.scope
    _checked(unit, owner, scope, old)
    unit.connection.execute(_KEEP_VERSION, (now(), step.actor, "supersede", old.memory))
    unit.connection.execute(_SUPERSEDE, (since, new, old.memory))
    unit.audit(scope, step.actor, "memory.supersede", f"memory {old.memory} by memory {new}")


def _checked(unit: Unit, owner: int, scope: Scope, old: Superseded) -> str:
    """Return the text of a memory that is as it was when something was decided about it."""
    query = "SELECT revision, text FROM memory WHERE id = ? AND owner = ?"
    found = unit.connection.execute(query, (old.memory, owner)).fetchone()
    if found is None:
        raise NotFound(f"{quoted(scope.user)} has no memory {old.memory}")
    revision, text = found
    if revision != old.revision:
        raise SourcesChanged(f"memory {old.memory} has changed since; read it again")
    return str(text)


def as_row(unit: Unit, memory: MemoryRecord) -> records.Row:
    """Return what the changing columns hold of a memory."""
    speaker = _speaker(unit, memory.space, memory.user, memory.speaker)
    return records.memory_values(memory, _tags(memory.tags), speaker)


def _new_row(unit: Unit, draft: MemoryDraft, since: int) -> records.Row:
    speaker = _speaker(unit, draft.scope.space, draft.scope.user, draft.speaker)
    return records.draft_values(draft, since, _tags(draft.tags), speaker)


def _tags(tags: tuple[str, ...]) -> str:
    return json.dumps(tags, ensure_ascii=False)


def _memories(found: Iterable[records.Row]) -> list[MemoryRecord]:
    return [_memory(row) for row in found]


def _memory(row: records.Row) -> MemoryRecord:
    """Read a row of _MEMORY."""
    number, space, user, sources, created, revision, speaker, *values = row
    it = dict(zip(records.MEMORY, values, strict=True))
    it |= {"speaker": speaker, "tags": json.loads(it["tags"])}
    return records.memory(number, space, user, created, revision, json.loads(sources), it)


def _speaker(unit: Unit, space: str, owner: str, speaker: str | None) -> int | None:
    return None if speaker in (None, owner) else unit.names.author(space, speaker or "", now())
