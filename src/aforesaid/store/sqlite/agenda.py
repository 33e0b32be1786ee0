"""How far policies have walked along the log, and what they have to look at."""

from __future__ import annotations

from typing import Final

import apsw

from aforesaid.domain.agenda import Ahead, Backlog, Entry, Passed
from aforesaid.store import questions, records
from aforesaid.store.sqlite import rows

_UP_TO: Final = "SELECT up_to FROM walk WHERE policy = ?"
_AHEAD: Final = """
SELECT l.seq, o.space, o.name, t.name, l.role, l.at, length(l.text)
  FROM log l JOIN person o ON o.id = l.owner JOIN thread t ON t.id = l.thread
 WHERE l.seq > ? ORDER BY l.seq LIMIT ?
"""
ENTRY: Final = """
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


def entries(connection: apsw.Connection, question: questions.DueEntries) -> list[Entry]:
    """Return what is due, longest waiting first; with `failing` also what is to be tried again later."""
    query = f"{ENTRY} WHERE policy = ? AND due_at <= ? ORDER BY due_at LIMIT ?"
    found = rows.every(connection.execute(query, (question.policy, question.due_by, question.limit)))
    if question.failing:
        query = f"{ENTRY} WHERE policy = ? AND failures > 0 AND due_at > ? ORDER BY due_at LIMIT ?"
        found += rows.every(connection.execute(query, (question.policy, question.due_by, question.limit - len(found))))
    return [records.entry(row) for row in found]


def backlog(connection: apsw.Connection, question: questions.PolicyBacklog) -> Backlog:
    """Return how much is due."""
    due, messages = rows.one(connection.execute(_BACKLOG, (question.policy, question.due_by)))
    failing = connection.execute(_FAILING, (question.policy,)).get
    return Backlog(due, messages, failing, connection.execute(_LAST_ERROR, (question.policy,)).get)
