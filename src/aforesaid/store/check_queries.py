"""Queries by which `verify` compares what a database has with itself, for SQLite and PostgreSQL (see `dialects`).

Each finds the names of what is wrong, and comes with the words to say it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from aforesaid.domain.details import TAKEN_BACK

Queries: TypeAlias = tuple[tuple[str, str], ...]
PLAIN: Final = "{what} {name}"
"""How a finding is said, from the words of a query and the name that it found."""

# Where old archives have been removed, more was counted and covered than is there: their summaries stay.
_EMPTIED: Final = """
[[EXISTS (SELECT 1 ~ {number} IN (SELECT e.owner]] FROM summary e
 WHERE [[e.space = {of}.space AND e.owner = {of}.owner AND ]]e.level = 1 AND NOT e.rolled_back AND e.reach = 'chunks'
   AND NOT EXISTS (
       SELECT 1 FROM log l WHERE [[l.space = e.space AND ]]l.owner = e.owner
          AND l.chunk = [[e.chunks[1] ~ json_extract(e.chunks, '$[0]')]]))
"""
_PROCESSED: Final = """
(SELECT count(*) FROM log l WHERE [[l.space = a.space AND l.owner = a.owner ~ l.owner = p.id]] AND l.seq <= w.up_to
    AND (a.thread = '' OR l.thread = [[a.thread ~ t.id]]))
"""
_COVERED: Final = """
(SELECT count(*) FROM log l
  WHERE [[l.space = y.space AND ]]l.owner = y.owner AND l.seq BETWEEN y.first_seq AND y.last_seq
    AND l.at BETWEEN y.began_at AND y.ended_at AND (y.reach = 'user' OR l.thread = y.thread))
"""

_COUNTS: Final[Queries] = (
    (
        "the counts of user",
        """
        SELECT p.space || '/' || p.name FROM person p LEFT JOIN (
            SELECT [[space, ]]owner, count(*) AS messages, count(*) FILTER (WHERE NOT active) AS archived,
                   count(*) FILTER (WHERE role = 'user') AS turns,
                   count(*) FILTER (WHERE role = 'user' AND chunk IS NULL) AS open_turns, sum(words) AS words,
                   max(seq) AS last_seq, max(at) AS last_at, max(chunk) AS last_chunk
              FROM log GROUP BY [[space, ]]owner
        ) l ON [[l.space = p.space AND l.owner = p.name ~ l.owner = p.id]]
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
            SELECT [[space, ]]thread, count(*) AS messages, sum(words) AS words FROM log
             WHERE [[shared ~ shared = 1]] GROUP BY [[space, ]]thread
        ) l ON [[l.space = t.space AND l.thread = t.name ~ l.thread = t.id]]
         WHERE (t.messages, t.words) != (coalesce(l.messages, 0), coalesce(l.words, 0))
        """,
    ),
    (
        "the counts of session",
        """
        SELECT [[s.space || '/' || ]]s.name FROM session s LEFT JOIN (
            SELECT [[space, ]]session, count(*) AS messages, min(at) AS started_at, max(at) AS last_at,
                   min(seq) AS first_seq, max(seq) AS last_seq, min(thread) AS low, max(thread) AS high
              FROM log GROUP BY [[space, ]]session
        ) l ON [[l.space = s.space AND ]]l.session = s.id
         WHERE (s.messages, s.started_at, s.last_at, s.first_seq, s.last_seq, s.thread, s.thread)
               IS DISTINCT FROM (l.messages, l.started_at, l.last_at, l.first_seq, l.last_seq, l.low, l.high)
        """,
    ),
    (
        "the messages counted for the summaries of",
        f"""
        SELECT a.space || '/' || a.[[owner ~ user]] || '/' || a.thread FROM agenda a
          JOIN walk w ON [[w.space = a.space AND ]]w.policy = a.policy
          JOIN person p ON p.space = a.space AND p.name = a.[[owner ~ user]]
          LEFT JOIN thread t ON t.space = a.space AND t.name = a.thread
         WHERE a.policy IN ('tree', 'rolling', 'tiers')
           AND CASE WHEN {_EMPTIED.format(of="a", number="p.id")} THEN a.messages < {_PROCESSED}
                    ELSE a.messages != {_PROCESSED} END
        """,
    ),
)

_REFERENCES: Final[Queries] = (
    (
        "a message is in a session that does not exist: message",
        """
        SELECT [[l.space || '/' || ]]'#' || l.seq FROM log l
         WHERE NOT EXISTS (SELECT 1 FROM session s WHERE [[s.space = l.space AND ]]s.id = l.session)
        """,
    ),
    (
        "a message is the newer version of none, or of another kind of message: message",
        """
        SELECT [[n.space || '/' || ]]'#' || n.seq FROM log n
          LEFT JOIN log o ON [[o.space = n.space AND ]]o.seq = n.replaces
         WHERE n.replaces IS NOT NULL
           AND (o.seq IS NULL OR NOT o.replaced OR o.seq >= n.seq
                OR (o.owner, o.thread, o.role) != (n.owner, n.thread, n.role))
        """,
    ),
    (
        "a message was taken back, but its tombstone is shown: message",
        f"""
        SELECT [[space || '/' || ]]'#' || seq FROM log
         WHERE details IS NOT NULL AND details = '{TAKEN_BACK}' AND NOT replaced
        """,
    ),
)

_ARCHIVES: Final[Queries] = (
    (
        "a message is archived without a chunk, or active within one:",
        "SELECT [[space || '/' || ]]'#' || seq FROM log WHERE active != (chunk IS NULL)",
    ),
    (
        "a chunk and its summary do not agree: chunk",
        """
        SELECT l.chunk || ' of ' || [[l.space || '/' || l.owner ~ (SELECT p.name FROM person p WHERE p.id = l.owner)]]
          FROM (
            SELECT [[space, ]]owner, chunk, count(*) AS messages, min(seq) AS first, max(seq) AS last
              FROM log WHERE chunk IS NOT NULL GROUP BY chunk, [[space, ]]owner) l
          LEFT JOIN (SELECT [[space, ]]owner, chunks, messages, first_seq, last_seq, count(*) AS summaries FROM summary
                      WHERE level = 1 AND NOT rolled_back AND NOT replaced
                      GROUP BY [[space, ]]owner, chunks, messages, first_seq, last_seq) y
            ON [[y.space = l.space AND ]]y.owner = l.owner AND y.chunks = [[ARRAY[l.chunk] ~ json_array(l.chunk)]]
           AND (y.messages, y.first_seq, y.last_seq) = (l.messages, l.first, l.last)
         WHERE coalesce(y.summaries, 0) != 1
        """,
    ),
    (
        "a summary stands for messages that are not archived: summary",
        """
        SELECT [[y.space || '/' || ]]y.id FROM summary y WHERE y.level = 1 AND NOT y.rolled_back AND y.reach = 'chunks'
           AND (SELECT count(*) FROM [[log l WHERE l.space = y.space AND l.owner = y.owner AND l.chunk = ANY(y.chunks)
                ~ json_each(y.chunks) c CROSS JOIN log l WHERE l.chunk = c.value AND +l.owner = y.owner]])
               NOT IN (0, y.messages)
        """,
    ),
    (
        "a summary is active although another stands for it: summary",
        """
        SELECT [[x.space || '/' || ]]x.source FROM summary_source x
          JOIN summary y ON [[y.space = x.space AND ]]y.id = x.summary
          JOIN summary z ON [[z.space = x.space AND ]]z.id = x.source
         WHERE NOT y.rolled_back AND z.active AND y.kind != 'week'
        """,
    ),
    (
        "a rolled back or replaced summary is active: summary",
        "SELECT [[space || '/' || ]]id FROM summary WHERE (rolled_back OR replaced) AND active",
    ),
    (
        "a summary does not cover as many messages as it says: summary",
        f"""
        SELECT [[y.space || '/' || ]]y.id FROM summary y WHERE y.active AND y.reach IN ('thread', 'user')
           AND CASE WHEN {_EMPTIED.format(of="y", number="y.owner")} THEN y.messages < {_COVERED}
                    ELSE y.messages != {_COVERED} END
        """,
    ),
    (
        "two summaries are the newest of their kind: summary",
        """
        SELECT [[space || '/' || ]]max(id) FROM summary WHERE active AND reach != 'chunks'
         GROUP BY [[space, ]]owner, kind, day, CASE WHEN reach = 'thread' THEN thread END HAVING count(*) > 1
        """,
    ),
    (
        "a summary is the newer version of none, or of another's: summary",
        """
        SELECT [[y.space || '/' || ]]y.id FROM summary y
          LEFT JOIN summary z ON [[z.space = y.space AND ]]z.id = y.replaces
         WHERE (y.replaces IS NOT NULL AND y.version = 1) OR z.owner != y.owner OR z.version != y.version - 1
        """,
    ),
)

_MEMORIES: Final[Queries] = (
    (
        "a memory's state and its mark disagree: memory",
        "SELECT [[space || '/' || ]]id FROM memory WHERE active != (state = 'active')",
    ),
    (
        "a memory was superseded by another user's, or by itself: memory",
        """
        SELECT [[m.space || '/' || ]]m.id FROM memory m
          JOIN memory n ON [[n.space = m.space AND ]]n.id = m.superseded_by
         WHERE n.owner != m.owner OR n.id = m.id
        """,
    ),
    (
        "a memory rests on another user's message: memory",
        """
        SELECT DISTINCT [[m.space || '/' || ]]m.id FROM memory m
          JOIN memory_source s ON [[s.space = m.space AND ]]s.memory = m.id
          JOIN log l ON [[l.space = s.space AND ]]l.seq = s.seq WHERE l.owner != m.owner
        """,
    ),
    (
        "a memory's versions are not all there: memory",
        # Only the oldest ones can have been removed.
        """
        SELECT [[m.space || '/' || ]]m.id FROM memory m
          JOIN memory_version v ON [[v.space = m.space AND ]]v.memory = m.id
         GROUP BY [[m.space, ]]m.id
        HAVING m.revision != 1 + max(v.revision) OR count(*) != 1 + max(v.revision) - min(v.revision)
        """,
    ),
    (
        "the versions of the facts are not all there: user",
        """
        SELECT [[f.space || '/' || f.owner ~ p.space || '/' || p.name]]
          FROM facts f[[ ~  JOIN person p ON p.id = f.owner]]
         GROUP BY [[f.space, ]]f.owner HAVING 1 + max(f.version) - min(f.version) != count(*)
        """,
    ),
)

CHECKS: Final[Mapping[str, tuple[Queries, str]]] = {
    "references": (_REFERENCES, PLAIN),
    "counts": (_COUNTS, f"{PLAIN} are wrong"),
    "archives": (_ARCHIVES, PLAIN),
    "memories": (_MEMORIES, PLAIN),
}
"""The queries of each check, and how its findings are said."""
