"""Removing what has been there for long enough, and marks of the store itself."""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from aforesaid.domain.checks import moment
from aforesaid.domain.retention import Discard, Discardable, Discarded
from aforesaid.domain.scope import Scope
from aforesaid.store import questions
from aforesaid.store.postgres.queries import Queries
from aforesaid.store.postgres.unit import Unit

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
_OLD: Final[dict[Discardable, tuple[str, ...]]] = {
    "messages": (_ARCHIVES,),
    "summaries": (_SUMMARIES,),
    "memories": (_MEMORIES,),
    "versions": (_FACTS, _VERSIONS),
    "derived": (_DERIVED,),
    "audit": (_AUDIT,),
    "spending": (_SPENDING,),
}
_KEYS: Final = {"derived": "space, owner, kind", "audit": "space, id", "spending": "space, day, owner"}

_MARKS: Final = "SELECT name, value FROM mark WHERE space = ''"
_OF_THREADS: Final = """
UPDATE thread SET messages = thread.messages - l.messages, words = thread.words - l.words, revision = revision + 1
  FROM (SELECT thread, count(*) FILTER (WHERE shared) AS messages, coalesce(sum(words) FILTER (WHERE shared), 0) AS words
          FROM log WHERE space = $1 AND seq = ANY($2::bigint[]) GROUP BY thread) l
 WHERE thread.space = $1 AND thread.name = l.thread
"""
_OF_PEOPLE: Final = """
UPDATE person SET messages = person.messages - l.messages, archived = archived - l.messages,
       turns = person.turns - l.turns, words = person.words - l.words, revision = revision + 1
  FROM (SELECT owner, count(*) AS messages, count(*) FILTER (WHERE role = 'user') AS turns, sum(words) AS words
          FROM log WHERE space = $1 AND seq = ANY($2::bigint[]) GROUP BY owner) l
 WHERE person.space = $1 AND person.name = l.owner
"""
_ERASE_MESSAGES: Final = (
    "DELETE FROM meaning WHERE space = $1 AND seq = ANY($2::bigint[])",
    "DELETE FROM memory_source WHERE space = $1 AND seq = ANY($2::bigint[])",
    """
    UPDATE log SET replaced = false WHERE space = $1 AND seq IN (
        SELECT l.replaces FROM log l WHERE l.space = $1 AND l.seq = ANY($2::bigint[]) AND l.replaces IS NOT NULL)
    """,
    "UPDATE log SET replaces = NULL WHERE space = $1 AND replaces = ANY($2::bigint[])",
    "DELETE FROM log WHERE space = $1 AND seq = ANY($2::bigint[])",
)
_NEWEST: Final = """
UPDATE person SET last_seq = coalesce((SELECT max(seq) FROM log WHERE space = $1 AND owner = person.name), 0),
       last_at = (SELECT max(at) FROM log WHERE space = $1 AND owner = person.name)
 WHERE space = $1 AND name = ANY($2::text[])
"""
_EMPTY_SESSIONS: Final = """
DELETE FROM session WHERE space = $1 AND id = ANY($2::bigint[]) AND NOT EXISTS (
    SELECT 1 FROM log l WHERE l.space = $1 AND l.thread = session.thread AND l.session = session.id)
"""
_OF_SESSIONS: Final = """
UPDATE session SET messages = l.messages, started_at = l.started_at, last_at = l.last_at, first_seq = l.first_seq,
       last_seq = l.last_seq
  FROM (SELECT s.id, count(*) AS messages, min(l.at) AS started_at, max(l.at) AS last_at, min(l.seq) AS first_seq,
               max(l.seq) AS last_seq
          FROM session s JOIN log l ON l.space = s.space AND l.thread = s.thread AND l.session = s.id
         WHERE s.space = $1 AND s.id = ANY($2::bigint[]) GROUP BY s.id) l
 WHERE session.space = $1 AND session.id = l.id
"""
_EMPTY_THREADS: Final = """
DELETE FROM thread WHERE space = $1 AND name = ANY($2::text[])
   AND NOT EXISTS (SELECT 1 FROM log l WHERE l.space = $1 AND l.thread = thread.name)
   AND NOT EXISTS (SELECT 1 FROM session s WHERE s.space = $1 AND s.thread = thread.name)
   AND NOT EXISTS (SELECT 1 FROM summary y WHERE y.space = $1 AND y.thread = thread.name)
"""
_IN_CHUNK: Final = "SELECT seq, session, thread FROM log WHERE space = $1 AND owner = $2 AND chunk = $3"
_ERASE_SUMMARIES: Final = (
    "DELETE FROM note_meaning WHERE space = $1 AND note IN (SELECT 2 * id FROM unnest($2::bigint[]) id)",
    "DELETE FROM summary_source WHERE space = $1 AND summary = ANY($2::bigint[])",
    "UPDATE summary SET replaces = NULL WHERE space = $1 AND replaces = ANY($2::bigint[])",
    "DELETE FROM summary WHERE space = $1 AND id = ANY($2::bigint[])",
)
_ERASE_MEMORIES: Final = (
    "DELETE FROM note_meaning WHERE space = $1 AND note IN (SELECT 2 * id + 1 FROM unnest($2::bigint[]) id)",
    "DELETE FROM memory_source WHERE space = $1 AND memory = ANY($2::bigint[])",
    "DELETE FROM memory_version WHERE space = $1 AND memory = ANY($2::bigint[])",
    """
    UPDATE memory_version SET was = jsonb_set(was::jsonb, '{superseded_by}', 'null')::json
     WHERE space = $1 AND (was ->> 'superseded_by')::bigint = ANY($2::bigint[])
    """,
    "UPDATE memory SET superseded_by = NULL WHERE space = $1 AND superseded_by = ANY($2::bigint[])",
    "DELETE FROM memory WHERE space = $1 AND id = ANY($2::bigint[])",
)


class Discarding(NamedTuple):
    """A discard in the space that it was found to have something to do in."""

    step: Discard
    space: str | None
    """None where nothing is old enough in any space."""


async def marks(queries: Queries, _: questions.Marks) -> dict[str, str]:
    """Return what is kept in mind about the store."""
    return dict(await queries.rows(_MARKS))


async def discardable(queries: Queries, question: questions.DiscardableCount) -> int:
    """Return how much is older than a moment."""
    count = "coalesce(sum(y.messages), 0)::bigint" if question.what == "messages" else "count(*)"
    moment_ = _moment(question.what, question.before)
    return sum([int(await queries.value(f"SELECT {count} {old}", moment_)) for old in _OLD[question.what]])


async def locate(queries: Queries, step: Discard) -> Discarding:
    """Find a space in which something is old enough."""
    for old in _OLD[step.what]:
        space = await queries.value(f"SELECT y.space {old} LIMIT 1", _moment(step.what, step.before))
        if space is not None:
            return Discarding(step, space)
    return Discarding(step, None)


async def discard(unit: Unit, located: Discarding) -> Discarded:
    """Remove some of what is older than a moment, in one space."""
    step, space = located
    if space is None:
        return Discarded(0)
    what, before = step.what, _moment(step.what, step.before)
    if what in _KEYS:
        keys = _KEYS[what]
        query = f"DELETE FROM {what} WHERE ({keys}) IN (SELECT {keys} {_OLD[what][0]} AND y.space = $2 ORDER BY {keys} LIMIT $3)"
        return Discarded(len(await unit.rows(f"{query} RETURNING 1", before, space, step.limit)))
    if what == "messages":
        return Discarded(await _messages(unit, step, space))
    if what == "versions":
        return Discarded(await _versions(unit, step, space))
    query = f"SELECT y.id, y.owner {_OLD[what][0]} AND y.space = $2 ORDER BY y.id LIMIT $3"
    found = await unit.rows(query, before, space, step.limit)
    for statement in _ERASE_SUMMARIES if what == "summaries" else _ERASE_MEMORIES:
        unit.later(statement, space, [number for number, _ in found])
    _note(unit, step, space, [owner for _, owner in found])
    return Discarded(len(found))


async def _messages(unit: Unit, step: Discard, space: str) -> int:
    """Remove whole archives, as many as have about so many messages together."""
    query = f"SELECT y.owner, y.chunks[1] {_ARCHIVES} AND y.space = $2 ORDER BY y.ended_at, y.id LIMIT $3"
    seqs: list[int] = []
    sessions: set[int] = set()
    threads: set[str] = set()
    owners: list[str] = []
    for owner, chunk in await unit.rows(query, step.before, space, step.limit):
        if len(seqs) >= step.limit:
            break
        found = await unit.rows(_IN_CHUNK, space, owner, chunk)
        seqs += [seq for seq, _, _ in found]
        sessions |= {session for _, session, _ in found}
        threads |= {thread for _, _, thread in found}
        owners += [owner] * len(found)
    for statement in (_OF_THREADS, _OF_PEOPLE, *_ERASE_MESSAGES):
        unit.later(statement, space, seqs)
    unit.later(_NEWEST, space, sorted(set(owners)))
    unit.later(_EMPTY_SESSIONS, space, sorted(sessions))
    unit.later(_OF_SESSIONS, space, sorted(sessions))
    unit.later(_EMPTY_THREADS, space, sorted(threads))
    unit.numbers[space].purges += 1  # a thread that went and comes back is not taken for the old one
    _note(unit, step, space, owners)
    return len(seqs)


async def _versions(unit: Unit, step: Discard, space: str) -> int:
    asked = (step.before, space, step.limit)
    facts = await unit.rows(f"SELECT y.owner, y.version {_FACTS} AND y.space = $2 ORDER BY 1, 2 LIMIT $3", *asked)
    for owner, version in facts:
        unit.later("DELETE FROM facts WHERE space = $1 AND owner = $2 AND version = $3", space, owner, version)
    query = f"SELECT y.memory, y.revision {_VERSIONS} AND y.space = $2 ORDER BY 1, 2 LIMIT $3"
    versions = await unit.rows(query, *asked)
    owned = "SELECT id, owner FROM memory WHERE space = $1 AND id = ANY($2::bigint[])"
    owners: dict[int, str] = dict(await unit.rows(owned, space, [memory for memory, _ in versions]))
    remove = "DELETE FROM memory_version WHERE space = $1 AND memory = $2 AND revision = $3"
    for memory, revision in versions:
        unit.later(remove, space, memory, revision)
    _note(unit, step, space, [*(owner for owner, _ in facts), *(owners[memory] for memory, _ in versions)])
    return len(facts) + len(versions)


def _note(unit: Unit, step: Discard, space: str, owners: list[str]) -> None:
    """Write down how much of whose went, and never what it said."""
    until = moment(step.before).date().isoformat()
    for owner, count in Counter(owners).items():
        scope = Scope.of(owner, space)
        unit.audit(scope, step.actor, "retention.purge", f"{count} {step.what}, older than {until}")


def _moment(what: Discardable, before: int) -> int | str:
    return moment(before).date().isoformat() if what == "spending" else before
