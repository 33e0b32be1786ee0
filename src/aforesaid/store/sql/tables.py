"""Parts of statements: how users, threads and lists are named in conditions, and the columns of records."""

from __future__ import annotations

from datetime import date
from typing import Final

from aforesaid.domain.details import TAKEN_BACK
from aforesaid.store import records

USER_ID: Final = "(SELECT id FROM person WHERE space = $1 AND name = {0})"
THREAD_ID: Final = "(SELECT id FROM thread WHERE space = $1 AND name = {0})"
"""The number of a user or a thread of the space $1 in SQLite."""
A_USER: Final = f"[[{{0}} ~ {USER_ID}]]"
A_THREAD: Final = f"[[{{0}} ~ {THREAD_ID}]]"
"""What columns hold of a user or a thread whose name is bound as {0}."""
USER: Final = A_USER.format("$2")
OWNED: Final = f"[[space = $1 AND ]]owner = {USER}"
"""The condition for rows of the user $2 in the space $1."""
BY_NAME: Final = "space = $1 AND [[owner ~ user]] = $2"
"""The same, for tables that hold names in both databases."""
NEWEST: Final = "[[NOT log.replaced ~ log.replaced = 0]]"
"""The condition that leaves out messages that do not count any more."""
_LATEST: Final = f"""
log.details IS DISTINCT FROM '{TAKEN_BACK}'
AND NOT EXISTS (SELECT 1 FROM log n WHERE [[n.space = $1 AND ]]n.replaces = log.seq)
"""
SEARCHED: Final = f"({NEWEST} OR ({_LATEST}))"
"""The condition for messages that a search finds: those that count, and those that were set aside with their branch."""
NOT_SEARCHED: Final = f"[[log.replaced ~ log.replaced = 1]] AND NOT ({_LATEST})"
"""The condition for all others, in a form that the index of replaced messages answers."""
ACTIVE: Final = "[[{0}.active ~ {0}.active = 1]]"
"""The condition for active rows. SQLite's partial indexes need it in this form."""

_DAY: Final = 86_400_000_000
FIRST_DAY: Final = date(1970, 1, 1)
DAY_OF: Final = f"({{0}} - (({{0}} % {_DAY}) + {_DAY}) % {_DAY}) / {_DAY}"
"""The number of the day (UTC) since the first one, of a time in microseconds."""


def listed(column: str, place: str, kind: str = "bigint") -> str:
    """Return the condition that a column is in the list bound at a place."""
    return f"[[{column} = ANY({place}::{kind}[]) ~ {column} IN (SELECT value FROM json_each({place}))]]"


MESSAGE: Final = """
SELECT log.seq, log.given_id, [[log.space, log.owner, log.thread ~ o.space, o.name, t.name]], s.name, log.role,
       [[log.author ~ a.name]], log.name, log.text, log.at, log.stored_at, log.active, log.chunk, log.hash,
       log.replaces, log.replaced, log.details
  FROM log[[ ~  JOIN person o ON o.id = log.owner JOIN person a ON a.id = log.author
  JOIN thread t ON t.id = log.thread]]
  JOIN session s ON [[s.space = log.space AND ]]s.id = log.session
"""
"""What `records.message` reads."""

SUMMARY_OF_ANY_SPACE: Final = """
SELECT y.id, [[y.space, y.owner, y.thread ~ o.space, o.name, t.name]], y.kind, y.level, y.text, y.chunks,
       [[ARRAY(SELECT x.source FROM summary_source x WHERE x.space = y.space AND x.summary = y.id ORDER BY x.source)
       ~ (SELECT json_group_array(source ORDER BY source) FROM summary_source WHERE summary = y.id)]],
       y.first_seq, y.last_seq, y.messages, y.model, y.prompt, y.created_at, y.active, y.rolled_back,
       y.began_at, y.ended_at, y.reach, y.fresh_seq, y.day, y.version, y.replaces, y.replaced, y.edited_by, y.details,
       y.quality, y.shown
  FROM summary y[[ ~  JOIN person o ON o.id = y.owner JOIN thread t ON t.id = y.thread]]
"""
SUMMARY: Final = SUMMARY_OF_ANY_SPACE.replace("x.space = y.space", "x.space = $1")
"""What `records.summary` reads, of the space $1. It is named for the sources too, so that Citus asks one shard."""

SESSION: Final = """
SELECT s.name, [[s.space, s.thread, s.opened_by ~ t.space, t.name, p.name]], s.started_at, s.last_at, s.messages,
       s.timeout, s.automatic, s.id
  FROM session s[[ ~  JOIN thread t ON t.id = s.thread JOIN person p ON p.id = s.opened_by]]
"""
"""What `records.session` reads."""

_COLUMNS: Final = ", ".join(f"m.{name}" for name in records.MEMORY).replace(
    "m.speaker", "[[m.speaker ~ (SELECT name FROM person WHERE id = m.speaker)]]"
)
MEMORY_OF_ANY_SPACE: Final = f"""
SELECT m.id, [[m.space, m.owner ~ o.space, o.name]],
       [[ARRAY(SELECT s.seq FROM memory_source s WHERE s.space = m.space AND s.memory = m.id ORDER BY s.seq)
       ~ (SELECT json_group_array(s.seq ORDER BY s.seq) FROM memory_source s WHERE s.memory = m.id)]],
       m.created_at, m.revision, {_COLUMNS}
  FROM memory m[[ ~  JOIN person o ON o.id = m.owner]]
"""
MEMORY: Final = MEMORY_OF_ANY_SPACE.replace("s.space = m.space", "s.space = $1")
"""What `records.memory` reads, of the space $1."""

ENTRY: Final = """
SELECT agenda.policy, agenda.space, agenda.[[owner ~ user]], agenda.thread, agenda.day, messages, characters, waiting,
       last_seq, due_at, done_at, done_seq, failures, error FROM agenda
"""
"""What `records.entry` reads."""
