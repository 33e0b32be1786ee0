"""The writes that delete, in PostgreSQL.

Deleted rows stay in the database's pages until it vacuums them, and in its write-ahead log and backups until those are
removed: the operations guide says what to do about that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from aforesaid.store.postgres.retention import KEYS, OLD, moment_of
from aforesaid.store.postgres.unit import Unit
from aforesaid.store.rules import writes

# In the statements below, $1 is the space and $2 what is deleted.
_ERASE_MESSAGES: Final = (
    """
    UPDATE thread SET messages = thread.messages - l.messages, words = thread.words - l.words, revision = revision + 1
      FROM (SELECT thread, count(*) FILTER (WHERE shared) AS messages,
                   coalesce(sum(words) FILTER (WHERE shared), 0) AS words
              FROM log WHERE space = $1 AND seq = ANY($2::bigint[]) GROUP BY thread) l
     WHERE thread.space = $1 AND thread.name = l.thread
    """,
    """
    UPDATE person SET messages = person.messages - l.messages, archived = person.archived - l.archived,
           turns = person.turns - l.turns, open_turns = person.open_turns - l.open_turns,
           words = person.words - l.words, revision = revision + 1
      FROM (SELECT owner, count(*) AS messages, count(*) FILTER (WHERE NOT active) AS archived,
                   count(*) FILTER (WHERE role = 'user') AS turns,
                   count(*) FILTER (WHERE role = 'user' AND chunk IS NULL) AS open_turns, sum(words) AS words
              FROM log WHERE space = $1 AND seq = ANY($2::bigint[]) GROUP BY owner) l
     WHERE person.space = $1 AND person.name = l.owner
    """,
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
_COUNT_SESSIONS: Final = """
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
_ERASE_SUMMARIES: Final = (
    "DELETE FROM note_meaning WHERE space = $1 AND note IN (SELECT 2 * id FROM unnest($2::bigint[]) id)",
    "DELETE FROM summary_source WHERE space = $1 AND (summary = ANY($2::bigint[]) OR source = ANY($2::bigint[]))",
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
_ERASE_USER: Final = (
    *(
        f"DELETE FROM {table} WHERE space = $1 AND owner = $2"
        for table in ("agenda", "facts", "setting", "forgotten", "spending", "audit")
    ),
    """
    UPDATE session SET opened_by = (SELECT owner FROM log l WHERE l.space = $1 AND l.seq = first_seq)
     WHERE space = $1 AND opened_by = $2
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
_ERASE_DERIVED: Final = "DELETE FROM derived WHERE space = $1 AND owner = ANY($2::text[])"
_ERASE_FACTS: Final = "DELETE FROM facts WHERE space = $1 AND owner = $2 AND version = $3"
_ERASE_VERSION: Final = "DELETE FROM memory_version WHERE space = $1 AND memory = $2 AND revision = $3"


def _erase(unit: Unit, statements: Sequence[str], space: str, gone: object) -> None:
    for statement in statements:
        unit.later(statement, space, gone)


async def _erase_messages(unit: Unit, write: writes.EraseMessages) -> None:
    space, seqs = write.space, list(write.seqs)
    query = "SELECT DISTINCT session, thread, owner FROM log WHERE space = $1 AND seq = ANY($2::bigint[])"
    found = await unit.rows(query, space, seqs)
    sessions, threads, owners = (sorted({row[place] for row in found}) for place in range(3))
    _erase(unit, _ERASE_MESSAGES, space, seqs)
    unit.later(_NEWEST, space, owners)
    _erase(unit, (_EMPTY_SESSIONS, _COUNT_SESSIONS), space, sessions)
    _drop_empty(unit, space, threads)


async def _erase_summaries(unit: Unit, write: writes.EraseSummaries) -> None:
    space, numbers = write.space, list(write.numbers)
    query = "SELECT DISTINCT thread FROM summary WHERE space = $1 AND id = ANY($2::bigint[])"
    threads = [thread for (thread,) in await unit.rows(query, space, numbers)]
    _erase(unit, _ERASE_SUMMARIES, space, numbers)
    _drop_empty(unit, space, threads)


def _drop_empty(unit: Unit, space: str, threads: list[str]) -> None:
    unit.later(_EMPTY_THREADS, space, threads)
    # A thread that is dropped and comes back must not be taken for the old one.
    unit.numbers[space].purges += 1


def _erase_memories(unit: Unit, write: writes.EraseMemories) -> None:
    _erase(unit, _ERASE_MEMORIES, write.space, list(write.numbers))


def _erase_user(unit: Unit, write: writes.EraseUser) -> None:
    space, user = write.scope[:2]
    _erase(unit, _ERASE_USER, space, user)
    unit.later(_ERASE_DERIVED, space, [user, *write.others])
    unit.numbers[space].purges += 1


def _erase_facts(unit: Unit, write: writes.EraseFacts) -> None:
    for row in write.rows:
        unit.later(_ERASE_FACTS, row.space, row.user, row.number)


def _erase_memory_versions(unit: Unit, write: writes.EraseMemoryVersions) -> None:
    for row in write.rows:
        unit.later(_ERASE_VERSION, row.space, row.number, row.revision)


async def _erase_old_rows(unit: Unit, write: writes.EraseOldRows) -> int:
    keys, table = KEYS[write.table], write.table
    old = f"SELECT {keys} {OLD[table][0]} AND y.space = $2 ORDER BY {keys} LIMIT $3"
    query = f"DELETE FROM {table} WHERE ({keys}) IN ({old}) RETURNING 1"
    return len(await unit.rows(query, moment_of(table, write.before), write.space, write.limit))


WRITES: Final[Mapping[type[writes.Write[Any]], Callable[[Unit, Any], Any | Awaitable[Any]]]] = {
    writes.EraseMessages: _erase_messages,
    writes.EraseSummaries: _erase_summaries,
    writes.EraseMemories: _erase_memories,
    writes.EraseUser: _erase_user,
    writes.EraseFacts: _erase_facts,
    writes.EraseMemoryVersions: _erase_memory_versions,
    writes.EraseOldRows: _erase_old_rows,
}
