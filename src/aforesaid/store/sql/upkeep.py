"""Questions about how far policies have come, what is due, and what is old enough to be deleted."""

from __future__ import annotations

from typing import Final

from aforesaid.domain.change import Discardable
from aforesaid.domain.checks import moment
from aforesaid.domain.scope import Ahead, Backlog, Entry, Passed
from aforesaid.store import questions, records
from aforesaid.store.rules.writes import EraseOldRows, OldTable
from aforesaid.store.sql.appending import ENTRY
from aforesaid.store.sql.statements import Answer, Statement, first, rows

# In PostgreSQL, one space after another. The last number may be that of a message that was erased, so there must be
# one to be seen.
_PROGRESS: Final = """
[[SELECT s.space, coalesce(w.up_to, 0) FROM space s LEFT JOIN walk w ON w.space = s.space AND w.policy = $1
   WHERE s.last_seq > coalesce(w.up_to, 0)
     AND EXISTS (SELECT 1 FROM log l WHERE l.space = s.space AND l.seq > coalesce(w.up_to, 0)) ORDER BY s.space LIMIT 1
~ SELECT '', coalesce((SELECT up_to FROM walk WHERE policy = $1), 0)]]
"""
_AHEAD: Final = """
SELECT l.seq, [[l.space, l.owner, l.thread ~ o.space, o.name, t.name]], l.role, l.at, length(l.text)
  FROM log l[[ ~  JOIN person o ON o.id = l.owner JOIN thread t ON t.id = l.thread]]
 WHERE [[l.space = $1 AND ]]l.seq > $2 ORDER BY l.seq LIMIT $3
"""
_ORDER: Final = "ORDER BY due_at[[, space, owner, thread, day]] LIMIT $3"
_DUE: Final = f"{ENTRY} WHERE policy = $1 AND due_at <= $2 {_ORDER}"
_FAILING_LATER: Final = f"{ENTRY} WHERE policy = $1 AND failures > 0 AND due_at > $2 {_ORDER}"
_BACKLOG: Final = """
SELECT count(*), coalesce(sum(waiting), 0)[[::bigint]] FROM agenda WHERE policy = $1 AND due_at <= $2
"""
_FAILING: Final = "FROM agenda WHERE policy = $1 AND failures > 0 AND due_at IS NOT NULL"
_LAST_ERROR: Final = f"""
SELECT error {_FAILING} ORDER BY due_at DESC[[, space DESC, owner DESC, thread DESC, day DESC]] LIMIT 1
"""


def ahead(question: questions.Unprocessed) -> Answer[Ahead]:
    """Return the oldest messages that a policy has not processed."""
    found = yield from first(_PROGRESS, question.policy)
    if found is None:
        return Ahead(0, ())
    space, after = found
    return Ahead(after, tuple(Passed(*row) for row in (yield from rows(_AHEAD, space, after, question.limit))))


def entries(question: questions.DueEntries) -> Answer[list[Entry]]:
    """Return what is due, longest waiting first; with `failing` also what is to be tried again later."""
    asked = question.policy, question.due_by
    found = yield from rows(_DUE, *asked, question.limit)
    if question.failing:
        found += yield from rows(_FAILING_LATER, *asked, question.limit - len(found))
    return [records.entry(row) for row in found]


def backlog(question: questions.PolicyBacklog) -> Answer[Backlog]:
    """Return how much is due."""
    policy = (question.policy,)
    [(due, messages)], [(failing,)], errors = yield (
        Statement(_BACKLOG, (*policy, question.due_by)),
        Statement(f"SELECT count(*) {_FAILING}", policy),
        Statement(_LAST_ERROR, policy),
    )
    return Backlog(due, messages, failing, errors[0][0] if errors else None)


# --- Deleting by age --------------------------------------------------------------------------------------------------

_OWNER: Final = "[[ ~  JOIN person o ON o.id = y.owner]]"
_FIRST_CHUNK: Final = "[[y.chunks[1] ~ json_extract(y.chunks, '$[0]')]]"
_ARCHIVES: Final = f"""
FROM summary y{_OWNER} WHERE y.level = 1 AND y.reach = 'chunks' AND y.ended_at < $1
 AND [[NOT y.rolled_back AND NOT y.replaced ~ y.rolled_back = 0 AND y.replaced = 0]]
 AND EXISTS (SELECT 1 FROM log l WHERE [[l.space = y.space AND ]]l.owner = y.owner AND l.chunk = {_FIRST_CHUNK})
"""
_SUMMARIES: Final = f"""
FROM summary y{_OWNER} WHERE (y.replaced OR y.rolled_back) AND NOT y.active AND y.created_at < $1
 AND NOT EXISTS (SELECT 1 FROM summary_source x WHERE [[x.space = y.space AND ]]x.source = y.id)
"""
_MEMORIES: Final = f"""
FROM memory y{_OWNER} WHERE NOT y.active AND y.state != 'quarantined' AND coalesce((
    SELECT max(v.at) FROM memory_version v WHERE [[v.space = y.space AND ]]v.memory = y.id), y.created_at) < $1
"""
# All versions up to one that had been replaced by then, so that what is left has no gaps.
_FACTS: Final = f"""
FROM facts y{_OWNER} WHERE y.version < (
    SELECT max(g.version) FROM facts g WHERE [[g.space = y.space AND ]]g.owner = y.owner AND g.created_at < $1)
"""
_VERSIONS: Final = """
FROM memory_version y[[ ~  JOIN memory m ON m.id = y.memory JOIN person o ON o.id = m.owner]] WHERE y.revision <= (
    SELECT max(w.revision) FROM memory_version w WHERE [[w.space = y.space AND ]]w.memory = y.memory AND w.at < $1)
"""
OLD: Final[dict[Discardable, tuple[str, ...]]] = {
    "messages": (_ARCHIVES,),
    "summaries": (_SUMMARIES,),
    "memories": (_MEMORIES,),
    "versions": (_FACTS, _VERSIONS),
    "derived": ("FROM derived y WHERE y.at < $1",),
    "audit": ("FROM audit y WHERE y.at < $1",),
    "spending": ("FROM spending y WHERE y.day < $1",),
    "receipts": ("FROM receipt y WHERE y.at < $1",),
}
_KEYS: Final[dict[Discardable, str]] = {
    "derived": "[[space, ]]owner, kind",
    "audit": "[[space, ]]id",
    "spending": "space, day, [[owner ~ user]]",
    "receipts": "[[space, ]]owner, id",
}
"""The keys of tables whose rows are deleted without an audit entry."""
_TABLES: Final[dict[Discardable, str]] = {"receipts": "receipt"}
"""The tables that are not named as what is in them."""


def _of_space(old: str) -> str:
    """Return the condition for the space $2 alone. Subqueries name it too, so that Citus asks one shard."""
    return f"{old.replace('= y.space', '= $2')}[[ AND y.space = $2]]"


_WHOSE: Final = "SELECT [[y.space, y.owner ~ o.space, o.name]]"
OLD_ROWS: Final[dict[OldTable, str]] = {
    "archives": f"{_WHOSE}, {_FIRST_CHUNK}, 0 {_of_space(_ARCHIVES)} ORDER BY y.ended_at, y.id",
    "summaries": f"{_WHOSE}, y.id, 0 {_of_space(_SUMMARIES)} ORDER BY y.id",
    "memories": f"{_WHOSE}, y.id, 0 {_of_space(_MEMORIES)} ORDER BY y.id",
    "facts": f"{_WHOSE}, y.version, 0 {_of_space(_FACTS)} ORDER BY y.owner, y.version",
    "memory_versions": f"""
        SELECT [[y.space, (SELECT m.owner FROM memory m WHERE m.space = $2 AND m.id = y.memory) ~ o.space, o.name]],
               y.memory, y.revision {_of_space(_VERSIONS)} ORDER BY y.memory, y.revision
    """,
}
"""What `OldRow` is made of, of the space $2."""


def discardable(question: questions.DiscardableCount) -> Answer[int]:
    """Return how many rows are older than a moment."""
    counted = "coalesce(sum(y.messages), 0)[[::bigint]]" if question.what == "messages" else "count(*)"
    at = moment_of(question.what, question.before)
    found = yield tuple(Statement(f"SELECT {counted} {old}", (at,)) for old in OLD[question.what])
    return sum(int(number) for ((number,),) in found)


def erase_old_rows(write: EraseOldRows) -> Answer[int]:
    """Delete rows that are older than a moment, up to a limit, and return how many."""
    keys, table = _KEYS[write.table], write.table
    old = f"SELECT {keys} {_of_space(OLD[table][0])} ORDER BY {keys} LIMIT $3"
    text = f"DELETE FROM {_TABLES.get(table, table)} WHERE [[space = $2 AND ]]({keys}) IN ({old}) RETURNING 1"
    return len((yield from rows(text, moment_of(table, write.before), write.space, write.limit)))


def moment_of(what: Discardable, before: int) -> int | str:
    """Return a moment as the table of a kind of rows has it."""
    return moment(before).date().isoformat() if what == "spending" else before
