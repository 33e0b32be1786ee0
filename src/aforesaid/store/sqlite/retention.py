"""What is old enough to be deleted, in SQLite, and marks of the store itself."""

from __future__ import annotations

from typing import Final

import apsw

from aforesaid.domain.checks import moment
from aforesaid.domain.retention import Discardable
from aforesaid.store import questions
from aforesaid.store.rules.lookups import OldRow, OldRows, OldTable

_ARCHIVES: Final = """
FROM summary y JOIN person o ON o.id = y.owner
 WHERE y.level = 1 AND y.reach = 'chunks' AND y.rolled_back = 0 AND y.replaced = 0 AND y.ended_at < :before
   AND EXISTS (SELECT 1 FROM log l WHERE l.chunk = json_extract(y.chunks, '$[0]') AND l.owner = y.owner)
"""
_SUMMARIES: Final = """
FROM summary y JOIN person o ON o.id = y.owner
 WHERE (y.replaced = 1 OR y.rolled_back = 1) AND y.active = 0 AND y.created_at < :before
   AND NOT EXISTS (SELECT 1 FROM summary_source x WHERE x.source = y.id)
"""
_MEMORIES: Final = """
FROM memory y JOIN person o ON o.id = y.owner WHERE y.active = 0 AND y.state != 'quarantined'
 AND coalesce((SELECT max(v.at) FROM memory_version v WHERE v.memory = y.id), y.created_at) < :before
"""
# All versions up to one that had been replaced by then, so that what is left has no gaps.
_FACTS: Final = """
FROM facts y JOIN person o ON o.id = y.owner
 WHERE y.version < (SELECT max(g.version) FROM facts g WHERE g.owner = y.owner AND g.created_at < :before)
"""
_VERSIONS: Final = """
FROM memory_version y JOIN memory m ON m.id = y.memory JOIN person o ON o.id = m.owner
 WHERE y.revision <= (SELECT max(w.revision) FROM memory_version w WHERE w.memory = y.memory AND w.at < :before)
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
_ROWS: Final[dict[OldTable, str]] = {
    "archives": f"SELECT o.space, o.name, json_extract(y.chunks, '$[0]'), 0 {_ARCHIVES} ORDER BY y.ended_at, y.id",
    "summaries": f"SELECT o.space, o.name, y.id, 0 {_SUMMARIES} ORDER BY y.id",
    "memories": f"SELECT o.space, o.name, y.id, 0 {_MEMORIES} ORDER BY y.id",
    "facts": f"SELECT o.space, o.name, y.version, 0 {_FACTS} ORDER BY y.owner, y.version",
    "memory_versions": f"SELECT o.space, o.name, y.memory, y.revision {_VERSIONS} ORDER BY y.memory, y.revision",
}
ERASE_OLD: Final[dict[Discardable, str]] = {
    "derived": """
        DELETE FROM derived WHERE (owner, kind) IN (SELECT owner, kind FROM derived WHERE at < :before LIMIT :limit)
    """,
    "audit": "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < :before ORDER BY id LIMIT :limit)",
    "spending": """
        DELETE FROM spending WHERE (day, space, user) IN (
            SELECT day, space, user FROM spending WHERE day < :day LIMIT :limit)
    """,
}
"""Deletes up to `limit` rows of a table."""


def discardable(connection: apsw.Connection, question: questions.DiscardableCount) -> int:
    """Return how many rows are older than a moment."""
    count: int = connection.execute(_COUNTS[question.what], named(question.what, question.before)).get
    return count


def old_rows(connection: apsw.Connection, lookup: OldRows) -> list[OldRow]:
    """Return some of the rows that are older than a moment."""
    values = {"before": lookup.before, "limit": lookup.limit}
    return [OldRow(*row) for row in connection.execute(f"{_ROWS[lookup.table]} LIMIT :limit", values)]


def named(what: Discardable, before: int) -> dict[str, object]:
    """Return the moment as a query for a kind of rows names it."""
    return {"day": moment(before).date().isoformat()} if what == "spending" else {"before": before}
