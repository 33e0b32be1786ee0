"""How far policies have walked along the log, and what they have to look at."""

from __future__ import annotations

from typing import Final

from aforesaid.domain.agenda import Ahead, Backlog, Entry, Passed, Subject
from aforesaid.domain.summary_change import Settle, Walk
from aforesaid.errors import SourcesChanged
from aforesaid.store import questions
from aforesaid.store.postgres.queries import Queries
from aforesaid.store.postgres.unit import Unit

# The last number may be that of a message that was erased, so there must be one to be seen.
_NEXT_SPACE: Final = """
SELECT s.space, coalesce(w.up_to, 0) FROM space s LEFT JOIN walk w ON w.space = s.space AND w.policy = $1
 WHERE s.last_seq > coalesce(w.up_to, 0)
   AND EXISTS (SELECT 1 FROM log l WHERE l.space = s.space AND l.seq > coalesce(w.up_to, 0)) ORDER BY s.space LIMIT 1
"""
_AHEAD: Final = """
SELECT seq, space, owner, thread, role, at, length(text) FROM log WHERE space = $1 AND seq > $2 ORDER BY seq LIMIT $3
"""
_UP_TO: Final = "SELECT up_to FROM walk WHERE space = $1 AND policy = $2"
_WALKED: Final = """
INSERT INTO walk (space, policy, up_to) VALUES ($1, $2, $3)
ON CONFLICT (space, policy) DO UPDATE SET up_to = excluded.up_to
"""
_TOUCH: Final = """
INSERT INTO agenda (policy, space, owner, thread, day, messages, characters, waiting, last_seq, due_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $6, $8, $9)
ON CONFLICT (space, policy, owner, thread, day) DO UPDATE SET messages = agenda.messages + excluded.messages,
       characters = agenda.characters + excluded.characters, waiting = agenda.waiting + excluded.waiting,
       last_seq = excluded.last_seq,
       due_at = CASE WHEN agenda.failures > 0 THEN agenda.due_at ELSE least(agenda.due_at, excluded.due_at) END
"""
_KEY: Final = "policy = $1 AND space = $2 AND owner = $3 AND thread = $4 AND day = $5"
_FAILED: Final = f"UPDATE agenda SET failures = failures + 1, error = $6, due_at = $7 WHERE {_KEY}"
_SETTLED: Final = f"""
UPDATE agenda SET failures = 0, error = NULL, done_at = coalesce($8::bigint, done_at),
       done_seq = CASE WHEN $8::bigint IS NULL THEN done_seq ELSE $6 END,
       due_at = CASE WHEN last_seq = $6 THEN $7::bigint ELSE coalesce(due_at, $7::bigint) END,
       waiting = CASE WHEN last_seq = $6 THEN 0 ELSE waiting END
 WHERE {_KEY}
"""
_ENTRY: Final = """
SELECT policy, space, owner, thread, day, messages, characters, waiting, last_seq, due_at, done_at, done_seq, failures,
       error
  FROM agenda
"""
_ORDER: Final = "ORDER BY due_at, space, owner, thread, day"
_DUE: Final = f"{_ENTRY} WHERE policy = $1 AND due_at <= $2 {_ORDER} LIMIT $3"
_FAILING_LATER: Final = f"{_ENTRY} WHERE policy = $1 AND failures > 0 AND due_at > $2 {_ORDER} LIMIT $3"
_BACKLOG: Final = """
SELECT count(*) FILTER (WHERE due_at <= $2), coalesce(sum(waiting) FILTER (WHERE due_at <= $2), 0)::bigint,
       count(*) FILTER (WHERE failures > 0 AND due_at IS NOT NULL),
       (SELECT error FROM agenda WHERE policy = $1 AND failures > 0 AND due_at IS NOT NULL
         ORDER BY due_at DESC, space DESC, owner DESC, thread DESC, day DESC LIMIT 1)
  FROM agenda WHERE policy = $1 AND due_at IS NOT NULL
"""


async def ahead(queries: Queries, question: questions.Unprocessed) -> Ahead:
    """Return the oldest messages of a space that a policy has not walked past, while there is such a space."""
    found = await queries.first(_NEXT_SPACE, question.policy)
    if found is None:
        return Ahead(0, ())
    space, after = found
    return Ahead(after, tuple(Passed(*row) for row in await queries.rows(_AHEAD, space, after, question.limit)))


async def walk(unit: Unit, step: Walk) -> None:
    """Note what messages mean for the agenda, and that they were walked past."""
    space = walked_space(step)
    if (await unit.value(_UP_TO, space, step.policy) or 0) != step.after:
        raise SourcesChanged(f"somebody else has walked past message {step.after}")
    unit.later(_WALKED, space, step.policy, step.up_to)
    for subject, messages, characters, last_seq, due_at in step.touched:
        unit.later(_TOUCH, *subject, messages, characters, last_seq, due_at)


def walked_space(step: Walk) -> str:
    """Return the space whose messages were walked past."""
    return step.space or next((touch.subject.space for touch in step.touched), "")


def settle(unit: Unit, step: Settle) -> None:
    """Note that a subject was looked at."""
    if step.error is not None:
        unit.later(_FAILED, *step.subject, step.error, step.due_at)
    else:
        unit.later(_SETTLED, *step.subject, step.last_seq, step.due_at, step.done_at)


async def entries(queries: Queries, question: questions.DueEntries) -> list[Entry]:
    """Return what is due, longest waiting first; with `failing` also what is to be tried again later."""
    found = await queries.rows(_DUE, question.policy, question.due_by, question.limit)
    if question.failing:
        found += await queries.rows(_FAILING_LATER, question.policy, question.due_by, question.limit - len(found))
    return [Entry(Subject(*row[:5]), *row[5:]) for row in found]


async def entry(queries: Queries, question: questions.PlannedEntry) -> Entry | None:
    """Return one entry."""
    row = await queries.first(f"{_ENTRY} WHERE {_KEY}", *question.subject)
    return None if row is None else Entry(Subject(*row[:5]), *row[5:])


async def backlog(queries: Queries, question: questions.PolicyBacklog) -> Backlog:
    """Return how much is due."""
    return Backlog(*await queries.one(_BACKLOG, question.policy, question.due_by))
