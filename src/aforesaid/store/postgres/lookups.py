"""What rules look up, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from aforesaid.domain.agenda import Entry
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import Summary
from aforesaid.store import questions, records, selects
from aforesaid.store.postgres import agenda, memories, retention, rows
from aforesaid.store.postgres.queries import Queries, over_rows
from aforesaid.store.postgres.rows import selected
from aforesaid.store.questions import Question
from aforesaid.store.rules import lookups

_BY_NUMBER: Final = f"{rows.SUMMARY} WHERE y.space = $1 AND y.owner = $2 AND y.id = ANY($3::bigint[]) ORDER BY y.id"
_MADE_FROM: Final = f"""
{rows.SUMMARY} WHERE y.space = $1 AND NOT y.rolled_back AND y.id IN (
    SELECT x.summary FROM summary_source x WHERE x.space = $1 AND x.source = ANY($2::bigint[])) ORDER BY y.id
"""
_SIMILAR: Final = f"""
{rows.SUMMARY} WHERE y.space = $1 AND y.owner = $2 AND y.thread = $3 AND md5(y.thread) = md5($3) AND y.kind = $4
   AND y.level = $5 AND y.first_seq = $6 AND y.last_seq = $7 AND y.prompt = $8 AND md5(y.prompt) = md5($8)
   AND y.day = $9 AND y.version = $10 ORDER BY y.id
"""
_FIRST_STATED: Final = """
SELECT m.id FROM memory m
 WHERE m.space = $1 AND m.owner = $2 AND m.created_at = $3 AND coalesce((
     SELECT v.was ->> 'text' FROM memory_version v WHERE v.space = $1 AND v.memory = m.id AND v.revision = 1
 ), m.text) = $4
"""
_PLANNED: Final = over_rows(
    agenda.ENTRY
    + """
    JOIN {rows} ON agenda.space = {space} AND agenda.policy = new.policy AND agenda.owner = new.owner
     AND agenda.thread = new.thread AND agenda.day = new.day
    """,
    policy="text",
    owner="text",
    thread="text",
    day="text",
)
_MESSAGES_TO_PURGE: Final = """
SELECT seq, owner, thread, at, chunk, length(text) FROM log
 WHERE space = $1 AND (owner = $2 OR (author = $2 AND role != $2))
"""
_OF_USERS: Final = f"""
{rows.SUMMARY} WHERE y.space = $1 AND (y.owner = ANY($2::text[]) OR (y.kind = 'day' AND y.day = ANY($3::text[])))
"""
_RELATED: Final = f"""
{rows.SUMMARY} WHERE y.space = $1 AND y.id IN (
    SELECT summary FROM summary_source WHERE space = $1 AND source = ANY($2::bigint[])
    UNION SELECT id FROM summary WHERE space = $1 AND replaces = ANY($2::bigint[])
    UNION SELECT replaces FROM summary WHERE space = $1 AND id = ANY($2::bigint[]))
"""


async def _summaries_by_number(queries: Queries, lookup: lookups.SummariesByNumber) -> list[Summary]:
    found = await queries.rows(_BY_NUMBER, *_name(lookup.scope), list(lookup.numbers))
    return [rows.summary(row) for row in found]


async def _made_from(queries: Queries, lookup: lookups.SummariesMadeFrom) -> list[Summary]:
    return [rows.summary(row) for row in await queries.rows(_MADE_FROM, lookup.space, list(lookup.numbers))]


async def _similar(queries: Queries, lookup: lookups.SimilarSummaries) -> list[Summary]:
    summary = lookup.summary
    whose = (summary.space, summary.user, summary.thread)
    same = (summary.kind, summary.level, summary.first, summary.last, summary.prompt)
    found = await queries.rows(_SIMILAR, *whose, *same, records.day_text(summary.day), summary.version)
    return [rows.summary(row) for row in found]


async def _first_stated(queries: Queries, lookup: lookups.MemoryFirstStated) -> MemoryRecord | None:
    number = await queries.value(_FIRST_STATED, *_name(lookup.scope), lookup.created_at, lookup.text)
    return None if number is None else await memories.find(queries, questions.MemoryById(lookup.scope, number))


async def _planned(queries: Queries, lookup: lookups.PlannedEntries) -> list[Entry]:
    wanted = [(subject.space, subject.policy, *subject[2:]) for subject in lookup.subjects]
    return [records.entry(row) for row in await queries.rows_of(_PLANNED, wanted)]


async def _messages_to_purge(queries: Queries, lookup: lookups.MessagesToPurge) -> list[lookups.MessageToPurge]:
    return [lookups.MessageToPurge(*row) for row in await queries.rows(_MESSAGES_TO_PURGE, *_name(lookup.scope))]


async def _summaries_of_users(queries: Queries, lookup: lookups.SummariesOfUsers) -> list[Summary]:
    days = [day.isoformat() for day in lookup.days]
    return [rows.summary(row) for row in await queries.rows(_OF_USERS, lookup.space, list(lookup.users), days)]


async def _related(queries: Queries, lookup: lookups.RelatedSummaries) -> list[Summary]:
    return [rows.summary(row) for row in await queries.rows(_RELATED, lookup.space, list(lookup.numbers))]


def _name(scope: Scope) -> tuple[str, str]:
    return scope.space, scope.user


LOOKUPS: Final[Mapping[type[Question[Any]], Callable[[Queries, Any], Awaitable[Any]]]] = {
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
