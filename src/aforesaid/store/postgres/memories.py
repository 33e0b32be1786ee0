"""Memories: written, changed, counted, taken the place of, and read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from aforesaid.domain.checks import microseconds, moment
from aforesaid.domain.clock import now
from aforesaid.domain.literals import Timely
from aforesaid.domain.memory import MemoryDraft, MemoryRecord, MemoryVersion
from aforesaid.domain.memory_change import SOURCES_KEPT, AddMemory, ChangeMemory, CountMemory, Superseded
from aforesaid.domain.scope import Scope
from aforesaid.errors import NotFound, SourcesChanged, quoted
from aforesaid.store import questions, records
from aforesaid.store.hashed import hashed
from aforesaid.store.postgres.note_search import embed_again
from aforesaid.store.postgres.queries import Queries, Row
from aforesaid.store.postgres.unit import Unit
from aforesaid.text.terms import terms

_KNOWN_SOURCES: Final = "SELECT count(*) FROM log WHERE space = $1 AND owner = $2 AND seq = ANY($3::bigint[])"
_FIRST: Final = 6
_NEW: Final = f"""
INSERT INTO memory (space, id, owner, created_at, terms, {", ".join(records.MEMORY)})
VALUES ($1, $2, $3, $4, $5, {", ".join(f"${_FIRST + place}" for place in range(len(records.MEMORY)))})
"""
_SET: Final = f"""
UPDATE memory SET {", ".join(f"{name} = ${4 + place}" for place, name in enumerate(records.MEMORY))}, terms = $3,
       revision = revision + 1 WHERE space = $1 AND id = $2
"""
_PAIRS: Final = ", ".join(f"'{name}', {name}" for name in records.MEMORY)
_COLUMNS: Final = ", ".join(f"m.{name}" for name in records.MEMORY)
_KEEP_VERSION: Final = f"""
INSERT INTO memory_version (space, memory, revision, at, actor, action, was)
SELECT space, id, revision, $3, $4, $5, json_build_object({_PAIRS}) FROM memory WHERE space = $1 AND id = $2
"""
_SOURCES: Final = "INSERT INTO memory_source (space, memory, seq) SELECT $1, $2, unnest($3::bigint[])"
_ADD_SOURCES: Final = """
INSERT INTO memory_source (space, memory, seq)
SELECT $1, $2, l.seq FROM log l
 WHERE l.space = $1 AND l.owner = $3 AND l.seq = ANY($4::bigint[]) ORDER BY l.seq
 LIMIT greatest(0, $5 - (SELECT count(*) FROM memory_source WHERE space = $1 AND memory = $2))
ON CONFLICT DO NOTHING
"""
_COUNT: Final = """
UPDATE memory SET times = times + $4, seen_at = greatest(seen_at, $5) WHERE space = $1 AND id = $2 AND owner = $3
RETURNING id
"""
_SUPERSEDE: Final = """
UPDATE memory SET state = 'superseded', active = false, valid_to = greatest(valid_from, $3), superseded_by = $4,
       reason = '', revision = revision + 1 WHERE space = $1 AND id = $2
"""
_MEMORY: Final = f"""
SELECT m.id, m.space, m.owner,
       ARRAY(SELECT s.seq FROM memory_source s WHERE s.space = m.space AND s.memory = m.id ORDER BY s.seq),
       m.created_at, m.revision, {_COLUMNS}
  FROM memory m
"""
_OF_USER: Final = f"""
{_MEMORY} WHERE m.space = $1 AND m.owner = $2 AND ($3::boolean IS NULL OR m.active = $3)
 ORDER BY m.importance DESC, m.id DESC
"""
_BY_NUMBER: Final = f"{_MEMORY} WHERE m.space = $1 AND m.id = $2"
_ONE_OF_USER: Final = f"{_BY_NUMBER} AND m.owner = $3"
_TIMELY: Final[Mapping[Timely, str]] = {
    "expiry": "m.active AND m.expires_at IS NOT NULL AND m.expires_at <= $1 ORDER BY m.expires_at, m.id, m.space",
    "reminder": (
        "m.active AND m.remind_at IS NOT NULL AND m.delivered_at IS NULL AND m.remind_at <= $1 "
        "ORDER BY m.remind_at, m.id, m.space"
    ),
    "unseen": """
        m.active AND m.seen_at <= $1 AND NOT EXISTS (
            SELECT 1 FROM memory_version v WHERE v.space = m.space AND v.memory = m.id AND v.at > $1)
        ORDER BY m.seen_at, m.id, m.space
    """,
}
_EVERY: Final = f"{_MEMORY} WHERE (m.space, m.id) > ($1, $2) ORDER BY m.space, m.id LIMIT $3"
_LISTED: Final = f"""
{_MEMORY} WHERE m.space = $1 AND ($2::text IS NULL OR m.owner = $2) AND ($3::boolean IS NULL OR m.active = $3)
   AND ($4::text IS NULL OR m.category = $4) AND ($5::bigint IS NULL OR m.id < $5) ORDER BY m.id DESC LIMIT $6
"""
_VERSIONS: Final = """
SELECT revision, at, actor, action, was FROM memory_version WHERE space = $1 AND memory = $2 ORDER BY revision
"""
_REVISION: Final = "SELECT revision, text FROM memory WHERE space = $1 AND id = $2 AND owner = $3"


async def add(unit: Unit, step: AddMemory) -> MemoryRecord:
    """Store a memory and its sources, and mark those that it takes the place of."""
    draft, scope, created = step.draft, step.draft.scope, now()
    unit.own(scope, created)
    wanted = sorted(set(draft.sources))
    if wanted and await unit.value(_KNOWN_SOURCES, scope.space, scope.user, wanted) != len(wanted):
        raise NotFound("a source of the memory is not one of this user's messages")
    for old in step.supersedes:  # before the new one is there: it cannot take its own place
        await _checked(unit, scope, old)
    since = created if draft.valid_from is None else records.number_of(draft.valid_from)
    numbers = unit.numbers[scope.space]
    numbers.memory += 1
    number = numbers.memory
    unit.later(_NEW, scope.space, number, scope.user, created, hashed(terms(draft.text)), *_new_row(draft, since))
    if wanted:
        unit.later(_SOURCES, scope.space, number, wanted)
    unit.audit(scope, step.actor, "memory.add", f"memory {number}")
    for old in step.supersedes:
        await _supersede(unit, step, old, number, since)
    return _memory(await unit.one(_BY_NUMBER, scope.space, number))


async def change(unit: Unit, step: ChangeMemory) -> MemoryRecord:
    """Put another value in the place of a memory; what it was is kept."""
    memory = step.memory
    scope = Scope.of(memory.user, memory.space)
    await unit.expect_owner(scope)
    before = await _checked(unit, scope, Superseded(memory.id, memory.revision))
    unit.later(_KEEP_VERSION, scope.space, memory.id, now(), step.actor, step.action)
    unit.later(_SET, scope.space, memory.id, hashed(terms(memory.text)), *as_row(memory))
    if memory.text != before:
        embed_again(unit, scope, memory.id)
    unit.audit(scope, step.actor, f"memory.{step.action}", f"memory {memory.id}")
    return _memory(await unit.one(_BY_NUMBER, scope.space, memory.id))


async def count(unit: Unit, step: CountMemory) -> None:
    """Count that a memory was said again."""
    scope = step.scope
    await unit.expect_owner(scope)
    found = await unit.rows(_COUNT, scope.space, step.memory, scope.user, step.times, records.number_of(step.seen_at))
    if not found:
        raise NotFound(f"{quoted(scope.user)} has no memory {step.memory}")
    add_sources(unit, scope, step.memory, step.sources, SOURCES_KEPT)


def add_sources(unit: Unit, scope: Scope, memory: int, sources: tuple[int, ...], most: int) -> None:
    """Note that a memory was said in these messages of its owner, until it has so many sources."""
    unit.later(_ADD_SOURCES, scope.space, memory, scope.user, list(sources), most)


async def page(queries: Queries, after: tuple[str, int], limit: int) -> list[MemoryRecord]:
    """Return the next memories of all users, by space and number."""
    return _memories(await queries.rows(_EVERY, *after, limit))


async def listed(queries: Queries, question: questions.MemoriesOfSpace) -> list[MemoryRecord]:
    """Return the newest memories by space, user, state, category and the id that they are below, so many of them."""
    return _memories(
        await queries.rows(
            _LISTED, question.space, question.user, question.active, question.category, question.before, question.limit
        )
    )


async def read(queries: Queries, question: questions.Memories) -> list[MemoryRecord]:
    """Return the user's memories, most important first."""
    return _memories(await queries.rows(_OF_USER, question.scope.space, question.scope.user, question.active))


async def find(queries: Queries, question: questions.MemoryById) -> MemoryRecord:
    """Return one memory of the user."""
    found = _memories(await queries.rows(_ONE_OF_USER, question.scope.space, question.memory, question.scope.user))
    if not found:
        raise NotFound(f"{quoted(question.scope.user)} has no memory {question.memory}")
    return found[0]


async def timely(queries: Queries, question: questions.DueMemories) -> list[MemoryRecord]:
    """Return active memories, of all spaces, whose time has come."""
    return _memories(
        await queries.rows(
            f"{_MEMORY} WHERE {_TIMELY[question.what]} LIMIT $2",
            microseconds(question.before, "the moment"),
            question.limit,
        )
    )


async def versions(queries: Queries, question: questions.MemoryVersions) -> list[MemoryVersion]:
    """Return what a memory was before each of its changes, oldest first."""
    newest = await find(queries, questions.MemoryById(question.scope, question.memory))
    head = (newest.id, newest.space, newest.user, newest.sources, records.number_of(newest.created_at))
    return [
        MemoryVersion(_memory((*head, revision, *(was[name] for name in records.MEMORY))), action, actor, moment(at))
        for revision, at, actor, action, was in await queries.rows(_VERSIONS, question.scope.space, question.memory)
    ]


async def _supersede(unit: Unit, step: AddMemory, old: Superseded, new: int, since: int) -> None:
    scope = step.draft.scope
    await _checked(unit, scope, old)
    unit.later(_KEEP_VERSION, scope.space, old.memory, now(), step.actor, "supersede")
    unit.later(_SUPERSEDE, scope.space, old.memory, since, new)
    unit.audit(scope, step.actor, "memory.supersede", f"memory {old.memory} by memory {new}")


async def _checked(unit: Unit, scope: Scope, old: Superseded) -> str:
    """Return the text of a memory that is as it was when something was decided about it."""
    found = await unit.first(_REVISION, scope.space, old.memory, scope.user)
    if found is None:
        raise NotFound(f"{quoted(scope.user)} has no memory {old.memory}")
    revision, text = found
    if revision != old.revision:
        raise SourcesChanged(f"memory {old.memory} has changed since; read it again")
    return str(text)


def as_row(memory: MemoryRecord) -> Row:
    """Return what the changing columns hold of a memory."""
    return records.memory_values(memory, list(memory.tags), None if memory.speaker == memory.user else memory.speaker)


def _new_row(draft: MemoryDraft, since: int) -> Row:
    speaker = None if draft.speaker in (None, draft.scope.user) else draft.speaker
    return records.draft_values(draft, since, list(draft.tags), speaker)


def _memories(found: Iterable[Row]) -> list[MemoryRecord]:
    return [_memory(row) for row in found]


def _memory(row: Row) -> MemoryRecord:
    """Read a row of _MEMORY."""
    number, space, user, sources, created, revision, *values = row
    it = dict(zip(records.MEMORY, values, strict=True))
    return records.memory(number, space, user, created, revision, sources, it)
