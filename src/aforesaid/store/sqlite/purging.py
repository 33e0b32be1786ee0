"""Erasing a user: from every table in one transaction, then from every page of the file and of its log."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Final

import apsw

from aforesaid.domain.clock import now
from aforesaid.domain.scope import Scope
from aforesaid.domain.transfer import Purged
from aforesaid.errors import NotFound, StoreBusy, quoted
from aforesaid.store.sqlite import rows
from aforesaid.store.sqlite.connection import patience
from aforesaid.store.sqlite.names import Names, find_person
from aforesaid.store.sqlite.unit import Unit

_NOBODY: Final = -1
_WIPE: Final = "wipe"
"""The mark that is set with an erasure and removed once the file has been wiped."""

# What goes is written down in tables of this connection first, and taken out of all the others afterwards.
_GATHER: Final = """
CREATE TEMP TABLE gone_message AS
    SELECT l.seq, l.owner, l.thread, l.shared, l.at, l.chunk, length(l.text) AS characters FROM log l
     WHERE l.owner = :who
    UNION
    SELECT l.seq, l.owner, l.thread, l.shared, l.at, l.chunk, length(l.text) FROM log l
     WHERE l.author = :who AND l.author != l.owner AND l.role != :name;
CREATE UNIQUE INDEX temp.gone_message_by_seq ON gone_message (seq);
CREATE TEMP TABLE gone_day AS
    SELECT DISTINCT date(at / 1000000.0, 'unixepoch', step.value || ' days') AS day
      FROM gone_message, json_each('[-1, 0, 1]') step WHERE shared = 1;
CREATE TEMP TABLE gone_summary (id INTEGER PRIMARY KEY);
INSERT INTO gone_summary SELECT id FROM summary WHERE owner = :who;
INSERT OR IGNORE INTO gone_summary
    SELECT y.id FROM summary y JOIN person p ON p.id = y.owner
     WHERE p.space = :space AND y.kind = 'day' AND y.day IN (SELECT day FROM gone_day);
INSERT OR IGNORE INTO gone_summary
    SELECT y.id FROM gone_message g JOIN summary y ON y.owner = g.owner WHERE g.owner != :who
       AND CASE y.reach
             WHEN 'chunks' THEN g.chunk IN (SELECT value FROM json_each(y.chunks))
             WHEN 'sources' THEN 0
             ELSE g.seq BETWEEN y.first_seq AND y.last_seq AND g.at BETWEEN y.began_at AND y.ended_at
                  AND (y.reach = 'user' OR y.thread = g.thread)
           END;
CREATE TEMP TABLE gone_memory (id INTEGER PRIMARY KEY);
INSERT INTO gone_memory SELECT id FROM memory WHERE owner = :who;
INSERT OR IGNORE INTO gone_memory SELECT id FROM memory WHERE speaker = :who;
INSERT OR IGNORE INTO gone_memory SELECT memory FROM memory_version WHERE json_extract(was, '$.speaker') = :who;
INSERT OR IGNORE INTO gone_memory SELECT s.memory FROM gone_message g JOIN memory_source s ON s.seq = g.seq;
"""
# Those that stand on a summary, and the versions before and after it.
_CLOSURE: Final = """
INSERT OR IGNORE INTO gone_summary
    SELECT x.summary FROM gone_summary g JOIN summary_source x ON x.source = g.id
    UNION SELECT y.id FROM gone_summary g JOIN summary y ON y.replaces = g.id
    UNION SELECT y.replaces FROM gone_summary g JOIN summary y ON y.id = g.id WHERE y.replaces IS NOT NULL;
"""
_AFFECTED: Final = """
CREATE TEMP TABLE other AS
    SELECT owner AS id FROM gone_message WHERE owner != :who
    UNION SELECT y.owner FROM gone_summary g JOIN summary y ON y.id = g.id WHERE y.owner != :who
    UNION SELECT m.owner FROM gone_memory g JOIN memory m ON m.id = g.id WHERE m.owner != :who;
CREATE TEMP TABLE touched AS
    SELECT thread AS id FROM gone_message UNION SELECT y.thread FROM gone_summary g JOIN summary y ON y.id = g.id
    UNION SELECT thread FROM session WHERE opened_by = :who;
"""
_AGENDA: Final = """
DELETE FROM agenda WHERE space = :space AND user = :name;
UPDATE agenda SET messages = max(agenda.messages - g.messages, 0),
       characters = max(agenda.characters - g.characters, 0),
       waiting = min(waiting, max(agenda.messages - g.messages, 0))
  FROM (SELECT a.policy, a.user, a.thread, count(*) AS messages, sum(g.characters) AS characters
          FROM agenda a JOIN walk w ON w.policy = a.policy JOIN person p ON p.space = a.space AND p.name = a.user
          JOIN gone_message g ON g.owner = p.id AND g.seq <= w.up_to
          LEFT JOIN thread t ON t.space = a.space AND t.name = a.thread
         WHERE a.space = :space AND (a.thread = '' OR t.id = g.thread) GROUP BY a.policy, a.user, a.thread) g
 WHERE agenda.space = :space AND agenda.policy = g.policy AND agenda.user = g.user AND agenda.thread = g.thread
   AND agenda.day = '';
UPDATE agenda SET due_at = :now, failures = 0, error = NULL
 WHERE space = :space AND user IN (SELECT p.name FROM other o JOIN person p ON p.id = o.id);
UPDATE agenda SET due_at = :now, failures = 0, error = NULL, done_at = NULL, done_seq = 0
 WHERE policy = 'calendar' AND space = :space AND user = '' AND day != '' AND day IN (
       SELECT y.day FROM gone_summary g JOIN summary y ON y.id = g.id WHERE y.kind = 'day');
"""
_GIVE_BACK: Final = """
UPDATE log SET active = 1, chunk = NULL WHERE seq IN (
    SELECT l.seq FROM gone_summary g JOIN summary y ON y.id = g.id
      JOIN log l ON l.owner = y.owner AND l.chunk = json_extract(y.chunks, '$[0]')
     WHERE y.owner != :who AND y.reach = 'chunks' AND y.level = 1 AND y.rolled_back = 0 AND y.replaced = 0);
UPDATE summary SET active = 1 WHERE rolled_back = 0 AND replaced = 0 AND id NOT IN (SELECT id FROM gone_summary)
   AND id IN (SELECT x.source FROM gone_summary g JOIN summary y ON y.id = g.id
                JOIN summary_source x ON x.summary = y.id
               WHERE y.rolled_back = 0 AND y.replaced = 0 AND ((y.reach = 'chunks' AND y.level > 1)
                     OR (y.reach != 'chunks' AND y.kind IN ('rolling', 'history'))));
"""
_ERASE: Final = """
INSERT INTO log_index (log_index, rowid, terms)
    SELECT 'delete', l.seq, index_terms(l.owner, l.thread, l.shared, l.text)
      FROM gone_message g JOIN log l ON l.seq = g.seq;
INSERT INTO note_index (note_index, rowid, terms)
    SELECT 'delete', 2 * y.id, index_terms(y.owner, 0, 0, y.text) FROM gone_summary g JOIN summary y ON y.id = g.id;
INSERT INTO note_index (note_index, rowid, terms)
    SELECT 'delete', 2 * m.id + 1, index_terms(m.owner, 0, 0, m.text) FROM gone_memory g JOIN memory m ON m.id = g.id;
DELETE FROM note_vector WHERE note IN (SELECT 2 * id FROM gone_summary UNION ALL SELECT 2 * id + 1 FROM gone_memory);
DELETE FROM vector WHERE seq IN (SELECT seq FROM gone_message);
DELETE FROM memory_source WHERE memory IN (SELECT id FROM gone_memory) OR seq IN (SELECT seq FROM gone_message);
DELETE FROM memory_version WHERE memory IN (SELECT id FROM gone_memory);
UPDATE memory_version SET was = json_set(was, '$.superseded_by', NULL)
 WHERE json_extract(was, '$.superseded_by') IN (SELECT id FROM gone_memory);
UPDATE memory SET superseded_by = NULL WHERE superseded_by IN (SELECT id FROM gone_memory);
DELETE FROM memory WHERE id IN (SELECT id FROM gone_memory);
DELETE FROM summary_source WHERE summary IN (SELECT id FROM gone_summary) OR source IN (SELECT id FROM gone_summary);
UPDATE summary SET replaces = NULL WHERE id IN (SELECT id FROM gone_summary);
DELETE FROM summary WHERE id IN (SELECT id FROM gone_summary);
UPDATE log SET replaced = 0 WHERE seq IN (
    SELECT l.replaces FROM gone_message g JOIN log l ON l.seq = g.seq WHERE l.replaces IS NOT NULL);
UPDATE log SET replaces = NULL WHERE replaces IN (SELECT seq FROM gone_message);
DELETE FROM log WHERE seq IN (SELECT seq FROM gone_message);
DELETE FROM facts WHERE owner = :who;
DELETE FROM setting WHERE owner = :who;
DELETE FROM forgotten WHERE owner = :who;
DELETE FROM derived WHERE owner = :who OR owner IN (SELECT id FROM other);
DELETE FROM spending WHERE space = :space AND user = :name;
DELETE FROM audit WHERE space = :space AND user = :name;
"""
_COUNT: Final = """
UPDATE session SET messages = l.messages, started_at = l.started_at, last_at = l.last_at, first_seq = l.first_seq,
       last_seq = l.last_seq
  FROM (SELECT s.id, count(*) AS messages, min(l.at) AS started_at, max(l.at) AS last_at, min(l.seq) AS first_seq,
               max(l.seq) AS last_seq
          FROM touched t JOIN session s ON s.thread = t.id
          JOIN log l ON l.thread = t.id AND l.session = s.id GROUP BY s.id) l
 WHERE session.id = l.id;
DELETE FROM session WHERE thread IN (SELECT id FROM touched)
   AND NOT EXISTS (SELECT 1 FROM log l WHERE l.thread = session.thread AND l.session = session.id);
UPDATE session SET opened_by = (SELECT owner FROM log WHERE seq = first_seq) WHERE opened_by = :who;
DELETE FROM thread WHERE id IN (SELECT id FROM touched)
   AND NOT EXISTS (SELECT 1 FROM log l WHERE l.thread = thread.id)
   AND NOT EXISTS (SELECT 1 FROM summary y WHERE y.thread = thread.id);
UPDATE thread SET revision = revision + 1,
       messages = (SELECT count(*) FROM log l WHERE l.thread = thread.id AND l.shared = 1),
       words = (SELECT coalesce(sum(words), 0) FROM log l WHERE l.thread = thread.id AND l.shared = 1)
 WHERE id IN (SELECT id FROM touched);
UPDATE person SET revision = revision + 1, messages = l.messages, archived = l.archived, turns = l.turns,
       open_turns = l.open_turns, words = l.words, last_seq = l.last_seq, last_at = l.last_at
  FROM (SELECT o.id, count(l.seq) AS messages, coalesce(sum(l.active = 0), 0) AS archived,
               coalesce(sum(l.role = 'user'), 0) AS turns,
               coalesce(sum(l.role = 'user' AND l.chunk IS NULL), 0) AS open_turns, coalesce(sum(l.words), 0) AS words,
               coalesce(max(l.seq), 0) AS last_seq, max(l.at) AS last_at
          FROM other o LEFT JOIN log l ON l.owner = o.id GROUP BY o.id) l
 WHERE person.id = l.id;
UPDATE person SET owner = 0, messages = 0, archived = 0, turns = 0, open_turns = 0, words = 0, last_seq = 0,
       last_at = NULL, last_chunk = 0, extracted = 0, revision = revision + 1 WHERE id = :who;
DELETE FROM person WHERE id = :who AND NOT EXISTS (SELECT 1 FROM log l WHERE l.author = :who);
"""
_FORGET_NOTES: Final = """
DROP TABLE IF EXISTS temp.gone_message; DROP TABLE IF EXISTS temp.gone_day; DROP TABLE IF EXISTS temp.gone_summary;
DROP TABLE IF EXISTS temp.gone_memory; DROP TABLE IF EXISTS temp.other; DROP TABLE IF EXISTS temp.touched;
"""


def erase(connection: apsw.Connection, scope: Scope, actor: str) -> Purged:
    """Take a user out of every table, in one transaction."""
    # What is freed is overwritten with zeros, in the tables and in the lists of the keyword index.
    connection.pragma("secure_delete", 1)
    connection.execute("BEGIN IMMEDIATE")
    try:
        with thorough_index(connection):
            done = _erase(connection, scope, actor)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        connection.execute(_FORGET_NOTES)
        connection.pragma("secure_delete", 0)
    return done


def wipe_is_due(connection: apsw.Connection) -> bool:
    """Tell whether users were erased whose bytes may still lie between the rows, because `wipe` was interrupted."""
    return connection.execute("SELECT 1 FROM mark WHERE name = ?", (_WIPE,)).get is not None


def wipe(
    connection: apsw.Connection,
    path: Path,
    seconds: float,
    quiet: Callable[[], AbstractContextManager[None]],
    *,
    in_memory: bool,
) -> None:
    """Write the file anew without what lies between its rows, and empty the write-ahead log.

    Raises StoreBusy when another process reads the file as it was before; it is wiped at the next opening then.
    """
    for table in ("log_index", "note_index"):
        # Words of texts that were changed at some time are still in the lists, marked as gone.
        connection.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")
    # The copy that is made on the way is as large as the file; only where it would lie open, it is kept in memory.
    connection.pragma("temp_store", "MEMORY" if in_memory else "FILE")
    try:
        connection.execute("VACUUM")
    finally:
        connection.pragma("temp_store", "MEMORY")
    connection.set_busy_handler(patience(seconds))
    try:
        with quiet():
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            _sync_log(path)
            connection.execute("DELETE FROM mark WHERE name = ?", (_WIPE,))
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.BusyError:
        raise StoreBusy(
            f"the user is erased, but another process still reads {path} as it was before; "
            "stop that process and purge again, or open the file again, to clear the rest"
        ) from None


def _sync_log(path: Path) -> None:
    """Make the empty log durable. SQLite syncs the file itself, and not the log: a power cut could bring it back.

    No locks are on the log, so opening and closing it here drops none.
    """
    with suppress(FileNotFoundError):
        handle = os.open(path.with_name(path.name + "-wal"), os.O_RDWR)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _erase(connection: apsw.Connection, scope: Scope, actor: str) -> Purged:
    who = find_person(connection, scope.space, scope.user)
    names = {"who": _NOBODY if who is None else who, "space": scope.space, "name": scope.user, "now": now()}
    _run(connection, _GATHER, names)
    before = -1
    while (found := connection.execute("SELECT count(*) FROM gone_summary").get) != before:
        before = found
        _run(connection, _CLOSURE, names)
    messages, summaries, memories, others = rows.one(
        connection.execute(
            """
            SELECT (SELECT count(*) FROM gone_message), (SELECT count(*) FROM gone_summary),
                   (SELECT count(*) FROM gone_memory),
                   (SELECT count(*) FROM gone_summary g JOIN summary y ON y.id = g.id WHERE y.owner != :who)
                   + (SELECT count(*) FROM gone_memory g JOIN memory m ON m.id = g.id WHERE m.owner != :who)
            """,
            names,
        )
    )
    _refuse_strangers(connection, scope, who, messages)
    for part in (_AFFECTED, _AGENDA, _GIVE_BACK, _ERASE, _COUNT):
        _run(connection, part, names)
    connection.execute("INSERT OR IGNORE INTO mark (name, value) VALUES (?, 'due')", (_WIPE,))
    purged = Purged(messages, summaries, memories, others)
    Unit(connection, Names(connection)).audit(scope, actor, "purge", purged.counts)
    return purged


def _refuse_strangers(connection: apsw.Connection, scope: Scope, who: int | None, messages: int) -> None:
    owns = None if who is None else connection.execute("SELECT 1 FROM person WHERE id = ? AND owner = 1", (who,)).get
    query = "SELECT 1 FROM audit WHERE space = ? AND user = ? AND action = 'purge' LIMIT 1"
    if not owns and not messages and connection.execute(query, (scope.space, scope.user)).get is None:
        raise NotFound(f"there is no user {quoted(scope.user)} in the space {quoted(scope.space)}")


@contextmanager
def thorough_index(connection: apsw.Connection) -> Iterator[None]:
    """Have the keyword index take words out at once; otherwise it only notes that they are gone."""
    for table in ("log_index", "note_index"):
        connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('secure-delete', 1)")
    yield
    for table in ("log_index", "note_index"):
        connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('secure-delete', 0)")


def _run(connection: apsw.Connection, script: str, names: dict[str, object]) -> None:
    connection.execute(script, names)
