"""Checks a database, and erases what was deleted."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from aforesaid.domain.message import message_hash
from aforesaid.domain.report import Check
from aforesaid.store import checksums
from aforesaid.store.checksums import POSTGRES as CHECKSUMS
from aforesaid.store.contract import Progress, told
from aforesaid.store.postgres.queries import Queries, Row
from aforesaid.store.postgres.write_transaction import WriteTransaction
from aforesaid.store.questions import Question
from aforesaid.store.ranking import hashed
from aforesaid.store.rules import writes
from aforesaid.store.rules.writes import run_waiting
from aforesaid.store.sql import erasing, upkeep
from aforesaid.store.sql.statements import Answer, Answers, Statement, for_postgres
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
    *((table, "owner", "person", "name") for table in ("log", "summary", "memory", "facts", "forgotten", "derived")),
    *((table, "owner", "person", "name") for table in ("setting", "receipt")),
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
        SELECT v.space || '/#' || v.seq FROM meaning v
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
    """Run all checks."""
    queries.later("SET LOCAL statement_timeout = 0")
    names = dict.fromkeys((*_OWN, *checksums.CHECKS))
    found = [await _run(name, partial(_findings, queries, name)) for name in names]
    found.append(await _run("hashes", lambda: _messages(queries, messages, progress)))
    found.append(await _run("index", lambda: _notes(queries)))
    return found


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


async def _run(name: str, findings: Callable[[], AsyncIterator[str]]) -> Check:
    started = time.monotonic()
    found = [finding async for finding in findings()]
    return told(name, found, started)


T = TypeVar("T")


async def answered(queries: Queries, answer: Answer[T]) -> T:
    """Return the answer to a question."""

    async def perform(statements: tuple[Statement, ...]) -> list[list[Row]]:
        return await queries.together(*((for_postgres(text), tuple(values)) for text, values in statements))

    return await run_waiting(answer, perform)


def answering(answers: Answers) -> dict[type[Question[Any]], Callable[[Queries, Any], Awaitable[Any]]]:
    """Return functions that answer questions in a transaction."""
    return {kind: _function(answer) for kind, answer in answers.items()}


def _function(answer: Callable[[Any], Answer[Any]]) -> Callable[[Queries, Any], Awaitable[Any]]:
    return lambda queries, question: answered(queries, answer(question))


_NEWEST: Final = """
UPDATE person SET last_seq = coalesce((SELECT max(seq) FROM log WHERE space = $1 AND owner = person.name), 0),
       last_at = (SELECT max(at) FROM log WHERE space = $1 AND owner = person.name)
 WHERE space = $1 AND name = ANY($2::text[])
"""
_ERASE_VECTORS: Final = (
    "DELETE FROM note_meaning WHERE space = $1 AND note IN (SELECT {note} FROM unnest($2::bigint[]) id)"
)
_PART_VERSIONS: Final = CHECKSUMS.update(
    "memory_version",
    "space = $1 AND (was ->> 'superseded_by')::bigint = ANY($2::bigint[])",
    was="jsonb_set(was::jsonb, '{superseded_by}', 'null')::json",
)
_ERASE_SUMMARIES: Final = (_ERASE_VECTORS.format(note="2 * id"), *erasing.SUMMARIES)
_ERASE_MEMORIES: Final = (_ERASE_VECTORS.format(note="2 * id + 1"), _PART_VERSIONS, *erasing.MEMORIES)
_ERASE_DERIVED: Final = "DELETE FROM derived WHERE space = $1 AND owner = ANY($2::text[])"
_ERASE_FACTS: Final = "DELETE FROM facts WHERE space = $1 AND owner = $2 AND version = $3"
_ERASE_VERSION: Final = "DELETE FROM memory_version WHERE space = $1 AND memory = $2 AND revision = $3"


def _erase(transaction: WriteTransaction, statements: Sequence[str], space: str, gone: object) -> None:
    for statement in statements:
        transaction.later(for_postgres(statement), space, gone)


async def _erase_messages(transaction: WriteTransaction, write: writes.EraseMessages) -> None:
    space, seqs = write.space, list(write.seqs)
    query = "SELECT DISTINCT session, thread, owner FROM log WHERE space = $1 AND seq = ANY($2::bigint[])"
    found = await transaction.queries.rows(query, space, seqs)
    sessions, threads, owners = (sorted({row[place] for row in found}) for place in range(3))
    _erase(transaction, erasing.MESSAGES, space, seqs)
    transaction.later(_NEWEST, space, owners)
    _erase(transaction, erasing.SESSIONS, space, sessions)
    _drop_empty(transaction, space, threads)


async def _erase_summaries(transaction: WriteTransaction, write: writes.EraseSummaries) -> None:
    space, numbers = write.space, list(write.numbers)
    query = "SELECT DISTINCT thread FROM summary WHERE space = $1 AND id = ANY($2::bigint[])"
    threads = [thread for (thread,) in await transaction.queries.rows(query, space, numbers)]
    _erase(transaction, _ERASE_SUMMARIES, space, numbers)
    _drop_empty(transaction, space, threads)


def _drop_empty(transaction: WriteTransaction, space: str, threads: list[str]) -> None:
    _erase(transaction, erasing.THREADS, space, threads)
    # A thread that is dropped and comes back must not be taken for the old one.
    transaction.numbers[space].purges += 1


def _erase_memories(transaction: WriteTransaction, write: writes.EraseMemories) -> None:
    _erase(transaction, _ERASE_MEMORIES, write.space, list(write.numbers))


def _erase_user(transaction: WriteTransaction, write: writes.EraseUser) -> None:
    space, user = write.scope[:2]
    _erase(transaction, erasing.USER, space, user)
    transaction.later(_ERASE_DERIVED, space, [user, *write.others])
    transaction.numbers[space].purges += 1


def _erase_derived(transaction: WriteTransaction, write: writes.EraseDerived) -> None:
    transaction.later(_ERASE_DERIVED, write.space, list(write.users))


def _erase_facts(transaction: WriteTransaction, write: writes.EraseFacts) -> None:
    for row in write.rows:
        transaction.later(_ERASE_FACTS, row.space, row.user, row.number)


def _erase_memory_versions(transaction: WriteTransaction, write: writes.EraseMemoryVersions) -> None:
    for row in write.rows:
        transaction.later(_ERASE_VERSION, row.space, row.number, row.revision)


async def _erase_old_rows(transaction: WriteTransaction, write: writes.EraseOldRows) -> int:
    return await answered(transaction.queries, upkeep.erase_old_rows(write))
