"""Removing what has been there for long enough, and marks of the store itself."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import apsw

from aforesaid.domain.checks import moment
from aforesaid.domain.clock import now
from aforesaid.domain.retention import Discard, Discardable, Discarded
from aforesaid.store import questions
from aforesaid.store.sqlite import rows
from aforesaid.store.sqlite.purging import thorough_index
from aforesaid.store.sqlite.unit import Unit

_ARCHIVES: Final = """
FROM summary y WHERE y.level = 1 AND y.reach = 'chunks' AND y.rolled_back = 0 AND y.replaced = 0
 AND y.ended_at < :before
 AND EXISTS (SELECT 1 FROM log l WHERE l.chunk = json_extract(y.chunks, '$[0]') AND l.owner = y.owner)
"""
_SUMMARIES: Final = """
FROM summary y WHERE (y.replaced = 1 OR y.rolled_back = 1) AND y.active = 0 AND y.created_at < :before
 AND NOT EXISTS (SELECT 1 FROM summary_source x WHERE x.source = y.id)
"""
_MEMORIES: Final = """
FROM memory m WHERE m.active = 0 AND m.state != 'quarantined'
 AND coalesce((SELECT max(v.at) FROM memory_version v WHERE v.memory = m.id), m.created_at) < :before
"""
# All versions up to one that had been replaced by then, so that what is left has no gaps.
_FACTS: Final = """
FROM facts f WHERE f.version < (SELECT max(g.version) FROM facts g WHERE g.owner = f.owner AND g.created_at < :before)
"""
_VERSIONS: Final = """
FROM memory_version v
WHERE v.revision <= (SELECT max(w.revision) FROM memory_version w WHERE w.memory = v.memory AND w.at < :before)
"""
_COUNTS: Final[dict[Discardable, str]] = {
    "messages": f"SELECT coalesce(sum(y.messages), 0) {_ARCHIVES}",
    "summaries": f"SELECT count(*) {_SUMMARIES}",
    "memories": f"SELECT count(*) {_MEMORIES}",
    "versions": f"SELECT (SELECT count(*) {_FACTS}) + (SELECT count(*) {_VERSIONS})",
    "derived": "SELECT count(*) FROM derived WHERE at < :before",
    "audit": "SELECT count(*) FROM audit WHERE at < :before",
    "spending": "SELECT count(*) FROM spending WHERE day < :day",
}
_PLAIN: Final = {
    "derived": """
        DELETE FROM derived WHERE (owner, kind) IN (SELECT owner, kind FROM derived WHERE at < :before LIMIT :limit)
    """,
    "audit": "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < :before ORDER BY id LIMIT :limit)",
    "spending": """
        DELETE FROM spending WHERE (day, space, user) IN (
            SELECT day, space, user FROM spending WHERE day < :day LIMIT :limit)
    """,
}
_GOING: Final = "seq IN (SELECT value FROM json_each(:going))"
_ERASE_MESSAGES: Final = f"""
INSERT INTO log_index (log_index, rowid, terms)
    SELECT 'delete', seq, index_terms(owner, thread, shared, text) FROM log WHERE {_GOING};
DELETE FROM vector WHERE {_GOING};
DELETE FROM memory_source WHERE {_GOING};
UPDATE log SET replaced = 0 WHERE seq IN (SELECT replaces FROM log WHERE {_GOING} AND replaces IS NOT NULL);
UPDATE log SET replaces = NULL WHERE replaces IN (SELECT value FROM json_each(:going));
"""
_OF_THREADS: Final = f"""
UPDATE thread SET messages = thread.messages - l.messages, words = thread.words - l.words, revision = revision + 1
  FROM (SELECT thread, sum(shared) AS messages, sum(shared * words) AS words FROM log WHERE {_GOING} GROUP BY thread) l
 WHERE thread.id = l.thread
"""
_OF_PERSON: Final = f"""
UPDATE person SET messages = person.messages - l.messages, archived = archived - l.messages,
       turns = person.turns - l.turns, words = person.words - l.words, revision = revision + 1
  FROM (SELECT count(*) AS messages, sum(role = 'user') AS turns, sum(words) AS words FROM log WHERE {_GOING}) l
 WHERE person.id = :owner
"""
_NEWEST: Final = """
UPDATE person SET last_seq = coalesce((SELECT max(seq) FROM log WHERE owner = :owner), 0),
       last_at = iif(last_at > :latest, last_at, (SELECT max(at) FROM log WHERE owner = :owner))
 WHERE id = :owner
"""
# The thread and the times let an index find a session's messages.
_OF_SESSION: Final = """
UPDATE session SET (messages, started_at, last_at, first_seq, last_seq) = (
       SELECT count(*), min(l.at), max(l.at), min(l.seq), max(l.seq) FROM log l
        WHERE l.thread = session.thread AND l.at BETWEEN session.started_at AND session.last_at
          AND l.session = session.id)
 WHERE id = :session AND EXISTS (
       SELECT 1 FROM log l WHERE l.thread = session.thread AND l.at BETWEEN session.started_at AND session.last_at
          AND l.session = session.id)
"""
_EMPTY_SESSION: Final = """
DELETE FROM session WHERE id = :session AND NOT EXISTS (
       SELECT 1 FROM log l WHERE l.thread = session.thread AND l.at BETWEEN session.started_at AND session.last_at
          AND l.session = session.id)
"""
_EMPTY_THREAD: Final = """
DELETE FROM thread WHERE id = :thread AND NOT EXISTS (SELECT 1 FROM log l WHERE l.thread = :thread)
   AND NOT EXISTS (SELECT 1 FROM session s WHERE s.thread = :thread)
   AND NOT EXISTS (SELECT 1 FROM summary y WHERE y.thread = :thread)
"""
_ERASE_SUMMARIES: Final = """
INSERT INTO note_index (note_index, rowid, terms)
    SELECT 'delete', 2 * id, index_terms(owner, 0, 0, text) FROM summary
     WHERE id IN (SELECT value FROM json_each(:going));
DELETE FROM note_vector WHERE (embedder, owner, note) IN (
    SELECT e.id, y.owner, 2 * y.id FROM embedder e, summary y WHERE y.id IN (SELECT value FROM json_each(:going)));
DELETE FROM summary_source WHERE summary IN (SELECT value FROM json_each(:going));
UPDATE summary SET replaces = NULL WHERE replaces IN (SELECT value FROM json_each(:going));
DELETE FROM summary WHERE id IN (SELECT value FROM json_each(:going));
"""
_ERASE_MEMORIES: Final = """
INSERT INTO note_index (note_index, rowid, terms)
    SELECT 'delete', 2 * id + 1, index_terms(owner, 0, 0, text) FROM memory
     WHERE id IN (SELECT value FROM json_each(:going));
DELETE FROM note_vector WHERE (embedder, owner, note) IN (
    SELECT e.id, m.owner, 2 * m.id + 1 FROM embedder e, memory m WHERE m.id IN (SELECT value FROM json_each(:going)));
DELETE FROM memory_source WHERE memory IN (SELECT value FROM json_each(:going));
DELETE FROM memory_version WHERE memory IN (SELECT value FROM json_each(:going));
UPDATE memory_version SET was = json_set(was, '$.superseded_by', NULL) WHERE memory IN (
    SELECT id FROM memory WHERE owner IN (
        SELECT owner FROM memory WHERE id IN (SELECT value FROM json_each(:going))))
   AND json_extract(was, '$.superseded_by') IN (SELECT value FROM json_each(:going));
UPDATE memory SET superseded_by = NULL WHERE superseded_by IN (SELECT value FROM json_each(:going));
DELETE FROM memory WHERE id IN (SELECT value FROM json_each(:going));
"""
_AUDIT: Final = """
INSERT INTO audit (at, space, user, actor, action, subject) SELECT :now, space, name, :actor, :action, :subject
  FROM person WHERE id = :owner
"""


def marks(connection: apsw.Connection, _: questions.Marks) -> dict[str, str]:
    """Return what is kept in mind about the store."""
    return dict(rows.every(connection.execute("SELECT name, value FROM mark")))


def discardable(connection: apsw.Connection, question: questions.DiscardableCount) -> int:
    """Return how much is older than a moment."""
    count: int = connection.execute(_COUNTS[question.what], _named(question.what, question.before)).get
    return count


def discard(unit: Unit, step: Discard) -> Discarded:
    """Remove some of what is older than a moment."""
    connection, what = unit.connection, step.what
    if not discardable(connection, questions.DiscardableCount(what, step.before)):
        return Discarded(0)
    named = _named(what, step.before)
    with _overwritten(connection):
        if what in _PLAIN:
            connection.execute(_PLAIN[what], named | {"limit": step.limit})
            return Discarded(connection.changes())
        if what == "messages":
            return Discarded(_messages(unit, step))
        if what == "versions":
            return Discarded(_versions(unit, step))
        alias, source = ("y", _SUMMARIES) if what == "summaries" else ("m", _MEMORIES)
        query = f"SELECT {alias}.id, {alias}.owner {source} ORDER BY {alias}.id LIMIT :limit"
        found = rows.every(connection.execute(query, named | {"limit": step.limit}))
        script = _ERASE_SUMMARIES if what == "summaries" else _ERASE_MEMORIES
        connection.execute(script, {"going": json.dumps([number for number, _ in found])})
        _note(unit, step, [owner for _, owner in found])
        return Discarded(len(found))


def _named(what: Discardable, before: int) -> dict[str, object]:
    return {"day": moment(before).date().isoformat()} if what == "spending" else {"before": before}


def _messages(unit: Unit, step: Discard) -> int:
    """Remove whole archives, as many as have about so many messages together."""
    query = f"SELECT y.owner, json_extract(y.chunks, '$[0]') {_ARCHIVES} ORDER BY y.ended_at, y.id"
    gone = 0
    owners: list[int] = []
    # Read before anything is removed: what is being read must not change.
    for owner, chunk in rows.every(unit.connection.execute(f"{query} LIMIT :limit", _archives(step))):
        if gone >= step.limit:
            break
        count = _archive(unit.connection, owner, chunk)
        owners += [owner] * count
        gone += count
    # The writer remembers the latest session of a thread, which may be gone.
    unit.names.forget()
    _note(unit, step, owners)
    return gone


def _archives(step: Discard) -> dict[str, object]:
    return {"before": step.before, "limit": step.limit}


def _archive(connection: apsw.Connection, owner: int, chunk: int) -> int:
    query = "SELECT seq, session, at, thread FROM log WHERE chunk = ? AND owner = ?"
    found = rows.every(connection.execute(query, (chunk, owner)))
    going = {"going": json.dumps([seq for seq, *_ in found])}
    connection.execute(_OF_THREADS, going)
    connection.execute(_OF_PERSON, going | {"owner": owner})
    connection.execute(_ERASE_MESSAGES, going)
    connection.execute(f"DELETE FROM log WHERE {_GOING}", going)
    connection.execute(_NEWEST, {"owner": owner, "latest": max(at for _, _, at, _ in found)})
    for session in {session for _, session, _, _ in found}:
        connection.execute(_EMPTY_SESSION, {"session": session})
        connection.execute(_OF_SESSION, {"session": session})
    for thread in {thread for _, _, _, thread in found}:
        connection.execute(_EMPTY_THREAD, {"thread": thread})
    return len(found)


def _versions(unit: Unit, step: Discard) -> int:
    connection, named = unit.connection, {"before": step.before, "limit": step.limit}
    facts = rows.every(connection.execute(f"SELECT f.owner, f.version {_FACTS} ORDER BY 1, 2 LIMIT :limit", named))
    connection.executemany("DELETE FROM facts WHERE owner = ? AND version = ?", facts)
    query = f"SELECT v.memory, v.revision {_VERSIONS} ORDER BY 1, 2 LIMIT :limit"
    versions = rows.every(connection.execute(query, named))
    owners = [connection.execute("SELECT owner FROM memory WHERE id = ?", (memory,)).get for memory, _ in versions]
    connection.executemany("DELETE FROM memory_version WHERE memory = ? AND revision = ?", versions)
    _note(unit, step, [*(owner for owner, _ in facts), *owners])
    return len(facts) + len(versions)


def _note(unit: Unit, step: Discard, owners: list[int]) -> None:
    """Write down how much of whose went, and never what it said."""
    until = moment(step.before).date().isoformat()
    for owner, count in Counter(owners).items():
        subject = f"{count} {step.what}, older than {until}"
        unit.connection.execute(
            _AUDIT,
            {"now": now(), "actor": step.actor, "action": "retention.purge", "subject": subject, "owner": owner},
        )


@contextmanager
def _overwritten(connection: apsw.Connection) -> Iterator[None]:
    """Have what is removed overwritten in the file, in the tables and in the keyword index."""
    connection.pragma("secure_delete", 1)
    try:
        with thorough_index(connection):
            yield
    finally:
        connection.pragma("secure_delete", 0)
