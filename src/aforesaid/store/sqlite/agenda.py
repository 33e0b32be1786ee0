"""How far policies have walked along the log, and what they have to look at."""

from __future__ import annotations

from typing import Final

import apsw

from aforesaid.domain.agenda import Ahead, Backlog, Entry, Passed, Subject
from aforesaid.domain.summary_change import Settle, Walk
from aforesaid.errors import SourcesChanged
from aforesaid.store import questions
from aforesaid.store.sqlite import rows
from aforesaid.store.sqlite.unit import Unit

_UP_TO: Final = "SELECT up_to FROM walk WHERE policy = ?"
_AHEAD: Final = """
SELECT l.seq, o.space, o.name, t.name, l.role, l.at, length(l.text)
  FROM log l JOIN person o ON o.id = l.owner JOIN thread t ON t.id = l.thread
 WHERE l.seq > ? ORDER BY l.seq LIMIT ?
"""
_WALKED: Final = "INSERT INTO walk (policy, up_to) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET up_to = ?2"
_TOUCH: Final = """
INSERT INTO agenda (policy, space, user, thread, day, messages, characters, waiting, last_seq, due_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?6, ?8, ?9)
ON CONFLICT DO UPDATE SET messages = messages + ?6, characters = characters + ?7, waiting = waiting + ?6, last_seq = ?8,
       due_at = iif(failures > 0, due_at, min(coalesce(due_at, ?9), ?9))
"""
_KEY: Final = "policy = ?1 AND space = ?2 AND user = ?3 AND thread = ?4 AND day = ?5"
_FAILED: Final = f"UPDATE agenda SET failures = failures + 1, error = ?6, due_at = ?7 WHERE {_KEY}"
_SETTLED: Final = f"""
UPDATE agenda SET failures = 0, error = NULL, done_at = coalesce(?8, done_at),
       done_seq = iif(?8 IS NULL, done_seq, ?6),
       due_at = iif(last_seq = ?6, ?7, coalesce(due_at, ?7)), waiting = iif(last_seq = ?6, 0, waiting)
 WHERE {_KEY}
"""
_ENTRY: Final = """
SELECT policy, space, user, thread, day, messages, characters, waiting, last_seq, due_at, done_at, done_seq, failures,
       error
  FROM agenda
"""
_BACKLOG: Final = "SELECT count(*), coalesce(sum(waiting), 0) FROM agenda WHERE policy = ? AND due_at <= ?"
_FAILING: Final = "SELECT count(*) FROM agenda WHERE policy = ? AND failures > 0"
_LAST_ERROR: Final = "SELECT error FROM agenda WHERE policy = ? AND failures > 0 ORDER BY due_at DESC LIMIT 1"


def ahead(connection: apsw.Connection, question: questions.Unprocessed) -> Ahead:
    """Return the oldest messages that a policy has not walked past."""
    after = connection.execute(_UP_TO, (question.policy,)).get or 0
    return Ahead(after, tuple(Passed(*row) for row in connection.execute(_AHEAD, (after, question.limit))))


def walk(unit: Unit, step: Walk) -> None:
    """Note what messages mean for the agenda, and that they were walked past."""
    execute = unit.connection.execute
    if (execute(_UP_TO, (step.policy,)).get or 0) != step.after:
        raise SourcesChanged(f"somebody else has walked past message {step.after}")
    execute(_WALKED, (step.policy, step.up_to))
    for subject, messages, characters, last_seq, due_at in step.touched:
        execute(_TOUCH, (*subject, messages, characters, last_seq, due_at))


def settle(unit: Unit, step: Settle) -> None:
    """Note that a subject was looked at."""
    if step.error is not None:
        unit.connection.execute(_FAILED, (*step.subject, step.error, step.due_at))
    else:
        unit.connection.execute(_SETTLED, (*step.subject, step.last_seq, step.due_at, step.done_at))


def entries(connection: apsw.Connection, question: questions.DueEntries) -> list[Entry]:
    """Return what is due, longest waiting first; with `failing` also what is to be tried again later."""
    query = f"{_ENTRY} WHERE policy = ? AND due_at <= ? ORDER BY due_at LIMIT ?"
    found = rows.every(connection.execute(query, (question.policy, question.due_by, question.limit)))
    if question.failing:
        query = f"{_ENTRY} WHERE policy = ? AND failures > 0 AND due_at > ? ORDER BY due_at LIMIT ?"
        found += rows.every(connection.execute(query, (question.policy, question.due_by, question.limit - len(found))))
    return [Entry(Subject(*row[:5]), *row[5:]) for row in found]


def entry(connection: apsw.Connection, question: questions.PlannedEntry) -> Entry | None:
    """Return one entry."""
    row = connection.execute(f"{_ENTRY} WHERE {_KEY}", question.subject).fetchone()
    return None if row is None else Entry(Subject(*row[:5]), *row[5:])


def backlog(connection: apsw.Connection, question: questions.PolicyBacklog) -> Backlog:
    """Return how much is due."""
    due, messages = rows.one(connection.execute(_BACKLOG, (question.policy, question.due_by)))
    failing = connection.execute(_FAILING, (question.policy,)).get
    return Backlog(due, messages, failing, connection.execute(_LAST_ERROR, (question.policy,)).get)
