"""Giving out everything that the file holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import date
from typing import Final

import apsw

from aforesaid.domain.checks import moment
from aforesaid.domain.context_receipt import read_receipt
from aforesaid.domain.memory import Facts
from aforesaid.domain.message import Message
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
from aforesaid.store.dialects import for_sqlite
from aforesaid.store.sql import memories
from aforesaid.store.sql.tables import MEMORY, MESSAGE, SESSION, SUMMARY
from aforesaid.store.sqlite.rows import answered, every

PAGE: Final = 1_000

_ARCHIVED: Final = """
SELECT l.seq FROM summary y JOIN log l ON l.chunk = json_extract(y.chunks, '$[0]') AND l.owner = y.owner
 WHERE y.id = ? ORDER BY l.seq
"""
_FACTS: Final = """
SELECT p.space, p.name, f.text, f.version, f.created_at, f.cause FROM facts f JOIN person p ON p.id = f.owner
 ORDER BY f.owner, f.version
"""
_FORGOTTEN: Final = """
SELECT p.space, p.name, f.words, f.up_to FROM forgotten f JOIN person p ON p.id = f.owner ORDER BY f.id
"""
_SETTINGS: Final = """
SELECT p.space, p.name, s.key, s.value, s.updated_at FROM setting s JOIN person p ON p.id = s.owner
 ORDER BY s.owner, s.key
"""
_USERS: Final = """
SELECT p.space, p.name, p.created_at, p.last_chunk, p.extracted,
       (SELECT count(*) FROM log l WHERE l.owner = p.id AND l.seq <= p.extracted)
  FROM person p WHERE p.owner = 1 ORDER BY p.id
"""
_DAYS: Final = "SELECT policy, space, day, done_at, done_seq FROM agenda WHERE day != '' AND done_at IS NOT NULL"
_RECEIPTS: Final = """
SELECT r.id, p.space, p.name, r.at, r.reply, r.details FROM receipt r JOIN person p ON p.id = r.owner
 ORDER BY r.owner, r.id
"""
_VECTORS: Final = """
SELECT e.name, p.space, v.seq, v.value
  FROM vector v JOIN embedder e ON e.id = v.embedder JOIN person p ON p.id = v.owner ORDER BY v.n
"""


def everything(connection: apsw.Connection, *, vectors: bool) -> Iterator[Row]:
    """Give out every row as it is at the moment of the first one."""
    connection.execute("BEGIN")
    parts: list[Callable[[apsw.Connection], Iterator[Row]]] = [
        _messages,
        _sessions,
        _summaries,
        _memories,
        _facts,
        _about_users,
        _others,
    ]
    for part in parts:
        yield from part(connection)
    if vectors:
        yield from (VectorOf(*row) for row in connection.execute(_VECTORS))


def _messages(connection: apsw.Connection) -> Iterator[Message]:
    last = 0
    query = for_sqlite(f"{MESSAGE} WHERE log.seq > $1 ORDER BY log.seq LIMIT $2")
    while page := records.messages(every(connection.execute(query, (last, PAGE)))):
        yield from page
        last = page[-1].seq


def _sessions(connection: apsw.Connection) -> Iterator[SessionRow]:
    for row in connection.execute(for_sqlite(f"{SESSION} ORDER BY s.id")):
        yield SessionRow(records.session(row), bool(row[8]))


def _summaries(connection: apsw.Connection) -> Iterator[SummaryRow]:
    for row in connection.execute(for_sqlite(f"{SUMMARY} ORDER BY y.id")):
        summary = records.summary(row)
        archived: tuple[int, ...] = ()
        if summary.reach == "chunks" and summary.level == 1 and not summary.rolled_back:
            archived = tuple(seq for (seq,) in connection.execute(_ARCHIVED, (summary.id,)))
        yield SummaryRow(summary, archived)


def _memories(connection: apsw.Connection) -> Iterator[MemoryRow]:
    for row in connection.execute(for_sqlite(f"{MEMORY} ORDER BY m.id")):
        memory = records.memory(row)
        wanted = questions.MemoryVersions(Scope.of(memory.user, memory.space), memory.id)
        yield MemoryRow(memory, tuple(answered(connection, memories.versions(wanted))))


def _facts(connection: apsw.Connection) -> Iterator[Facts]:
    for space, user, text, version, created, cause in connection.execute(_FACTS):
        yield Facts(space, user, text, version, moment(created), cause)


def _about_users(connection: apsw.Connection) -> Iterator[Row]:
    yield from (ForgottenRow(*row) for row in connection.execute(_FORGOTTEN))
    for space, user, key, value, updated in connection.execute(_SETTINGS):
        yield SettingRow(space, user, Setting(key, json.loads(value), moment(updated)))
    for space, user, created, *counts in connection.execute(_USERS):
        yield UserRow(space, user, moment(created), *counts)


def _others(connection: apsw.Connection) -> Iterator[Row]:
    yield from (DayRow(*row) for row in connection.execute(_DAYS))
    for day, space, user, tokens in connection.execute("SELECT day, space, user, tokens FROM spending"):
        yield SpendingRow(date.fromisoformat(day), space, user, tokens)
    for name, space, user, at, reply, details in connection.execute(_RECEIPTS):
        yield read_receipt(name, space, user, moment(at), reply, json.loads(details))
    audit = "SELECT id, at, space, user, actor, action, subject FROM audit ORDER BY id"
    for number, at, *names in connection.execute(audit):
        yield AuditEntry(number, moment(at), *names)


PARTS: Final[dict[str, Callable[[apsw.Connection], Iterator[Row]]]] = {
    "sessions": _sessions,
    "summaries": _summaries,
    "memories": _memories,
    "facts": _facts,
    "settings and users": _about_users,
    "days, counts of tokens, receipts and audit rows": _others,
}
"""All that is not a message, each kind by itself."""
