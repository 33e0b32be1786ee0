"""Reads of memories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from aforesaid.domain.checks import microseconds, moment
from aforesaid.domain.literals import Timely
from aforesaid.domain.memory import MemoryRecord, MemoryVersion
from aforesaid.errors import NotFound, quoted
from aforesaid.store import questions, records
from aforesaid.store.postgres.queries import Queries, Row

_COLUMNS: Final = ", ".join(f"m.{name}" for name in records.MEMORY)
_MEMORY_OF_ANY_SPACE: Final = f"""
SELECT m.id, m.space, m.owner,
       ARRAY(SELECT s.seq FROM memory_source s WHERE s.space = m.space AND s.memory = m.id ORDER BY s.seq),
       m.created_at, m.revision, {_COLUMNS}
  FROM memory m
"""
_MEMORY: Final = _MEMORY_OF_ANY_SPACE.replace("s.space = m.space", "s.space = $1")
"""Memories of the space $1. It is named for the table of sources too, so that Citus asks one shard."""
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
_EVERY: Final = f"{_MEMORY_OF_ANY_SPACE} WHERE (m.space, m.id) > ($1, $2) ORDER BY m.space, m.id LIMIT $3"
_LISTED: Final = f"""
{_MEMORY} WHERE m.space = $1 AND ($2::text IS NULL OR m.owner = $2) AND ($3::boolean IS NULL OR m.active = $3)
   AND ($4::text IS NULL OR m.category = $4) AND ($5::bigint IS NULL OR m.id < $5) ORDER BY m.id DESC LIMIT $6
"""
_VERSIONS: Final = """
SELECT revision, at, actor, action, was FROM memory_version WHERE space = $1 AND memory = $2 ORDER BY revision
"""


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
            f"{_MEMORY_OF_ANY_SPACE} WHERE {_TIMELY[question.what]} LIMIT $2",
            microseconds(question.before, "the moment"),
            question.limit,
        )
    )


async def versions(queries: Queries, question: questions.MemoryVersions) -> list[MemoryVersion]:
    """Return what a memory was before each of its changes, oldest first."""
    newest = await find(queries, questions.MemoryById(question.scope, question.memory))
    head = (newest.id, newest.space, newest.user, newest.sources, records.number_of(newest.created_at))
    return [
        MemoryVersion(
            _memory((*head, revision, *(was.get(name) for name in records.MEMORY))), action, actor, moment(at)
        )
        for revision, at, actor, action, was in await queries.rows(_VERSIONS, question.scope.space, question.memory)
    ]


def _memories(found: Iterable[Row]) -> list[MemoryRecord]:
    return [_memory(row) for row in found]


def _memory(row: Row) -> MemoryRecord:
    """Read a row of _MEMORY."""
    number, space, user, sources, created, revision, *values = row
    it = dict(zip(records.MEMORY, values, strict=True))
    return records.memory(number, space, user, created, revision, sources, it)
