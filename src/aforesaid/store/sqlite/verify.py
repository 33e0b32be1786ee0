"""Checking everything that is stored against everything else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import apsw

from aforesaid.domain.message import message_hash
from aforesaid.store import check_queries
from aforesaid.store.checksums import SQLITE as CHECKSUMS
from aforesaid.store.contract import Progress
from aforesaid.store.dialects import for_sqlite
from aforesaid.store.records import Row

_PAGE: Final = 2_000

_FOR_HASHES: Final = """
SELECT l.seq, CAST(o.space AS BLOB), CAST(o.name AS BLOB), CAST(t.name AS BLOB), CAST(l.given_id AS BLOB), CAST(l.role AS BLOB),
       CAST(a.name AS BLOB), CAST(l.name AS BLOB), CAST(l.text AS BLOB), l.at, l.stored_at, l.hash, CAST(l.details AS BLOB)
  FROM log l JOIN person o ON o.id = l.owner JOIN person a ON a.id = l.author JOIN thread t ON t.id = l.thread
 WHERE l.seq > ? ORDER BY l.seq LIMIT ?
"""


def check_database(connection: apsw.Connection) -> Iterator[str]:
    """Let SQLite check its own pages and indexes."""
    for (finding,) in connection.execute("PRAGMA integrity_check(20)"):
        if finding != "ok":
            yield finding


def check_references(connection: apsw.Connection) -> Iterator[str]:
    """Check that whatever is referred to exists."""
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        yield f"row {row} of {table} refers to a missing row of {parent}"
    yield from check_by_queries(connection, "references")


def check_index(connection: apsw.Connection) -> Iterator[str]:
    """Compare the keyword index with the messages. Needs the writing connection."""
    for table, what in (("log_index", "the messages"), ("note_index", "the summaries and memories")):
        try:
            # With rank 1 the content is compared too; without it, drift goes unnoticed.
            connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")
        except apsw.CorruptError:
            yield f"the keyword index does not match {what}"


def hash_pages(
    read: Callable[[str, tuple[int, int]], list[Row]], total: int, progress: Progress | None
) -> Iterator[str]:
    """Recompute the hash of every message, a page at a time."""
    last, done = 0, 0
    while page := read(_FOR_HASHES, (last, _PAGE)):
        for row in page:
            if not _intact(row):
                yield f"#{row[0]} is not what was stored"
        last = page[-1][0]
        done += len(page)
        if progress is not None:
            progress("hashes", done, max(total, done))


def _intact(row: Row) -> bool:
    try:
        *texts, details = [None if text is None else bytes(text).decode() for text in (*row[1:9], row[12])]
    except UnicodeDecodeError:
        return False
    space, user, thread, given_id, role, author, name, text = texts
    if space is None or user is None or thread is None or role is None or author is None or text is None:
        return False
    names = space, user, thread, given_id, role, author, name
    return bool(message_hash(*names, text, row[9], row[10], details) == row[11])


def check_checksums(connection: apsw.Connection) -> Iterator[str]:
    """Recompute the checksum of every row that has one."""
    for table in CHECKSUMS.columns:
        try:
            for (name,) in connection.execute(CHECKSUMS.wrong(table)):
                yield f"{table} {name} is not what was stored"
        except UnicodeDecodeError:
            yield f"a row of {table} is not what was stored: it has text that is not valid UTF-8"


def check_by_queries(connection: apsw.Connection, check: str) -> Iterator[str]:
    """Run the queries of a check that both databases have."""
    queries, template = check_queries.CHECKS[check]
    for what, query in queries:
        for (name,) in connection.execute(for_sqlite(query)):
            yield template.format(what=what, name=name)
