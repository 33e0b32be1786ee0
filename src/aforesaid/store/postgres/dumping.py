"""Giving out everything that the database holds, space by space."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import date
from typing import Final

from aforesaid.domain.checks import moment
from aforesaid.domain.context_receipt import read_receipt
from aforesaid.domain.memory import Facts, MemoryRecord
from aforesaid.domain.report import AuditEntry, Setting
from aforesaid.domain.scope import Scope
from aforesaid.domain.transfer import (
    DayRow,
    ForgottenRow,
    MemoryRow,
    Row,
    SessionRow,
    SettingRow,
    SpendingRow,
    SummaryRow,
    UserRow,
    VectorOf,
)
from aforesaid.store import questions, records
from aforesaid.store.dialects import for_postgres
from aforesaid.store.postgres import queries as asking
from aforesaid.store.postgres.queries import Queries
from aforesaid.store.postgres.rows import answered
from aforesaid.store.postgres.vectors import halves
from aforesaid.store.sql import memories
from aforesaid.store.sql.tables import MEMORY_OF_ANY_SPACE, MESSAGE, SESSION, SUMMARY_OF_ANY_SPACE

PAGE: Final = 1_000

_MESSAGES: Final = for_postgres(f"{MESSAGE} WHERE (log.space, log.seq) > ($1, $2) ORDER BY log.space, log.seq LIMIT $3")
_SESSIONS: Final = for_postgres(f"{SESSION} WHERE (s.space, s.id) > ($1, $2) ORDER BY s.space, s.id LIMIT $3")
_SUMMARIES: Final = for_postgres(
    f"{SUMMARY_OF_ANY_SPACE} WHERE (y.space, y.id) > ($1, $2) ORDER BY y.space, y.id LIMIT $3"
)
_MEMORIES: Final = for_postgres(
    f"{MEMORY_OF_ANY_SPACE} WHERE (m.space, m.id) > ($1, $2) ORDER BY m.space, m.id LIMIT $3"
)
_ARCHIVED: Final = "SELECT seq FROM log WHERE space = $1 AND owner = $2 AND chunk = $3 ORDER BY seq"
_FACTS: Final = """
SELECT space, owner, text, version, created_at, cause FROM facts
 WHERE (space, owner, version) > ($1, $2, $3) ORDER BY space, owner, version LIMIT $4
"""
_FORGOTTEN: Final = """
SELECT space, owner, words, up_to, id FROM forgotten WHERE (space, id) > ($1, $2) ORDER BY space, id LIMIT $3
"""
_SETTINGS: Final = """
SELECT space, owner, key, value, updated_at FROM setting
 WHERE (space, owner, key) > ($1, $2, $3) ORDER BY space, owner, key LIMIT $4
"""
_USERS: Final = """
SELECT p.space, p.name, p.created_at, p.last_chunk, p.extracted,
       (SELECT count(*) FROM log l WHERE l.space = p.space AND l.owner = p.name AND l.seq <= p.extracted)
  FROM person p WHERE p.owner AND (p.space, p.name) > ($1, $2) ORDER BY p.space, p.name LIMIT $3
"""
_DAYS: Final = """
SELECT policy, space, day, done_at, done_seq FROM agenda WHERE day != '' AND done_at IS NOT NULL
 ORDER BY space, policy, day
"""
# What all spent together is counted per space here.
_SPENDING: Final = """
SELECT day, '', '', sum(tokens)::bigint FROM spending WHERE owner = '' GROUP BY day
UNION ALL SELECT day, space, owner, tokens FROM spending WHERE owner != '' ORDER BY 1, 2, 3
"""
_RECEIPTS: Final = """
SELECT space, owner, id, at, reply, details FROM receipt WHERE (space, owner, id) > ($1, $2, $3)
 ORDER BY space, owner, id LIMIT $4
"""
_AUDIT: Final = """
SELECT id, at, space, owner, actor, action, subject FROM audit WHERE (space, id) > ($1, $2) ORDER BY space, id LIMIT $3
"""
_VECTORS: Final = """
SELECT embedder, space, seq, halfvec_send(value) FROM meaning
 WHERE (space, seq, embedder) > ($1, $2, $3) ORDER BY space, seq, embedder LIMIT $4
"""

_Key = tuple[str | int, ...]


async def everything(queries: Queries, *, vectors: bool) -> AsyncIterator[list[Row]]:
    """Give out every row, page by page, as it is at the moment of the first one."""
    async for page in _pages(queries, _MESSAGES, ("", 0), lambda row: (row[2], row[0])):
        yield list(records.messages(page))
    async for page in _pages(queries, _SESSIONS, ("", 0), lambda row: (row[1], row[9])):
        yield [SessionRow(records.session(row), row[8]) for row in page]
    async for page in _pages(queries, _SUMMARIES, ("", 0), lambda row: (row[1], row[0])):
        yield [await _with_archive(queries, row) for row in page]
    async for page in _pages(queries, _MEMORIES, ("", 0), lambda row: (row[1], row[0])):
        yield [await _with_versions(queries, records.memory(row)) for row in page]
    async for page in _pages(queries, _FACTS, ("", "", 0), lambda row: (row[0], row[1], row[3])):
        yield [Facts(space, user, text, version, moment(at), cause) for space, user, text, version, at, cause in page]
    async for others in _about_users(queries):
        yield others
    async for page in _pages(queries, _AUDIT, ("", 0), lambda row: (row[2], row[0])):
        yield [AuditEntry(row[0], moment(row[1]), *row[2:]) for row in page]
    if vectors:
        async for page in _pages(queries, _VECTORS, ("", 0, ""), lambda row: (row[1], row[2], row[0])):
            yield [VectorOf(embedder, space, seq, halves(value)) for embedder, space, seq, value in page]


async def _about_users(queries: Queries) -> AsyncIterator[list[Row]]:
    async for page in _pages(queries, _FORGOTTEN, ("", 0), lambda row: (row[0], row[4])):
        yield [ForgottenRow(*row[:4]) for row in page]
    async for page in _pages(queries, _SETTINGS, ("", "", ""), lambda row: row[:3]):
        yield [SettingRow(space, user, Setting(key, value, moment(at))) for space, user, key, value, at in page]
    async for page in _pages(queries, _USERS, ("", ""), lambda row: row[:2]):
        yield [UserRow(space, user, moment(created), *counts) for space, user, created, *counts in page]
    yield [DayRow(*row) for row in await queries.rows(_DAYS)]
    spending = await queries.rows(_SPENDING)
    yield [SpendingRow(date.fromisoformat(day), space, user, tokens) for day, space, user, tokens in spending]
    async for page in _pages(queries, _RECEIPTS, ("", "", ""), lambda row: row[:3]):
        yield [read_receipt(name, space, user, moment(at), *rest) for space, user, name, at, *rest in page]


async def _with_versions(queries: Queries, memory: MemoryRecord) -> MemoryRow:
    wanted = questions.MemoryVersions(Scope.of(memory.user, memory.space), memory.id)
    return MemoryRow(memory, tuple(await answered(queries, memories.versions(wanted))))


async def _with_archive(queries: Queries, row: asking.Row) -> SummaryRow:
    summary = records.summary(row)
    if summary.reach != "chunks" or summary.level != 1 or summary.rolled_back:
        return SummaryRow(summary)
    found = await queries.rows(_ARCHIVED, summary.space, summary.user, summary.chunks[0])
    return SummaryRow(summary, tuple(seq for (seq,) in found))


async def _pages(
    queries: Queries, query: str, start: _Key, key: Callable[[asking.Row], _Key]
) -> AsyncIterator[list[asking.Row]]:
    after = start
    while page := await queries.rows(query, *after, PAGE):
        yield page
        after = key(page[-1])
