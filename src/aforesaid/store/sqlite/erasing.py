"""The writes that delete, in SQLite. What they free is overwritten with zeros."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import apsw

from aforesaid.store.rules import writes
from aforesaid.store.sqlite import rows
from aforesaid.store.sqlite.names import find_person
from aforesaid.store.sqlite.retention import ERASE_OLD, named
from aforesaid.store.sqlite.unit import Unit

_GONE: Final = "(SELECT value FROM json_each(:gone))"
_ERASE_MESSAGES: Final = f"""
UPDATE thread SET messages = thread.messages - l.messages, words = thread.words - l.words, revision = revision + 1
  FROM (SELECT thread, sum(shared) AS messages, sum(shared * words) AS words
          FROM log WHERE seq IN {_GONE} GROUP BY thread) l
 WHERE thread.id = l.thread;
UPDATE person SET messages = person.messages - l.messages, archived = person.archived - l.archived,
       turns = person.turns - l.turns, open_turns = person.open_turns - l.open_turns, words = person.words - l.words,
       revision = revision + 1
  FROM (SELECT owner, count(*) AS messages, sum(active = 0) AS archived, sum(role = 'user') AS turns,
               sum(role = 'user' AND chunk IS NULL) AS open_turns, sum(words) AS words
          FROM log WHERE seq IN {_GONE} GROUP BY owner) l
 WHERE person.id = l.owner;
INSERT INTO log_index (log_index, rowid, terms)
    SELECT 'delete', seq, index_terms(owner, thread, shared, text) FROM log WHERE seq IN {_GONE};
DELETE FROM vector WHERE seq IN {_GONE};
DELETE FROM memory_source WHERE seq IN {_GONE};
UPDATE log SET replaced = 0 WHERE seq IN (SELECT replaces FROM log WHERE seq IN {_GONE} AND replaces IS NOT NULL);
UPDATE log SET replaces = NULL WHERE replaces IN {_GONE};
DELETE FROM log WHERE seq IN {_GONE};
"""
_NEWEST: Final = """
UPDATE person SET last_seq = coalesce((SELECT max(seq) FROM log WHERE owner = :owner), 0),
       last_at = iif(last_at > :latest, last_at, (SELECT max(at) FROM log WHERE owner = :owner))
 WHERE id = :owner
"""
# The thread and the times let an index find a session's messages.
_OF_SESSION: Final = """
FROM log l WHERE l.thread = session.thread AND l.at BETWEEN session.started_at AND session.last_at
             AND l.session = session.id
"""
_COUNT_SESSIONS: Final = f"""
DELETE FROM session WHERE id IN {_GONE} AND NOT EXISTS (SELECT 1 {_OF_SESSION});
UPDATE session SET (messages, started_at, last_at, first_seq, last_seq) = (
       SELECT count(*), min(l.at), max(l.at), min(l.seq), max(l.seq) {_OF_SESSION})
 WHERE id IN {_GONE};
"""
_EMPTY_THREADS: Final = f"""
DELETE FROM thread WHERE id IN {_GONE} AND NOT EXISTS (SELECT 1 FROM log l WHERE l.thread = thread.id)
   AND NOT EXISTS (SELECT 1 FROM session s WHERE s.thread = thread.id)
   AND NOT EXISTS (SELECT 1 FROM summary y WHERE y.thread = thread.id);
"""
_ERASE_SUMMARIES: Final = f"""
INSERT INTO note_index (note_index, rowid, terms)
    SELECT 'delete', 2 * id, index_terms(owner, 0, 0, text) FROM summary WHERE id IN {_GONE};
DELETE FROM note_vector WHERE (embedder, owner, note) IN (
    SELECT e.id, y.owner, 2 * y.id FROM embedder e, summary y WHERE y.id IN {_GONE});
DELETE FROM summary_source WHERE summary IN {_GONE} OR source IN {_GONE};
UPDATE summary SET replaces = NULL WHERE replaces IN {_GONE};
DELETE FROM summary WHERE id IN {_GONE};
"""
_ERASE_MEMORIES: Final = f"""
INSERT INTO note_index (note_index, rowid, terms)
    SELECT 'delete', 2 * id + 1, index_terms(owner, 0, 0, text) FROM memory WHERE id IN {_GONE};
DELETE FROM note_vector WHERE (embedder, owner, note) IN (
    SELECT e.id, m.owner, 2 * m.id + 1 FROM embedder e, memory m WHERE m.id IN {_GONE});
DELETE FROM memory_source WHERE memory IN {_GONE};
DELETE FROM memory_version WHERE memory IN {_GONE};
UPDATE memory_version SET was = json_set(was, '$.superseded_by', NULL)
 WHERE memory IN (SELECT id FROM memory WHERE owner IN (SELECT owner FROM memory WHERE id IN {_GONE}))
   AND json_extract(was, '$.superseded_by') IN {_GONE};
UPDATE memory SET superseded_by = NULL WHERE superseded_by IN {_GONE};
DELETE FROM memory WHERE id IN {_GONE};
"""
_ERASE_NAMES: Final = f"""
DELETE FROM agenda WHERE space = :space AND user = :name;
DELETE FROM spending WHERE space = :space AND user = :name;
DELETE FROM audit WHERE space = :space AND user = :name;
DELETE FROM derived WHERE owner IN (SELECT id FROM person WHERE space = :space AND name IN {_GONE});
"""
_ERASE_PERSON: Final = """
DELETE FROM facts WHERE owner = :who;
DELETE FROM setting WHERE owner = :who;
DELETE FROM forgotten WHERE owner = :who;
UPDATE session SET opened_by = (SELECT owner FROM log WHERE seq = first_seq) WHERE opened_by = :who;
UPDATE person SET owner = 0, messages = 0, archived = 0, turns = 0, open_turns = 0, words = 0, last_seq = 0,
       last_at = NULL, last_chunk = 0, extracted = 0, revision = revision + 1 WHERE id = :who;
DELETE FROM person WHERE id = :who AND NOT EXISTS (SELECT 1 FROM log l WHERE l.author = :who);
"""


@contextmanager
def overwriting(connection: apsw.Connection) -> Iterator[None]:
    """Have what is deleted overwritten in the file."""
    before = connection.pragma("secure_delete")
    connection.pragma("secure_delete", 1)
    try:
        yield
    finally:
        connection.pragma("secure_delete", before)


@contextmanager
def _overwriting_words(connection: apsw.Connection) -> Iterator[None]:
    """Have the keyword index delete words at once; otherwise it only records that they are deleted."""
    with overwriting(connection):
        _set_index(connection, 1)
        yield
        _set_index(connection, 0)


def _set_index(connection: apsw.Connection, thorough: int) -> None:
    for table in ("log_index", "note_index"):
        connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('secure-delete', {thorough})")


def _erase_messages(unit: Unit, write: writes.EraseMessages) -> None:
    connection, gone = unit.connection, _listed(write.seqs)
    found = rows.every(connection.execute(f"SELECT session, thread, owner, at FROM log WHERE seq IN {_GONE}", gone))
    with _overwriting_words(connection):
        connection.execute(_ERASE_MESSAGES, gone)
        latest: dict[int, int] = {}
        for _, _, owner, at in found:
            latest[owner] = max(at, latest.get(owner, at))
        connection.executemany(_NEWEST, [{"owner": owner, "latest": at} for owner, at in latest.items()])
        connection.execute(_COUNT_SESSIONS, _listed({session for session, _, _, _ in found}))
        connection.execute(_EMPTY_THREADS, _listed({thread for _, thread, _, _ in found}))
    # It has the newest session of each thread.
    unit.names.forget()


def _erase_summaries(unit: Unit, write: writes.EraseSummaries) -> None:
    connection, gone = unit.connection, _listed(write.numbers)
    threads = rows.every(connection.execute(f"SELECT DISTINCT thread FROM summary WHERE id IN {_GONE}", gone))
    with _overwriting_words(connection):
        connection.execute(_ERASE_SUMMARIES, gone)
        connection.execute(_EMPTY_THREADS, _listed(thread for (thread,) in threads))
    unit.names.forget()


def _erase_memories(unit: Unit, write: writes.EraseMemories) -> None:
    with _overwriting_words(unit.connection):
        unit.connection.execute(_ERASE_MEMORIES, _listed(write.numbers))


def _erase_user(unit: Unit, write: writes.EraseUser) -> None:
    connection, (space, name) = unit.connection, write.scope[:2]
    with overwriting(connection):
        connection.execute(_ERASE_NAMES, {"space": space, "name": name, **_listed([name, *write.others])})
        connection.execute(_ERASE_PERSON, {"who": find_person(connection, space, name)})
    unit.names.forget()


def _erase_facts(unit: Unit, write: writes.EraseFacts) -> None:
    query = "DELETE FROM facts WHERE owner = (SELECT id FROM person WHERE space = ? AND name = ?) AND version = ?"
    _erase_rows(unit, query, [row[:3] for row in write.rows])


def _erase_memory_versions(unit: Unit, write: writes.EraseMemoryVersions) -> None:
    query = "DELETE FROM memory_version WHERE memory = ? AND revision = ?"
    _erase_rows(unit, query, [(row.number, row.revision) for row in write.rows])


def _erase_rows(unit: Unit, query: str, keys: Sequence[tuple[object, ...]]) -> None:
    with overwriting(unit.connection):
        unit.connection.executemany(query, keys)


def _erase_old_rows(unit: Unit, write: writes.EraseOldRows) -> int:
    with overwriting(unit.connection):
        unit.connection.execute(ERASE_OLD[write.table], {**named(write.table, write.before), "limit": write.limit})
    return unit.connection.changes()


def _listed(gone: Iterable[object]) -> dict[str, str]:
    return {"gone": json.dumps(list(gone))}


WRITES: Final[Mapping[type[writes.Write[Any]], Callable[[Unit, Any], Any]]] = {
    writes.EraseMessages: _erase_messages,
    writes.EraseSummaries: _erase_summaries,
    writes.EraseMemories: _erase_memories,
    writes.EraseUser: _erase_user,
    writes.EraseFacts: _erase_facts,
    writes.EraseMemoryVersions: _erase_memory_versions,
    writes.EraseOldRows: _erase_old_rows,
}
