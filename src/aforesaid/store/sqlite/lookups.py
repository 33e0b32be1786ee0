"""What rules look up, in SQLite."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import apsw

from aforesaid.domain.agenda import Entry
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import Summary
from aforesaid.store import questions, records, selects
from aforesaid.store.questions import Question
from aforesaid.store.rules import lookups
from aforesaid.store.sqlite import agenda, memories, retention, rows
from aforesaid.store.sqlite.names import find_person, find_thread
from aforesaid.store.sqlite.reads import NOBODY
from aforesaid.store.sqlite.rows import selected

_LISTED: Final = "IN (SELECT value FROM json_each(?))"
_MADE_FROM: Final = f"""
{rows.SUMMARY} WHERE y.rolled_back = 0
   AND y.id IN (SELECT summary FROM summary_source WHERE source {_LISTED}) ORDER BY y.id
"""
# In two parts, because two indexes find them.
_SIMILAR: Final = " UNION ALL ".join(
    f"""{rows.SUMMARY} WHERE y.owner = ?1 AND y.thread = ?2 AND y.kind = ?3 AND y.level = ?4 AND y.first_seq = ?5
   AND y.last_seq = ?6 AND y.prompt = ?7 AND y.day = ?8 AND y.version = ?9 AND y.rolled_back = {rolled_back}"""
    for rolled_back in (0, 1)
)
_FIRST_STATED: Final = """
SELECT m.id FROM memory m WHERE m.owner = ?1 AND m.created_at = ?2 AND coalesce(
    (SELECT json_extract(v.was, '$.text') FROM memory_version v WHERE v.memory = m.id AND v.revision = 1), m.text) = ?3
"""
_MESSAGES_TO_PURGE: Final = """
SELECT l.seq, o.name, t.name, l.at, l.chunk, length(l.text)
  FROM (SELECT seq FROM log WHERE owner = ?1
        UNION SELECT seq FROM log WHERE author = ?1 AND author != owner AND role != ?2) g
  JOIN log l ON l.seq = g.seq JOIN person o ON o.id = l.owner JOIN thread t ON t.id = l.thread
"""
_OF_USERS: Final = f"""
{rows.SUMMARY} WHERE y.id IN (
    SELECT s.id FROM person p JOIN summary s ON s.owner = p.id
     WHERE p.space = ?1 AND p.name IN (SELECT value FROM json_each(?2))
    UNION SELECT s.id FROM person p JOIN summary s ON s.owner = p.id
     WHERE p.space = ?1 AND s.kind = 'day' AND s.day IN (SELECT value FROM json_each(?3)))
"""
_RELATED: Final = f"""
{rows.SUMMARY} WHERE y.id IN (
    SELECT summary FROM summary_source WHERE source IN (SELECT value FROM json_each(?1))
    UNION SELECT id FROM summary WHERE replaces IN (SELECT value FROM json_each(?1))
    UNION SELECT replaces FROM summary WHERE id IN (SELECT value FROM json_each(?1)))
"""


def _owner(connection: apsw.Connection, scope: Scope) -> int:
    found = find_person(connection, scope.space, scope.user)
    return NOBODY if found is None else found


def _summaries_by_number(connection: apsw.Connection, lookup: lookups.SummariesByNumber) -> list[Summary]:
    query = f"{rows.SUMMARY} WHERE y.owner = ? AND y.id {_LISTED} ORDER BY y.id"
    found = connection.execute(query, (_owner(connection, lookup.scope), json.dumps(list(lookup.numbers))))
    return [rows.summary(row) for row in found]


def _made_from(connection: apsw.Connection, lookup: lookups.SummariesMadeFrom) -> list[Summary]:
    return [rows.summary(row) for row in connection.execute(_MADE_FROM, (json.dumps(list(lookup.numbers)),))]


def _similar(connection: apsw.Connection, lookup: lookups.SimilarSummaries) -> list[Summary]:
    summary = lookup.summary
    owner = find_person(connection, summary.space, summary.user)
    thread = find_thread(connection, summary.space, summary.thread)
    same = (summary.kind, summary.level, summary.first, summary.last, summary.prompt)
    day = records.day_text(summary.day)
    found = connection.execute(_SIMILAR, (owner, thread, *same, day, summary.version))
    return [rows.summary(row) for row in found]


def _first_stated(connection: apsw.Connection, lookup: lookups.MemoryFirstStated) -> MemoryRecord | None:
    values = (_owner(connection, lookup.scope), lookup.created_at, lookup.text)
    number = connection.execute(_FIRST_STATED, values).get
    return None if number is None else memories.find(connection, questions.MemoryById(lookup.scope, number))


def _planned(connection: apsw.Connection, lookup: lookups.PlannedEntries) -> list[Entry]:
    subjects = "SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM json_each(?)"
    query = f"{agenda.ENTRY} WHERE (policy, space, user, thread, day) IN ({subjects})"
    return [records.entry(row) for row in connection.execute(query, (json.dumps(lookup.subjects),))]


def _messages_to_purge(connection: apsw.Connection, lookup: lookups.MessagesToPurge) -> list[lookups.MessageToPurge]:
    found = connection.execute(_MESSAGES_TO_PURGE, (_owner(connection, lookup.scope), lookup.scope.user))
    return [lookups.MessageToPurge(*row) for row in found]


def _summaries_of_users(connection: apsw.Connection, lookup: lookups.SummariesOfUsers) -> list[Summary]:
    days = [day.isoformat() for day in lookup.days]
    found = connection.execute(_OF_USERS, (lookup.space, json.dumps(list(lookup.users)), json.dumps(days)))
    return [rows.summary(row) for row in found]


def _related(connection: apsw.Connection, lookup: lookups.RelatedSummaries) -> list[Summary]:
    return [rows.summary(row) for row in connection.execute(_RELATED, (json.dumps(list(lookup.numbers)),))]


LOOKUPS: Final[Mapping[type[Question[Any]], Callable[[apsw.Connection, Any], Any]]] = {
    lookups.SummariesByNumber: _summaries_by_number,
    lookups.SummariesMadeFrom: _made_from,
    lookups.SimilarSummaries: _similar,
    lookups.MemoryFirstStated: _first_stated,
    lookups.PlannedEntries: _planned,
    lookups.MessagesToPurge: _messages_to_purge,
    lookups.SummariesOfUsers: _summaries_of_users,
    lookups.RelatedSummaries: _related,
    lookups.OldRows: retention.old_rows,
    **selected(selects.LOOKUPS),
}
