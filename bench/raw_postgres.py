"""Inserts with plain psycopg into the same database, as an upper bound."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import psycopg

from aforesaid.domain.message import draft
from aforesaid.domain.scope import Scope
from aforesaid.store.messages import AddMessage
from aforesaid.store.placing import prepare
from aforesaid.store.ranking import hashed

COMMIT = 256
SPACES = 100
BARE = f"raw psycopg, text and one key, {COMMIT} a commit"
SAME = f"raw psycopg, the same rows and indexes, {COMMIT} a commit"
NAMES = (BARE, SAME)
ALONE = "raw psycopg, the same rows and indexes, one a commit"
_COLUMNS = "space, seq, owner, thread, shared, session, author, role, text, at, stored_at, words, terms, hash"
_TABLES = """
DROP TABLE IF EXISTS raw_text, raw_log;
CREATE TABLE raw_text (space text COLLATE "C", seq bigint, owner text, text text, PRIMARY KEY (space, seq));
CREATE TABLE raw_log (LIKE log INCLUDING ALL);
"""

Row = tuple[Any, ...]


def rates(dsn: str, texts: Sequence[str]) -> dict[str, float]:
    """Return the rows per second of each way of inserting these texts."""
    with psycopg.connect(dsn) as connection:
        connection.execute(_TABLES)
        connection.commit()
        found = {BARE: _rate(connection, "raw_text (space, seq, owner, text)", texts, _bare)}
        found[SAME] = _rate(connection, f"raw_log ({_COLUMNS})", texts, _whole)
        connection.execute("DROP TABLE raw_text, raw_log")
    return found


async def rate_alone(dsn: str, texts: Sequence[str]) -> float:
    """Return the rows per second where each row is inserted and committed alone, as an asynchronous program does it."""
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        await connection.execute(_TABLES)
        await connection.commit()
        insert = f"INSERT INTO raw_log ({_COLUMNS}) VALUES ({', '.join(['%s'] * (_COLUMNS.count(',') + 1))})"
        started = time.perf_counter()
        for number, text in enumerate(texts):
            await connection.execute(insert, _whole(number, text))
            await connection.commit()
        rate = len(texts) / (time.perf_counter() - started)
        await connection.execute("DROP TABLE raw_text, raw_log")
    return rate


def _rate(connection: psycopg.Connection, table: str, texts: Sequence[str], row: Callable[[int, str], Row]) -> float:
    started = time.perf_counter()
    for start in range(0, len(texts), COMMIT):
        # The contents of a row are computed during the measurement, as in any program.
        rows = [row(start + number, text) for number, text in enumerate(texts[start : start + COMMIT])]
        with connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(rows[0]))})", rows)
        connection.commit()
    return len(texts) / (time.perf_counter() - started)


def _bare(number: int, text: str) -> Row:
    return f"space{number % SPACES}", number, f"user{number % 10_000}", text


def _whole(number: int, text: str) -> Row:
    scope = Scope.of(f"user{number % 10_000}", space=f"space{number % SPACES}")
    made = prepare(AddMessage(draft(scope, "user", text)), hashed)
    new = made.draft
    return (scope.space, number, scope.user, scope.thread, False, 1, new.author, new.role, new.text) + (
        new.at,
        new.stored_at,
        made.words,
        made.terms,
        made.hash,
    )
