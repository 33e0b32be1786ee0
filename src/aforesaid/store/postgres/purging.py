"""Erasing a user from every table, in one transaction.

Rows that are deleted stay in the database's pages until they are vacuumed, and in its write-ahead log and backups until
those are thrown away: the operations guide says how to see to that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from aforesaid.domain.checks import moment
from aforesaid.domain.clock import now
from aforesaid.domain.scope import Scope
from aforesaid.domain.transfer import Purged
from aforesaid.errors import NotFound, quoted
from aforesaid.store.postgres.queries import Row
from aforesaid.store.postgres.unit import Unit

_KNOWN: Final = """
SELECT EXISTS (SELECT 1 FROM person WHERE space = $1 AND name = $2 AND owner)
    OR EXISTS (SELECT 1 FROM audit WHERE space = $1 AND owner = $2 AND action = 'purge')
"""
_MESSAGES: Final = """
SELECT seq, owner, thread, shared, at, chunk, length(text) FROM log
 WHERE space = $1 AND (owner = $2 OR (author = $2 AND role != $2))
"""
_OWN_SUMMARIES: Final = """
SELECT id FROM summary WHERE space = $1 AND (owner = $2 OR (kind = 'day' AND day = ANY($3::text[])))
"""
_MIXED_SUMMARIES: Final = """
SELECT DISTINCT y.id FROM unnest($2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::bigint[])
       AS g (seq, owner, thread, at, chunk) JOIN summary y ON y.space = $1 AND y.owner = g.owner
 WHERE CASE y.reach
         WHEN 'chunks' THEN g.chunk = ANY(y.chunks)
         WHEN 'sources' THEN false
         ELSE g.seq BETWEEN y.first_seq AND y.last_seq AND g.at BETWEEN y.began_at AND y.ended_at
              AND (y.reach = 'user' OR y.thread = g.thread)
       END
"""
# Those that stand on a summary, and the versions before and after it.
_CLOSURE: Final = """
SELECT summary FROM summary_source WHERE space = $1 AND source = ANY($2::bigint[])
UNION SELECT id FROM summary WHERE space = $1 AND replaces = ANY($2::bigint[])
UNION SELECT replaces FROM summary WHERE space = $1 AND id = ANY($2::bigint[]) AND replaces IS NOT NULL
"""
_MEMORIES: Final = """
SELECT id FROM memory WHERE space = $1 AND (owner = $2 OR speaker = $2)
UNION SELECT memory FROM memory_version WHERE space = $1 AND was ->> 'speaker' = $2
UNION SELECT memory FROM memory_source WHERE space = $1 AND seq = ANY($3::bigint[])
"""
_OF_WHOM: Final = """
SELECT 'summary', owner, thread, kind, day FROM summary WHERE space = $1 AND id = ANY($2::bigint[])
UNION ALL SELECT 'memory', owner, NULL, NULL, NULL FROM memory WHERE space = $1 AND id = ANY($3::bigint[])
"""
_OPENED: Final = "SELECT DISTINCT thread FROM session WHERE space = $1 AND opened_by = $2"

# $1 the space, $2 the user, $3 the messages, $4 the summaries, $5 the memories, $6 the other users, $7 the threads,
# $8 now, $9 the days
_AGENDA: Final = (
    "DELETE FROM agenda WHERE space = $1 AND owner = $2",
    """
    UPDATE agenda SET messages = greatest(agenda.messages - g.messages, 0),
           characters = greatest(agenda.characters - g.characters, 0),
           waiting = least(waiting, greatest(agenda.messages - g.messages, 0))
      FROM (SELECT a.policy, a.owner, a.thread, count(*) AS messages, sum(length(l.text)) AS characters
              FROM agenda a JOIN walk w ON w.space = a.space AND w.policy = a.policy
              JOIN log l ON l.space = a.space AND l.owner = a.owner AND l.seq <= w.up_to AND l.seq = ANY($3::bigint[])
             WHERE a.space = $1 AND (a.thread = '' OR a.thread = l.thread) GROUP BY a.policy, a.owner, a.thread) g
     WHERE agenda.space = $1 AND agenda.policy = g.policy AND agenda.owner = g.owner AND agenda.thread = g.thread
       AND agenda.day = ''
    """,
    """
    UPDATE agenda SET due_at = $8, failures = 0, error = NULL WHERE space = $1 AND owner = ANY($6::text[])
    """,
    """
    UPDATE agenda SET due_at = $8, failures = 0, error = NULL, done_at = NULL, done_seq = 0
     WHERE policy = 'calendar' AND space = $1 AND owner = '' AND day != '' AND day = ANY($9::text[])
    """,
)
_GIVE_BACK: Final = (
    """
    UPDATE log SET active = true, chunk = NULL FROM summary y
     WHERE y.space = $1 AND y.id = ANY($4::bigint[]) AND y.owner != $2 AND y.reach = 'chunks' AND y.level = 1
       AND NOT y.rolled_back AND NOT y.replaced AND log.space = $1 AND log.owner = y.owner AND log.chunk = y.chunks[1]
    """,
    """
    UPDATE summary SET active = true
     WHERE space = $1 AND NOT rolled_back AND NOT replaced AND id != ALL($4::bigint[]) AND id IN (
           SELECT x.source FROM summary y JOIN summary_source x ON x.space = y.space AND x.summary = y.id
            WHERE y.space = $1 AND y.id = ANY($4::bigint[]) AND NOT y.rolled_back AND NOT y.replaced
              AND ((y.reach = 'chunks' AND y.level > 1) OR (y.reach != 'chunks' AND y.kind IN ('rolling', 'history'))))
    """,
)
_ERASE: Final = (
    """
    DELETE FROM note_meaning WHERE space = $1 AND note IN (
        SELECT 2 * id FROM unnest($4::bigint[]) id UNION ALL SELECT 2 * id + 1 FROM unnest($5::bigint[]) id)
    """,
    "DELETE FROM meaning WHERE space = $1 AND seq = ANY($3::bigint[])",
    "DELETE FROM memory_source WHERE space = $1 AND (memory = ANY($5::bigint[]) OR seq = ANY($3::bigint[]))",
    "DELETE FROM memory_version WHERE space = $1 AND memory = ANY($5::bigint[])",
    """
    UPDATE memory_version SET was = jsonb_set(was::jsonb, '{superseded_by}', 'null')::json
     WHERE space = $1 AND (was ->> 'superseded_by')::bigint = ANY($5::bigint[])
    """,
    "UPDATE memory SET superseded_by = NULL WHERE space = $1 AND superseded_by = ANY($5::bigint[])",
    "DELETE FROM memory WHERE space = $1 AND id = ANY($5::bigint[])",
    "DELETE FROM summary_source WHERE space = $1 AND (summary = ANY($4::bigint[]) OR source = ANY($4::bigint[]))",
    "DELETE FROM summary WHERE space = $1 AND id = ANY($4::bigint[])",
    """
    UPDATE log SET replaced = false WHERE space = $1 AND seq IN (
        SELECT l.replaces FROM log l WHERE l.space = $1 AND l.seq = ANY($3::bigint[]) AND l.replaces IS NOT NULL)
    """,
    "UPDATE log SET replaces = NULL WHERE space = $1 AND replaces = ANY($3::bigint[])",
    "DELETE FROM log WHERE space = $1 AND seq = ANY($3::bigint[])",
    "DELETE FROM facts WHERE space = $1 AND owner = $2",
    "DELETE FROM setting WHERE space = $1 AND owner = $2",
    "DELETE FROM forgotten WHERE space = $1 AND owner = $2",
    "DELETE FROM derived WHERE space = $1 AND (owner = $2 OR owner = ANY($6::text[]))",
    "DELETE FROM spending WHERE space = $1 AND owner = $2",
    "DELETE FROM audit WHERE space = $1 AND owner = $2",
)
_COUNT: Final = (
    """
    UPDATE session SET messages = l.messages, started_at = l.started_at, last_at = l.last_at, first_seq = l.first_seq,
           last_seq = l.last_seq
      FROM (SELECT session, count(*) AS messages, min(at) AS started_at, max(at) AS last_at, min(seq) AS first_seq,
                   max(seq) AS last_seq
              FROM log WHERE space = $1 AND thread = ANY($7::text[]) GROUP BY session) l
     WHERE session.space = $1 AND session.id = l.session
    """,
    """
    DELETE FROM session WHERE space = $1 AND thread = ANY($7::text[]) AND NOT EXISTS (
        SELECT 1 FROM log l WHERE l.space = $1 AND l.thread = session.thread AND l.session = session.id)
    """,
    """
    UPDATE session SET opened_by = (SELECT owner FROM log l WHERE l.space = $1 AND l.seq = first_seq)
     WHERE space = $1 AND opened_by = $2
    """,
    """
    DELETE FROM thread WHERE space = $1 AND name = ANY($7::text[])
       AND NOT EXISTS (SELECT 1 FROM log l WHERE l.space = $1 AND l.thread = thread.name)
       AND NOT EXISTS (SELECT 1 FROM summary y WHERE y.space = $1 AND y.thread = thread.name)
    """,
    """
    UPDATE thread SET revision = revision + 1,
           messages = (SELECT count(*) FROM log l WHERE l.space = $1 AND l.thread = thread.name AND l.shared),
           words = (SELECT coalesce(sum(words), 0) FROM log l WHERE l.space = $1 AND l.thread = thread.name AND l.shared)
     WHERE space = $1 AND name = ANY($7::text[])
    """,
    """
    UPDATE person SET revision = revision + 1, messages = l.messages, archived = l.archived, turns = l.turns,
           open_turns = l.open_turns, words = l.words, last_seq = l.last_seq, last_at = l.last_at
      FROM (SELECT o.name, count(l.seq) AS messages, count(*) FILTER (WHERE NOT l.active) AS archived,
                   count(*) FILTER (WHERE l.role = 'user') AS turns,
                   count(*) FILTER (WHERE l.role = 'user' AND l.chunk IS NULL) AS open_turns,
                   coalesce(sum(l.words), 0) AS words, coalesce(max(l.seq), 0) AS last_seq, max(l.at) AS last_at
              FROM unnest($6::text[]) o (name) LEFT JOIN log l ON l.space = $1 AND l.owner = o.name GROUP BY o.name) l
     WHERE person.space = $1 AND person.name = l.name
    """,
    """
    UPDATE person SET owner = false, messages = 0, archived = 0, turns = 0, open_turns = 0, words = 0, last_seq = 0,
           last_at = NULL, last_chunk = 0, extracted = 0, revision = revision + 1 WHERE space = $1 AND name = $2
    """,
    """
    DELETE FROM person WHERE space = $1 AND name = $2
       AND NOT EXISTS (SELECT 1 FROM log l WHERE l.space = $1 AND l.author = $2)
    """,
)


@dataclass(slots=True)
class _Gone:
    """What is to be erased, and whom it touches."""

    messages: list[Row]
    summaries: set[int] = field(default_factory=set)
    memories: set[int] = field(default_factory=set)
    others: set[str] = field(default_factory=set)
    threads: set[str] = field(default_factory=set)
    days: set[str] = field(default_factory=set)
    of_others: int = 0


async def erase(unit: Unit, scope: Scope, actor: str) -> Purged:
    """Take a user out of every table."""
    here = scope.space, scope.user
    [(known,)], found = await unit.begin((_KNOWN, here), (_MESSAGES, here))
    if not known and not found:
        raise NotFound(f"there is no user {quoted(scope.user)} in the space {quoted(scope.space)}")
    gone = _Gone(found)
    await _gather_notes(unit, scope, gone)
    await _gather_touched(unit, scope, gone)
    lists = ([row[0] for row in found], sorted(gone.summaries), sorted(gone.memories))
    values = (*here, *lists, sorted(gone.others), sorted(gone.threads), now(), sorted(gone.days))
    for statement in (*_AGENDA, *_GIVE_BACK, *_ERASE, *_COUNT):
        used = max(number for number in range(1, len(values) + 1) if f"${number}" in statement)
        unit.later(_typed(statement, used), *values[:used])
    unit.numbers[scope.space].purges += 1
    purged = Purged(len(found), len(gone.summaries), len(gone.memories), gone.of_others)
    unit.audit(scope, actor, "purge", purged.counts)
    return purged


async def _gather_notes(unit: Unit, scope: Scope, gone: _Gone) -> None:
    here, messages = (scope.space, scope.user), gone.messages
    # A day is one of some time zone: the days before and after may have read the message too.
    days = {
        (moment(at) + timedelta(days=step)).date().isoformat()
        for _, _, _, shared, at, _, _ in messages
        if shared and _FIRST_DAY <= moment(at) <= _LAST_DAY
        for step in (-1, 0, 1)
    }
    mixed = [row for row in messages if row[1] != scope.user]
    columns = [[row[place] for row in mixed] for place in (0, 1, 2, 4, 5)]
    own, others, memories = await unit.together(
        (_OWN_SUMMARIES, (*here, sorted(days))),
        (_MIXED_SUMMARIES, (scope.space, *columns)),
        (_MEMORIES, (*here, [row[0] for row in messages])),
    )
    gone.memories = {number for (number,) in memories}
    new = {number for (number,) in (*own, *others)}
    while new:
        gone.summaries |= new
        new = {number for (number,) in await unit.rows(_CLOSURE, scope.space, sorted(new))} - gone.summaries


async def _gather_touched(unit: Unit, scope: Scope, gone: _Gone) -> None:
    whose, opened = await unit.together(
        (_OF_WHOM, (scope.space, sorted(gone.summaries), sorted(gone.memories))), (_OPENED, (scope.space, scope.user))
    )
    gone.others = {row[1] for row in (*gone.messages, *whose)} - {scope.user}
    gone.threads = {row[2] for row in gone.messages} | {row[2] for row in whose if row[0] == "summary"}
    gone.threads |= {thread for (thread,) in opened}
    gone.days = {day for _, _, _, kind, day in whose if kind == "day"}
    gone.of_others = sum(row[1] != scope.user for row in whose)


_TYPES: Final = ("text", "text", "bigint[]", "bigint[]", "bigint[]", "text[]", "text[]", "bigint", "text[]")
_FIRST_DAY: Final = datetime(1, 1, 3, tzinfo=UTC)
_LAST_DAY: Final = datetime(9999, 12, 29, tzinfo=UTC)


def _typed(statement: str, used: int) -> str:
    """Say of which type the values are, also of those that a statement does not look at."""
    types = ", ".join(f"${place}::{kind}" for place, kind in enumerate(_TYPES[:used], 1))
    head, _, rest = statement.strip().partition(" ")
    return f"WITH bound AS (SELECT {types}) {head} {rest}"
