"""Checking everything that is stored against everything else, in one snapshot."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from typing import Final

from aforesaid.domain.message import message_hash
from aforesaid.domain.report import Check
from aforesaid.store.contract import Progress
from aforesaid.store.findings import told
from aforesaid.store.hashed import hashed
from aforesaid.store.postgres.queries import Queries, Row
from aforesaid.text.terms import terms

_PAGE: Final = 2_000

_FOR_HASHES: Final = """
SELECT space, seq, owner, thread, given_id, role, author, name, text, at, stored_at, hash, terms, words
  FROM log WHERE (space, seq) > ($1, $2) ORDER BY space, seq LIMIT $3
"""
_NOTES: Final = """
SELECT space, id, text, terms FROM {table} WHERE (space, id) > ($1, $2) ORDER BY space, id LIMIT $3
"""

_DATABASE: Final = (
    (
        "an index is not valid; REINDEX it:",
        "SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid",
    ),
    (
        "the database has read pages whose checksums were wrong:",
        "SELECT checksum_failures::text FROM pg_stat_database WHERE datname = current_database() AND checksum_failures > 0",
    ),
)

_REFERENCES: Final = (
    (
        "a message is in a session that does not exist: message",
        """
        SELECT l.space || '/#' || l.seq FROM log l
         WHERE NOT EXISTS (SELECT 1 FROM session s WHERE s.space = l.space AND s.id = l.session)
        """,
    ),
    (
        "a message is of a person who is not written down: message",
        """
        SELECT l.space || '/#' || l.seq FROM log l
         WHERE NOT EXISTS (SELECT 1 FROM person p WHERE p.space = l.space AND p.name = l.owner)
            OR NOT EXISTS (SELECT 1 FROM person p WHERE p.space = l.space AND p.name = l.author)
        """,
    ),
    (
        "a message is in a thread that is not written down: message",
        """
        SELECT l.space || '/#' || l.seq FROM log l
         WHERE NOT EXISTS (SELECT 1 FROM thread t WHERE t.space = l.space AND t.name = l.thread)
        """,
    ),
    (
        "a message is the newer version of none, or of another kind of message: message",
        """
        SELECT n.space || '/#' || n.seq FROM log n LEFT JOIN log o ON o.space = n.space AND o.seq = n.replaces
         WHERE n.replaces IS NOT NULL
           AND (o.seq IS NULL OR NOT o.replaced OR o.seq >= n.seq
                OR (o.owner, o.thread, o.role) != (n.owner, n.thread, n.role))
        """,
    ),
    (
        "a message is marked as replaced, but there is no newer version: message",
        """
        SELECT o.space || '/#' || o.seq FROM log o
         WHERE o.replaced AND NOT EXISTS (SELECT 1 FROM log n WHERE n.space = o.space AND n.replaces = o.seq)
        """,
    ),
    (
        "a vector is of a message that does not exist: message",
        """
        SELECT v.space || '/#' || v.seq FROM meaning v
         WHERE NOT EXISTS (SELECT 1 FROM log l WHERE l.space = v.space AND l.seq = v.seq AND l.owner = v.owner)
        """,
    ),
)

# Where old archives have been removed, more was counted and covered than is there: their summaries stay.
_EMPTIED: Final = """
EXISTS (SELECT 1 FROM summary e WHERE e.space = {of}.space AND e.owner = {of}.owner AND e.level = 1 AND NOT e.rolled_back
   AND e.reach = 'chunks'
   AND NOT EXISTS (SELECT 1 FROM log l WHERE l.space = e.space AND l.owner = e.owner AND l.chunk = e.chunks[1]))
"""
_WALKED_PAST: Final = """
(SELECT count(*) FROM log l WHERE l.space = a.space AND l.owner = a.owner AND l.seq <= w.up_to
    AND (a.thread = '' OR l.thread = a.thread))
"""
_COVERED: Final = """
(SELECT count(*) FROM log l WHERE l.space = y.space AND l.owner = y.owner AND l.seq BETWEEN y.first_seq AND y.last_seq
    AND l.at BETWEEN y.began_at AND y.ended_at AND (y.reach = 'user' OR l.thread = y.thread))
"""

_COUNTS: Final = (
    (
        "the counts of user",
        """
        SELECT p.space || '/' || p.name FROM person p LEFT JOIN (
            SELECT space, owner, count(*) AS messages, count(*) FILTER (WHERE NOT active) AS archived,
                   count(*) FILTER (WHERE role = 'user') AS turns,
                   count(*) FILTER (WHERE role = 'user' AND chunk IS NULL) AS open_turns, sum(words)::bigint AS words,
                   max(seq) AS last_seq, max(at) AS last_at, max(chunk) AS last_chunk
              FROM log GROUP BY space, owner
        ) l ON l.space = p.space AND l.owner = p.name
        WHERE (p.messages, p.archived, p.turns, p.open_turns, p.words, p.last_seq)
              != (coalesce(l.messages, 0), coalesce(l.archived, 0), coalesce(l.turns, 0), coalesce(l.open_turns, 0),
                  coalesce(l.words, 0), coalesce(l.last_seq, 0))
           OR p.last_at IS DISTINCT FROM l.last_at OR p.last_chunk < coalesce(l.last_chunk, 0)
           OR (NOT p.owner AND coalesce(l.messages, 0) > 0)
        """,
    ),
    (
        "the counts of thread",
        """
        SELECT t.space || '/' || t.name FROM thread t LEFT JOIN (
            SELECT space, thread, count(*) AS messages, sum(words)::bigint AS words FROM log WHERE shared GROUP BY space, thread
        ) l ON l.space = t.space AND l.thread = t.name
         WHERE (t.messages, t.words) != (coalesce(l.messages, 0), coalesce(l.words, 0))
        """,
    ),
    (
        "the counts of session",
        """
        SELECT s.space || '/' || s.name FROM session s LEFT JOIN (
            SELECT space, session, count(*) AS messages, min(at) AS started_at, max(at) AS last_at, min(seq) AS first_seq,
                   max(seq) AS last_seq, min(thread) AS low, max(thread) AS high FROM log GROUP BY space, session
        ) l ON l.space = s.space AND l.session = s.id
         WHERE (s.messages, s.started_at, s.last_at, s.first_seq, s.last_seq, s.thread, s.thread)
               IS DISTINCT FROM (l.messages, l.started_at, l.last_at, l.first_seq, l.last_seq, l.low, l.high)
        """,
    ),
    (
        "the last numbers of space",
        """
        SELECT s.space FROM space s
         WHERE s.last_seq < coalesce((SELECT max(seq) FROM log l WHERE l.space = s.space), 0)
            OR s.last_session < coalesce((SELECT max(id) FROM session x WHERE x.space = s.space), 0)
            OR s.last_summary < coalesce((SELECT max(id) FROM summary x WHERE x.space = s.space), 0)
            OR s.last_memory < coalesce((SELECT max(id) FROM memory x WHERE x.space = s.space), 0)
            OR s.last_audit < coalesce((SELECT max(id) FROM audit x WHERE x.space = s.space), 0)
        """,
    ),
    (
        "the messages counted for the summaries of",
        f"""
        SELECT a.space || '/' || a.owner || '/' || a.thread FROM agenda a
          JOIN walk w ON w.space = a.space AND w.policy = a.policy
         WHERE a.policy IN ('tree', 'rolling', 'tiers') AND EXISTS (
               SELECT 1 FROM person p WHERE p.space = a.space AND p.name = a.owner)
           AND CASE WHEN {_EMPTIED.format(of="a")} THEN a.messages < {_WALKED_PAST}
                    ELSE a.messages != {_WALKED_PAST} END
        """,
    ),
)

_ARCHIVES: Final = (
    (
        "a message is archived without a chunk, or active within one:",
        "SELECT space || '/#' || seq FROM log WHERE active != (chunk IS NULL)",
    ),
    (
        "a chunk and its summary do not agree: chunk",
        """
        SELECT l.chunk || ' of ' || l.space || '/' || l.owner FROM (
            SELECT space, owner, chunk, count(*) AS messages, min(seq) AS first, max(seq) AS last
              FROM log WHERE chunk IS NOT NULL GROUP BY space, owner, chunk) l
         WHERE (SELECT count(*) FROM summary y WHERE y.space = l.space AND y.owner = l.owner AND y.level = 1
                   AND NOT y.rolled_back AND NOT y.replaced AND y.chunks = ARRAY[l.chunk]
                   AND (y.messages, y.first_seq, y.last_seq) = (l.messages, l.first, l.last)) != 1
        """,
    ),
    (
        "a summary stands for messages that are not archived: summary",
        """
        SELECT y.space || '/' || y.id FROM summary y WHERE y.level = 1 AND NOT y.rolled_back AND y.reach = 'chunks'
           AND (SELECT count(*) FROM log l WHERE l.space = y.space AND l.owner = y.owner AND l.chunk = ANY(y.chunks))
               NOT IN (0, y.messages)
        """,
    ),
    (
        "a summary is active although another stands for it: summary",
        """
        SELECT x.space || '/' || x.source FROM summary_source x JOIN summary y ON y.space = x.space AND y.id = x.summary
          JOIN summary z ON z.space = x.space AND z.id = x.source
         WHERE NOT y.rolled_back AND z.active AND y.kind != 'week'
        """,
    ),
    (
        "a rolled back or replaced summary is active: summary",
        "SELECT space || '/' || id FROM summary WHERE (rolled_back OR replaced) AND active",
    ),
    (
        "a summary does not cover as many messages as it says: summary",
        f"""
        SELECT y.space || '/' || y.id FROM summary y WHERE y.active AND y.reach IN ('thread', 'user')
           AND CASE WHEN {_EMPTIED.format(of="y")} THEN y.messages < {_COVERED} ELSE y.messages != {_COVERED} END
        """,
    ),
    (
        "two summaries are the newest of their kind: summary",
        """
        SELECT space || '/' || max(id) FROM summary WHERE active AND reach != 'chunks'
         GROUP BY space, owner, kind, day, CASE WHEN reach = 'thread' THEN thread ELSE '' END HAVING count(*) > 1
        """,
    ),
    (
        "a summary is the newer version of none, or of another's: summary",
        """
        SELECT y.space || '/' || y.id FROM summary y LEFT JOIN summary z ON z.space = y.space AND z.id = y.replaces
         WHERE (y.replaces IS NOT NULL AND y.version = 1) OR z.owner != y.owner OR z.version != y.version - 1
        """,
    ),
)

_KNOWN: Final = (
    (
        "a memory's state and its mark disagree: memory",
        "SELECT space || '/' || id FROM memory WHERE active != (state = 'active')",
    ),
    (
        "a memory was superseded by another user's, or by itself: memory",
        """
        SELECT m.space || '/' || m.id FROM memory m JOIN memory n ON n.space = m.space AND n.id = m.superseded_by
         WHERE n.owner != m.owner OR n.id = m.id
        """,
    ),
    (
        "a memory rests on another user's message: memory",
        """
        SELECT DISTINCT m.space || '/' || m.id FROM memory m JOIN memory_source s ON s.space = m.space AND s.memory = m.id
          JOIN log l ON l.space = s.space AND l.seq = s.seq WHERE l.owner != m.owner
        """,
    ),
    (
        "a memory's versions are not all there: memory",
        """
        SELECT m.space || '/' || m.id FROM memory m JOIN memory_version v ON v.space = m.space AND v.memory = m.id
         GROUP BY m.space, m.id HAVING m.revision != 1 + max(v.revision) OR count(*) != 1 + max(v.revision) - min(v.revision)
        """,
    ),
    (
        "the versions of the facts are not all there: user",
        "SELECT space || '/' || owner FROM facts GROUP BY space, owner HAVING 1 + max(version) - min(version) != count(*)",
    ),
)

_CHECKS: Final = (
    ("database", _DATABASE, "{what} {name}"),
    ("references", _REFERENCES, "{what} {name}"),
    ("counts", _COUNTS, "{what} {name} are wrong"),
    ("archives", _ARCHIVES, "{what} {name}"),
    ("memories", _KNOWN, "{what} {name}"),
)


async def checks(queries: Queries, messages: int, progress: Progress | None) -> list[Check]:
    """Run all checks."""
    queries.later("SET LOCAL statement_timeout = 0")
    found = []
    for name, asked, template in _CHECKS:
        found.append(await _run(name, lambda asked=asked, template=template: _findings(queries, asked, template)))  # type: ignore[misc]
    found.append(await _run("hashes", lambda: _messages(queries, messages, progress)))
    found.append(await _run("index", lambda: _notes(queries)))
    return found


async def _messages(queries: Queries, total: int, progress: Progress | None) -> AsyncIterator[str]:
    """Recompute the hash and the terms of every message, a page at a time."""
    last, done = ("", 0), 0
    while page := await queries.rows(_FOR_HASHES, *last, _PAGE):
        for row in page:
            name = f"{row[0]}/#{row[1]}"
            if not _intact(row):
                yield f"{name} is not what was stored"
            if (stored := terms(row[8])) and (len(stored) != row[13] or hashed(stored) != row[12]):
                yield f"{name} is not found by its words"
        last = page[-1][0], page[-1][1]
        done += len(page)
        if progress is not None:
            progress("hashes", done, max(total, done))


async def _notes(queries: Queries) -> AsyncIterator[str]:
    for table in ("summary", "memory"):
        last = ("", 0)
        while page := await queries.rows(_NOTES.format(table=table), *last, _PAGE):
            for space, number, text, stored in page:
                if hashed(terms(text)) != stored:
                    yield f"{table} {space}/{number} is not found by its words"
            last = page[-1][0], page[-1][1]


def _intact(row: Row) -> bool:
    space, _, user, thread, given_id, role, author, name, text, at, stored_at, stored, *_ = row
    return message_hash(space, user, thread, given_id, role, author, name, text, at, stored_at) == bytes(stored)


async def _findings(queries: Queries, asked: tuple[tuple[str, str], ...], template: str) -> AsyncIterator[str]:
    for what, query in asked:
        for (name,) in await queries.rows(query):
            yield template.format(what=what, name=name)


async def _run(name: str, findings: Callable[[], AsyncIterator[str]]) -> Check:
    started = time.monotonic()
    found = [finding async for finding in findings()]
    return told(name, found, started)
