"""The writes that delete, in PostgreSQL.

Deleted rows stay in the database's pages until it vacuums them, and in its write-ahead log and backups until those are
removed: the operations guide says what to do about that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aforesaid.store import erase_statements
from aforesaid.store.checksums import POSTGRES as CHECKSUMS
from aforesaid.store.dialects import for_postgres
from aforesaid.store.postgres.rows import answered
from aforesaid.store.postgres.write_transaction import WriteTransaction
from aforesaid.store.rules import writes
from aforesaid.store.sql import upkeep

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
_ERASE_SUMMARIES: Final = (_ERASE_VECTORS.format(note="2 * id"), *erase_statements.SUMMARIES)
_ERASE_MEMORIES: Final = (_ERASE_VECTORS.format(note="2 * id + 1"), _PART_VERSIONS, *erase_statements.MEMORIES)
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
    _erase(transaction, erase_statements.MESSAGES, space, seqs)
    transaction.later(_NEWEST, space, owners)
    _erase(transaction, erase_statements.SESSIONS, space, sessions)
    _drop_empty(transaction, space, threads)


async def _erase_summaries(transaction: WriteTransaction, write: writes.EraseSummaries) -> None:
    space, numbers = write.space, list(write.numbers)
    query = "SELECT DISTINCT thread FROM summary WHERE space = $1 AND id = ANY($2::bigint[])"
    threads = [thread for (thread,) in await transaction.queries.rows(query, space, numbers)]
    _erase(transaction, _ERASE_SUMMARIES, space, numbers)
    _drop_empty(transaction, space, threads)


def _drop_empty(transaction: WriteTransaction, space: str, threads: list[str]) -> None:
    _erase(transaction, erase_statements.THREADS, space, threads)
    # A thread that is dropped and comes back must not be taken for the old one.
    transaction.numbers[space].purges += 1


def _erase_memories(transaction: WriteTransaction, write: writes.EraseMemories) -> None:
    _erase(transaction, _ERASE_MEMORIES, write.space, list(write.numbers))


def _erase_user(transaction: WriteTransaction, write: writes.EraseUser) -> None:
    space, user = write.scope[:2]
    _erase(transaction, erase_statements.USER, space, user)
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
