"""Checks of a database."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from typing import Final

from aforesaid.domain.message import message_hash
from aforesaid.domain.report import Check
from aforesaid.store import checksums
from aforesaid.store.checksums import POSTGRES as CHECKSUMS
from aforesaid.store.contract import Progress, told
from aforesaid.store.postgres.queries import Queries, Row
from aforesaid.store.ranking import hashed
from aforesaid.store.sql import for_postgres
from aforesaid.text.languages import terms

_PAGE: Final = 2_000

_FOR_HASHES: Final = """
SELECT space, seq, owner, thread, given_id, role, author, name, text, at, stored_at, hash, terms, words, details
  FROM log WHERE (space, seq) > ($1, $2) ORDER BY space, seq LIMIT $3
"""
_NOTES: Final = """
SELECT space, id, text, terms FROM {table} WHERE (space, id) > ($1, $2) ORDER BY space, id LIMIT $3
"""

_DATABASE: Final = (
    (
        "an index is not valid; REINDEX it:",
        "SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid",
    ),
    (
        "the database has read pages whose checksums were wrong:",
        "SELECT checksum_failures::text FROM pg_stat_database WHERE datname = current_database() AND checksum_failures > 0",
    ),
)

_REFERRED: Final = (
    *((table, "owner", "person", "name") for table in ("log", "summary", "memory", "facts", "tombstone", "derived")),
    *((table, "owner", "person", "name") for table in ("setting", "receipt", "fact")),
    ("log", "author", "person", "name"),
    ("session", "opened_by", "person", "name"),
    *((table, "thread", "thread", "name") for table in ("log", "session", "summary")),
    ("summary", "replaces", "summary", "id"),
    ("memory", "speaker", "person", "name"),
    ("memory", "superseded_by", "memory", "id"),
)
"""Columns that refer to a row of a table by one of its columns, and have no foreign key."""
_REFERENCES: Final = (
    *(
        (
            f"a row of {table} refers to a row of {target} that does not exist, by its {column}:",
            f"""
            SELECT DISTINCT x.space || '/' || x.{column} FROM {table} x WHERE x.{column} IS NOT NULL
               AND NOT EXISTS (SELECT 1 FROM {target} y WHERE y.space = x.space AND y.{key} = x.{column})
            """,
        )
        for table, column, target, key in _REFERRED
    ),
    (
        "a vector is of a message that does not exist: message",
        """
        SELECT v.space || '/#' || v.seq FROM embedding v
         WHERE NOT EXISTS (SELECT 1 FROM log l WHERE l.space = v.space AND l.seq = v.seq AND l.owner = v.owner)
        """,
    ),
)

_COUNTS: Final = (
    (
        "the last numbers of space",
        """
        SELECT s.space FROM space s
         WHERE s.last_seq < coalesce((SELECT max(seq) FROM log l WHERE l.space = s.space), 0)
            OR s.last_session < coalesce((SELECT max(id) FROM session x WHERE x.space = s.space), 0)
            OR s.last_summary < coalesce((SELECT max(id) FROM summary x WHERE x.space = s.space), 0)
            OR s.last_memory < coalesce((SELECT max(id) FROM memory x WHERE x.space = s.space), 0)
            OR s.last_audit < coalesce((SELECT max(id) FROM audit x WHERE x.space = s.space), 0)
        """,
    ),
)

_CHECKSUMS: Final = tuple((table, CHECKSUMS.wrong(table)) for table in CHECKSUMS.columns)

_OWN: Final[Mapping[str, tuple[checksums.Queries, str]]] = {
    "database": (_DATABASE, checksums.PLAIN),
    "references": (_REFERENCES, checksums.PLAIN),
    "checksums": (_CHECKSUMS, f"{checksums.PLAIN} is not what was stored"),
    "counts": (_COUNTS, f"{checksums.PLAIN} are wrong"),
}
"""Checks that SQLite does not have, or does in another way."""


async def checks(queries: Queries, messages: int, progress: Progress | None) -> list[Check]:
    queries.later("SET LOCAL statement_timeout = 0")
    findings = {name: _findings(queries, name) for name in (*_OWN, *checksums.CHECKS)}
    findings |= {"hashes": _messages(queries, messages, progress), "index": _notes(queries)}
    return [await _run(name, found) for name, found in findings.items()]


async def _messages(queries: Queries, total: int, progress: Progress | None) -> AsyncIterator[str]:
    """Recompute the hash and the terms of every message, a page at a time."""
    last, done = ("", 0), 0
    while page := await queries.rows(_FOR_HASHES, *last, _PAGE):
        for row in page:
            name = f"{row[0]}/#{row[1]}"
            if not _intact(row):
                yield f"{name} is not what was stored"
            if (stored := terms(row[8])) and (len(stored) != row[13] or hashed(stored) != row[12]):
                yield f"{name} is not found by its words"
        last = page[-1][0], page[-1][1]
        done += len(page)
        if progress is not None:
            progress("hashes", done, max(total, done))


async def _notes(queries: Queries) -> AsyncIterator[str]:
    for table in ("summary", "memory"):
        last = ("", 0)
        while page := await queries.rows(_NOTES.format(table=table), *last, _PAGE):
            for space, number, text, stored in page:
                if hashed(terms(text)) != stored:
                    yield f"{table} {space}/{number} is not found by its words"
            last = page[-1][0], page[-1][1]


def _intact(row: Row) -> bool:
    space, _, user, thread, given_id, role, author, name, text, at, stored_at, stored, *_, details = row
    names = space, user, thread, given_id, role, author, name
    return message_hash(*names, text, at, stored_at, details) == bytes(stored)


async def _findings(queries: Queries, check: str) -> AsyncIterator[str]:
    for asked, template in [table[check] for table in (checksums.CHECKS, _OWN) if check in table]:
        for what, query in asked:
            for (name,) in await queries.rows(for_postgres(query)):
                yield template.format(what=what, name=name)


async def _run(name: str, findings: AsyncIterator[str]) -> Check:
    started = time.monotonic()
    return told(name, [finding async for finding in findings], started)
