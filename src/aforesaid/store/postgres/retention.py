"""What is old enough to be deleted, in PostgreSQL, and marks of the store itself."""

from __future__ import annotations

from typing import Final, NamedTuple

from aforesaid.domain.checks import moment
from aforesaid.domain.retention import Discard, Discardable
from aforesaid.store import questions
from aforesaid.store.postgres.queries import Queries
from aforesaid.store.rules.lookups import OldRow, OldRows, OldTable

_ARCHIVES: Final = """
FROM summary y WHERE y.level = 1 AND y.reach = 'chunks' AND NOT y.rolled_back AND NOT y.replaced AND y.ended_at < $1
 AND EXISTS (SELECT 1 FROM log l WHERE l.space = y.space AND l.owner = y.owner AND l.chunk = y.chunks[1])
"""
_SUMMARIES: Final = """
FROM summary y WHERE (y.replaced OR y.rolled_back) AND NOT y.active AND y.created_at < $1
 AND NOT EXISTS (SELECT 1 FROM summary_source x WHERE x.space = y.space AND x.source = y.id)
"""
_MEMORIES: Final = """
FROM memory y WHERE NOT y.active AND y.state != 'quarantined' AND coalesce((
    SELECT max(v.at) FROM memory_version v WHERE v.space = y.space AND v.memory = y.id), y.created_at) < $1
"""
# All versions up to one that had been replaced by then, so that what is left has no gaps.
_FACTS: Final = """
FROM facts y WHERE y.version < (
    SELECT max(g.version) FROM facts g WHERE g.space = y.space AND g.owner = y.owner AND g.created_at < $1)
"""
_VERSIONS: Final = """
FROM memory_version y WHERE y.revision <= (
    SELECT max(w.revision) FROM memory_version w WHERE w.space = y.space AND w.memory = y.memory AND w.at < $1)
"""
_DERIVED: Final = "FROM derived y WHERE y.at < $1"
_AUDIT: Final = "FROM audit y WHERE y.at < $1"
_SPENDING: Final = "FROM spending y WHERE y.day < $1"
OLD: Final[dict[Discardable, tuple[str, ...]]] = {
    "messages": (_ARCHIVES,),
    "summaries": (_SUMMARIES,),
    "memories": (_MEMORIES,),
    "versions": (_FACTS, _VERSIONS),
    "derived": (_DERIVED,),
    "audit": (_AUDIT,),
    "spending": (_SPENDING,),
}
KEYS: Final[dict[Discardable, str]] = {
    "derived": "space, owner, kind",
    "audit": "space, id",
    "spending": "space, day, owner",
}
"""The keys of tables whose rows are deleted without an audit entry."""


def of_space(old: str) -> str:
    """Return the condition for the space $2 alone. Subqueries name it too, so that Citus asks one shard."""
    return f"{old.replace('= y.space', '= $2')} AND y.space = $2"


_ROWS: Final[dict[OldTable, str]] = {
    "archives": f"SELECT y.space, y.owner, y.chunks[1], 0 {of_space(_ARCHIVES)} ORDER BY y.ended_at, y.id",
    "summaries": f"SELECT y.space, y.owner, y.id, 0 {of_space(_SUMMARIES)} ORDER BY y.id",
    "memories": f"SELECT y.space, y.owner, y.id, 0 {of_space(_MEMORIES)} ORDER BY y.id",
    "facts": f"SELECT y.space, y.owner, y.version, 0 {of_space(_FACTS)} ORDER BY y.owner, y.version",
    "memory_versions": f"""
        SELECT y.space, (SELECT m.owner FROM memory m WHERE m.space = $2 AND m.id = y.memory), y.memory, y.revision
        {of_space(_VERSIONS)} ORDER BY y.memory, y.revision
    """,
}


class Discarding(NamedTuple):
    """A discard in the space that it was found to have something to do in."""

    step: Discard
    space: str | None
    """None where nothing is old enough in any space."""


async def discardable(queries: Queries, question: questions.DiscardableCount) -> int:
    """Return how much is older than a moment."""
    count = "coalesce(sum(y.messages), 0)::bigint" if question.what == "messages" else "count(*)"
    at = moment_of(question.what, question.before)
    return sum([int(await queries.value(f"SELECT {count} {old}", at)) for old in OLD[question.what]])


async def locate(queries: Queries, step: Discard) -> Discarding:
    """Find a space in which something is old enough."""
    for old in OLD[step.what]:
        space = await queries.value(f"SELECT y.space {old} LIMIT 1", moment_of(step.what, step.before))
        if space is not None:
            return Discarding(step, space)
    return Discarding(step, None)


async def old_rows(queries: Queries, lookup: OldRows) -> list[OldRow]:
    """Return some of the rows of a space that are older than a moment."""
    found = await queries.rows(f"{_ROWS[lookup.table]} LIMIT $3", lookup.before, lookup.space, lookup.limit)
    return [OldRow(*row) for row in found]


def moment_of(what: Discardable, before: int) -> int | str:
    """Return a moment as the table of a kind of rows has it."""
    return moment(before).date().isoformat() if what == "spending" else before
