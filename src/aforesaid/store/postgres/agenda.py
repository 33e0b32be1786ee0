"""How far policies have walked along the log, and what they have to look at."""

from __future__ import annotations

from typing import Final

from aforesaid.domain.agenda import Ahead, Backlog, Entry, Passed
from aforesaid.store import questions, records
from aforesaid.store.postgres.queries import Queries

# The last number may be that of a message that was erased, so there must be one to be seen.
_NEXT_SPACE: Final = """
SELECT s.space, coalesce(w.up_to, 0) FROM space s LEFT JOIN walk w ON w.space = s.space AND w.policy = $1
 WHERE s.last_seq > coalesce(w.up_to, 0)
   AND EXISTS (SELECT 1 FROM log l WHERE l.space = s.space AND l.seq > coalesce(w.up_to, 0)) ORDER BY s.space LIMIT 1
"""
_AHEAD: Final = """
SELECT seq, space, owner, thread, role, at, length(text) FROM log WHERE space = $1 AND seq > $2 ORDER BY seq LIMIT $3
"""
ENTRY: Final = """
SELECT agenda.policy, agenda.space, agenda.owner, agenda.thread, agenda.day, messages, characters, waiting, last_seq,
       due_at, done_at, done_seq, failures, error
  FROM agenda
"""
_ORDER: Final = "ORDER BY due_at, space, owner, thread, day"
_DUE: Final = f"{ENTRY} WHERE policy = $1 AND due_at <= $2 {_ORDER} LIMIT $3"
_FAILING_LATER: Final = f"{ENTRY} WHERE policy = $1 AND failures > 0 AND due_at > $2 {_ORDER} LIMIT $3"
_BACKLOG: Final = """
SELECT count(*) FILTER (WHERE due_at <= $2), coalesce(sum(waiting) FILTER (WHERE due_at <= $2), 0)::bigint,
       count(*) FILTER (WHERE failures > 0 AND due_at IS NOT NULL)
  FROM agenda WHERE policy = $1 AND due_at IS NOT NULL
"""
_LAST_ERROR: Final = """
SELECT error FROM agenda WHERE policy = $1 AND failures > 0 AND due_at IS NOT NULL
 ORDER BY due_at DESC, space DESC, owner DESC, thread DESC, day DESC LIMIT 1
"""


async def ahead(queries: Queries, question: questions.Unprocessed) -> Ahead:
    """Return the oldest messages of a space that a policy has not walked past, while there is such a space."""
    found = await queries.first(_NEXT_SPACE, question.policy)
    if found is None:
        return Ahead(0, ())
    space, after = found
    return Ahead(after, tuple(Passed(*row) for row in await queries.rows(_AHEAD, space, after, question.limit)))


async def entries(queries: Queries, question: questions.DueEntries) -> list[Entry]:
    """Return what is due, longest waiting first; with `failing` also what is to be tried again later."""
    found = await queries.rows(_DUE, question.policy, question.due_by, question.limit)
    if question.failing:
        found += await queries.rows(_FAILING_LATER, question.policy, question.due_by, question.limit - len(found))
    return [records.entry(row) for row in found]


async def backlog(queries: Queries, question: questions.PolicyBacklog) -> Backlog:
    """Return how much is due."""
    policy = question.policy
    [counts], errors = await queries.together((_BACKLOG, (policy, question.due_by)), (_LAST_ERROR, (policy,)))
    entries, messages, failing = counts
    return Backlog(entries, messages, failing, errors[0][0] if errors else None)
