"""Checking everything that is stored against everything else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import apsw

from aforesaid.domain.message import message_hash
from aforesaid.store.contract import Progress
from aforesaid.store.records import Row

_PAGE: Final = 2_000

_FOR_HASHES: Final = """
SELECT l.seq, CAST(o.space AS BLOB), CAST(o.name AS BLOB), CAST(t.name AS BLOB), CAST(l.given_id AS BLOB), CAST(l.role AS BLOB),
       CAST(a.name AS BLOB), CAST(l.name AS BLOB), CAST(l.text AS BLOB), l.at, l.stored_at, l.hash
  FROM log l JOIN person o ON o.id = l.owner JOIN person a ON a.id = l.author JOIN thread t ON t.id = l.thread
 WHERE l.seq > ? ORDER BY l.seq LIMIT ?
"""

_COUNTS: Final = (
    (
        "the counts of user",
        """
        SELECT p.space || '/' || p.name FROM person p LEFT JOIN (
            SELECT owner, count(*) AS messages, sum(active = 0) AS archived, sum(role = 'user') AS turns,
                   sum(role = 'user' AND chunk IS NULL) AS open_turns, sum(words) AS words, max(seq) AS last_seq,
                   max(at) AS last_at, max(chunk) AS last_chunk
              FROM log GROUP BY owner
        ) l ON l.owner = p.id
        WHERE (p.messages, p.archived, p.turns, p.open_turns, p.words, p.last_seq)
              != (coalesce(l.messages, 0), coalesce(l.archived, 0), coalesce(l.turns, 0), coalesce(l.open_turns, 0),
                  coalesce(l.words, 0), coalesce(l.last_seq, 0))
           OR p.last_at IS NOT l.last_at OR p.last_chunk < coalesce(l.last_chunk, 0)
           OR (p.owner = 0 AND coalesce(l.messages, 0) > 0)
        """,
    ),
    (
        "the counts of thread",
        """
        SELECT t.space || '/' || t.name FROM thread t
          LEFT JOIN (SELECT thread, count(*) AS messages, sum(words) AS words FROM log WHERE shared = 1 GROUP BY thread) l
                 ON l.thread = t.id
         WHERE (t.messages, t.words) != (coalesce(l.messages, 0), coalesce(l.words, 0))
        """,
    ),
    (
        "the counts of session",
        """
        SELECT s.name FROM session s
          LEFT JOIN (SELECT session, count(*) AS messages, min(at) AS started_at, max(at) AS last_at, min(seq) AS first_seq,
                            max(seq) AS last_seq, min(thread) AS low, max(thread) AS high FROM log GROUP BY session) l
                 ON l.session = s.id
         WHERE (s.messages, s.started_at, s.last_at, s.first_seq, s.last_seq, s.thread, s.thread)
               IS NOT (l.messages, l.started_at, l.last_at, l.first_seq, l.last_seq, l.low, l.high)
        """,
    ),
)

# Where old archives have been removed, more was counted and covered than is there: their summaries stay.
_EMPTIED: Final = """
SELECT e.owner FROM summary e WHERE e.level = 1 AND e.rolled_back = 0 AND e.reach = 'chunks'
   AND NOT EXISTS (SELECT 1 FROM log l WHERE l.chunk = json_extract(e.chunks, '$[0]') AND l.owner = e.owner)
"""
_WALKED_PAST: Final = """
(SELECT count(*) FROM log l WHERE l.owner = p.id AND l.seq <= w.up_to AND (a.thread = '' OR l.thread = t.id))
"""
_COVERED: Final = """
(SELECT count(*) FROM log l WHERE l.owner = y.owner AND l.seq BETWEEN y.first_seq AND y.last_seq
    AND l.at BETWEEN y.began_at AND y.ended_at AND (y.reach = 'user' OR l.thread = y.thread))
"""

_AGENDA: Final = (
    (
        "the messages counted for the summaries of",
        f"""
        SELECT a.space || '/' || a.user || '/' || a.thread FROM agenda a JOIN walk w ON w.policy = a.policy
          JOIN person p ON p.space = a.space AND p.name = a.user
          LEFT JOIN thread t ON t.space = a.space AND t.name = a.thread
         WHERE a.policy IN ('tree', 'rolling', 'tiers')
           AND iif(p.id IN ({_EMPTIED}), a.messages < {_WALKED_PAST}, a.messages != {_WALKED_PAST})
        """,
    ),
)

_SESSIONS: Final = (
    (
        "a message is in a session that does not exist: message",
        "SELECT '#' || seq FROM log WHERE session NOT IN (SELECT id FROM session)",
    ),
    (
        "a message is the newer version of none, or of another kind of message: message",
        """
        SELECT '#' || n.seq FROM log n LEFT JOIN log o ON o.seq = n.replaces WHERE n.replaces IS NOT NULL
           AND (o.seq IS NULL OR o.replaced = 0 OR o.seq >= n.seq
                OR (o.owner, o.thread, o.role) != (n.owner, n.thread, n.role))
        """,
    ),
    (
        "a message is marked as replaced, but there is no newer version: message",
        """
        SELECT '#' || o.seq FROM log o WHERE o.replaced = 1 AND NOT EXISTS (SELECT 1 FROM log n WHERE n.replaces = o.seq)
        """,
    ),
)

_ARCHIVES: Final = (
    (
        "a message is archived without a chunk, or active within one:",
        "SELECT '#' || seq FROM log WHERE active != (chunk IS NULL)",
    ),
    (
        "a chunk and its summary do not agree: chunk",
        """
        SELECT l.chunk || ' of ' || p.name FROM (SELECT owner, chunk, count(*) AS messages, min(seq) AS first, max(seq) AS last
                   FROM log WHERE chunk IS NOT NULL GROUP BY chunk, owner) l JOIN person p ON p.id = l.owner
          LEFT JOIN (SELECT owner, chunks, messages, first_seq, last_seq, count(*) AS summaries FROM summary
                      WHERE level = 1 AND rolled_back = 0 AND replaced = 0
                      GROUP BY owner, chunks, messages, first_seq, last_seq) y
            ON y.owner = l.owner AND y.chunks = json_array(l.chunk)
           AND (y.messages, y.first_seq, y.last_seq) = (l.messages, l.first, l.last)
         WHERE coalesce(y.summaries, 0) != 1
        """,
    ),
    (
        "a summary stands for messages that are not archived: summary",
        """
        SELECT y.id FROM summary y WHERE y.level = 1 AND y.rolled_back = 0 AND y.reach = 'chunks'
           AND (SELECT count(*) FROM json_each(y.chunks) c CROSS JOIN log l WHERE l.chunk = c.value AND +l.owner = y.owner)
               NOT IN (0, y.messages)
        """,
    ),
    (
        "a summary is active although another stands for it: summary",
        """
        SELECT x.source FROM summary_source x JOIN summary y ON y.id = x.summary JOIN summary z ON z.id = x.source
         WHERE y.rolled_back = 0 AND z.active = 1 AND y.kind != 'week'
        """,
    ),
    (
        "a rolled back or replaced summary is active: summary",
        "SELECT id FROM summary WHERE (rolled_back = 1 OR replaced = 1) AND active = 1",
    ),
    (
        "a summary does not cover as many messages as it says: summary",
        f"""
        SELECT y.id FROM summary y WHERE y.active = 1 AND y.reach IN ('thread', 'user')
           AND iif(y.owner IN ({_EMPTIED}), y.messages < {_COVERED}, y.messages != {_COVERED})
        """,
    ),
    (
        "two summaries are the newest of their kind: summary",
        """
        SELECT max(id) FROM summary WHERE active = 1 AND reach != 'chunks'
         GROUP BY owner, kind, day, iif(reach = 'thread', thread, 0) HAVING count(*) > 1
        """,
    ),
    (
        "a summary is the newer version of none, or of another's: summary",
        """
        SELECT y.id FROM summary y LEFT JOIN summary z ON z.id = y.replaces
         WHERE (y.replaces IS NOT NULL AND y.version = 1) OR z.owner != y.owner OR z.version != y.version - 1
        """,
    ),
)


_KNOWN: Final = (
    ("a memory's state and its mark disagree: memory", "SELECT id FROM memory WHERE active != (state = 'active')"),
    (
        "a memory was superseded by another user's, or by itself: memory",
        """
        SELECT m.id FROM memory m JOIN memory n ON n.id = m.superseded_by WHERE n.owner != m.owner OR n.id = m.id
        """,
    ),
    (
        "a memory rests on another user's message: memory",
        """
        SELECT DISTINCT m.id FROM memory m JOIN memory_source s ON s.memory = m.id JOIN log l ON l.seq = s.seq
         WHERE l.owner != m.owner
        """,
    ),
    (
        "a memory's versions are not all there: memory",
        # Only the oldest ones can have been removed.
        """
        SELECT m.id FROM memory m JOIN memory_version v ON v.memory = m.id GROUP BY m.id
        HAVING m.revision != 1 + max(v.revision) OR count(*) != 1 + max(v.revision) - min(v.revision)
        """,
    ),
    (
        "the versions of the facts are not all there: user",
        """
        SELECT p.space || '/' || p.name FROM facts f JOIN person p ON p.id = f.owner
         GROUP BY f.owner HAVING 1 + max(f.version) - min(f.version) != count(*)
        """,
    ),
)


def check_database(connection: apsw.Connection) -> Iterator[str]:
    """Let SQLite check its own pages and indexes."""
    for (finding,) in connection.execute("PRAGMA integrity_check(20)"):
        if finding != "ok":
            yield finding


def check_references(connection: apsw.Connection) -> Iterator[str]:
    """Check that whatever is referred to exists."""
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        yield f"row {row} of {table} refers to a missing row of {parent}"
    yield from _findings(connection, _SESSIONS, "{what} {name}")


def check_index(connection: apsw.Connection) -> Iterator[str]:
    """Compare the keyword index with the messages. Needs the writing connection."""
    for table, what in (("log_index", "the messages"), ("note_index", "the summaries and memories")):
        try:
            # With rank 1 the content is compared too; without it, drift goes unnoticed.
            connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")
        except apsw.CorruptError:
            yield f"the keyword index does not match {what}"


def hash_pages(
    read: Callable[[str, tuple[int, int]], list[Row]], total: int, progress: Progress | None
) -> Iterator[str]:
    """Recompute the hash of every message, a page at a time."""
    last, done = 0, 0
    while page := read(_FOR_HASHES, (last, _PAGE)):
        for row in page:
            if not _intact(row):
                yield f"#{row[0]} is not what was stored"
        last = page[-1][0]
        done += len(page)
        if progress is not None:
            progress("hashes", done, max(total, done))


def _intact(row: Row) -> bool:
    try:
        texts = [None if text is None else bytes(text).decode() for text in row[1:9]]
    except UnicodeDecodeError:
        return False
    space, user, thread, given_id, role, author, name, text = texts
    if space is None or user is None or thread is None or role is None or author is None or text is None:
        return False
    return bool(message_hash(space, user, thread, given_id, role, author, name, text, row[9], row[10]) == row[11])


def check_counts(connection: apsw.Connection) -> Iterator[str]:
    """Compare the counts with the messages that they count."""
    yield from _findings(connection, _COUNTS, "{what} {name} are wrong")
    yield from _findings(connection, _AGENDA, "{what} {name} are wrong")


def check_archives(connection: apsw.Connection) -> Iterator[str]:
    """Check that nothing is archived without a summary, and no summary stands for what is not archived."""
    yield from _findings(connection, _ARCHIVES, "{what} {name}")


def check_known(connection: apsw.Connection) -> Iterator[str]:
    """Check that what is known about users agrees with itself and with the messages."""
    yield from _findings(connection, _KNOWN, "{what} {name}")


def _findings(connection: apsw.Connection, queries: tuple[tuple[str, str], ...], template: str) -> Iterator[str]:
    for what, query in queries:
        for (name,) in connection.execute(query):
            yield template.format(what=what, name=name)
