"""Statements that delete, for SQLite and PostgreSQL (see `dialects`), in the order in which they must run.

In PostgreSQL, $1 is the space and $2 what is deleted: a list of numbers or names, or a user. In SQLite, `:gone` is the
list as JSON, and `:space`, `:name` and `:who` (the number) are the user.
"""

from __future__ import annotations

from typing import Final

from aforesaid.domain.details import TAKEN_BACK
from aforesaid.store.checksums import setting

_LISTED: Final = "[[= ANY($2::bigint[]) ~ IN (SELECT value FROM json_each(:gone))]]"
_NAMED: Final = "[[space = $1 AND name = ANY($2::text[]) ~ id IN (SELECT value FROM json_each(:gone))]]"
_IN_LOG: Final = f"FROM log WHERE [[space = $1 AND ]]seq {_LISTED}"

MESSAGES: Final = (
    f"""
    UPDATE thread SET messages = thread.messages - l.messages, words = thread.words - l.words, revision = revision + 1
      FROM (SELECT thread, count(*) FILTER (WHERE shared) AS messages,
                   coalesce(sum(words) FILTER (WHERE shared), 0) AS words {_IN_LOG} GROUP BY thread) l
     WHERE [[thread.space = $1 AND thread.name ~ thread.id]] = l.thread
    """,
    f"""
    UPDATE person SET messages = person.messages - l.messages, archived = person.archived - l.archived,
           turns = person.turns - l.turns, open_turns = person.open_turns - l.open_turns,
           words = person.words - l.words, revision = revision + 1
      FROM (SELECT owner, count(*) AS messages, count(*) FILTER (WHERE NOT active) AS archived,
                   count(*) FILTER (WHERE role = 'user') AS turns,
                   count(*) FILTER (WHERE role = 'user' AND chunk IS NULL) AS open_turns, sum(words) AS words
                   {_IN_LOG} GROUP BY owner) l
     WHERE [[person.space = $1 AND person.name ~ person.id]] = l.owner
    """,
    f"DELETE FROM [[meaning ~ vector]] WHERE [[space = $1 AND ]]seq {_LISTED}",
    f"DELETE FROM memory_source WHERE [[space = $1 AND ]]seq {_LISTED}",
    f"""
    UPDATE log SET replaced = false
     WHERE [[space = $1 AND ]]seq IN (SELECT replaces {_IN_LOG} AND replaces IS NOT NULL)
       AND details IS DISTINCT FROM '{TAKEN_BACK}'
    """,
    f"UPDATE log SET replaces = NULL WHERE [[space = $1 AND ]]replaces {_LISTED}",
    f"DELETE {_IN_LOG}",
)
# The thread and the times let an index find a session's messages.
_OF_SESSION: Final = """
FROM log l WHERE [[l.space = $1 AND ]]l.thread = session.thread AND l.session = session.id
             AND l.at BETWEEN session.started_at AND session.last_at
"""
SESSIONS: Final = (
    f"DELETE FROM session WHERE [[space = $1 AND ]]id {_LISTED} AND NOT EXISTS (SELECT 1 {_OF_SESSION})",
    f"""
    UPDATE session SET (messages, started_at, last_at, first_seq, last_seq) = (
           SELECT count(*), min(l.at), max(l.at), min(l.seq), max(l.seq) {_OF_SESSION})
     WHERE [[space = $1 AND ]]id {_LISTED}
    """,
)
"""Brings sessions to what is left in them, and deletes those that are empty."""
THREADS: Final = (
    f"DELETE FROM thread WHERE {_NAMED}"
    + "".join(
        f""" AND NOT EXISTS (SELECT 1 FROM {table} x
                              WHERE [[x.space = $1 AND x.thread = thread.name ~ x.thread = thread.id]])"""
        for table in ("log", "session", "summary")
    ),
)
"""Deletes threads that nothing is in."""
SUMMARIES: Final = (
    f"DELETE FROM summary_source WHERE [[space = $1 AND ]](summary {_LISTED} OR source {_LISTED})",
    f"UPDATE summary SET {setting('summary', replaces='NULL')} WHERE [[space = $1 AND ]]replaces {_LISTED}",
    f"DELETE FROM summary WHERE [[space = $1 AND ]]id {_LISTED}",
)
MEMORIES: Final = (
    f"DELETE FROM memory_source WHERE [[space = $1 AND ]]memory {_LISTED}",
    f"DELETE FROM memory_version WHERE [[space = $1 AND ]]memory {_LISTED}",
    f"UPDATE memory SET {setting('memory', superseded_by='NULL')} WHERE [[space = $1 AND ]]superseded_by {_LISTED}",
    f"DELETE FROM memory WHERE [[space = $1 AND ]]id {_LISTED}",
)
_FIRST_OWNER: Final = "(SELECT owner FROM log l WHERE [[l.space = $1 AND ]]l.seq = first_seq)"
USER: Final = (
    *(
        f"DELETE FROM {table} WHERE [[space = $1 AND owner = $2 ~ space = :space AND user = :name]]"
        for table in ("agenda", "spending", "audit")
    ),
    *(
        f"DELETE FROM {table} WHERE [[space = $1 AND owner = $2 ~ owner = :who]]"
        for table in ("facts", "setting", "forgotten", "receipt")
    ),
    f"""
    UPDATE session SET {setting("session", opened_by=_FIRST_OWNER)}
     WHERE [[space = $1 AND opened_by = $2 ~ opened_by = :who]]
    """,
    f"""
    UPDATE person SET messages = 0, archived = 0, turns = 0, open_turns = 0, words = 0, last_seq = 0, last_at = NULL,
           revision = revision + 1, {setting("person", owner="false", last_chunk="0", extracted="0")}
     WHERE [[space = $1 AND name = $2 ~ id = :who]]
    """,
    """
    DELETE FROM person WHERE [[space = $1 AND name = $2 ~ id = :who]]
       AND NOT EXISTS (SELECT 1 FROM log l WHERE [[l.space = $1 AND l.author = $2 ~ l.author = :who]])
    """,
)
