"""The writes that delete, in SQLite. What they free is overwritten with zeros."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import apsw

from aforesaid.store import erase_statements
from aforesaid.store.checksums import SQLITE as CHECKSUMS
from aforesaid.store.dialects import for_sqlite
from aforesaid.store.rules import writes
from aforesaid.store.sql import upkeep
from aforesaid.store.sqlite import rows
from aforesaid.store.sqlite.names import find_person
from aforesaid.store.sqlite.write_transaction import WriteTransaction

_GONE: Final = "(SELECT value FROM json_each(:gone))"
_UNINDEX_MESSAGES: Final = f"""
INSERT INTO log_index (log_index, rowid, terms)
    SELECT 'delete', seq, terms FROM log_index_content WHERE seq IN {_GONE};
"""
_NEWEST: Final = """
UPDATE person SET last_seq = coalesce((SELECT max(seq) FROM log WHERE owner = :owner), 0),
       last_at = iif(last_at > :latest, last_at, (SELECT max(at) FROM log WHERE owner = :owner))
 WHERE id = :owner
"""
_UNINDEX_NOTES: Final = """
INSERT INTO note_index (note_index, rowid, terms)
    SELECT 'delete', {note}, index_terms(owner, 0, 0, text) FROM {table} x WHERE id IN {gone};
DELETE FROM note_vector WHERE (embedder, owner, note) IN (
    SELECT e.id, owner, {note} FROM embedder e, {table} x WHERE x.id IN {gone});
"""
_PART_VERSIONS: Final = f"""
UPDATE memory_version SET {CHECKSUMS.setting("memory_version", was="json_set(was, '$.superseded_by', NULL)")}
 WHERE memory IN (SELECT id FROM memory WHERE owner IN (SELECT owner FROM memory WHERE id IN {_GONE}))
   AND json_extract(was, '$.superseded_by') IN {_GONE};
"""
_ERASE_DERIVED: Final = f"""
DELETE FROM derived WHERE owner IN (SELECT id FROM person WHERE space = :space AND name IN {_GONE});
"""


def _script(statements: Sequence[str]) -> str:
    return "".join(f"{for_sqlite(statement)};\n" for statement in statements)


_ERASE_MESSAGES: Final = _UNINDEX_MESSAGES + _script(erase_statements.MESSAGES)
_COUNT_SESSIONS: Final = _script(erase_statements.SESSIONS)
_EMPTY_THREADS: Final = _script(erase_statements.THREADS)
_ERASE_SUMMARIES: Final = _UNINDEX_NOTES.format(note="2 * x.id", table="summary", gone=_GONE) + _script(
    erase_statements.SUMMARIES
)
_ERASE_MEMORIES: Final = (
    _UNINDEX_NOTES.format(note="2 * x.id + 1", table="memory", gone=_GONE)
    + _PART_VERSIONS
    + _script(erase_statements.MEMORIES)
)
_ERASE_USER: Final = _ERASE_DERIVED + _script(erase_statements.USER)


@contextmanager
def overwriting(connection: apsw.Connection) -> Iterator[None]:
    """Have what is deleted overwritten in the file."""
    before = connection.pragma("secure_delete")
    connection.pragma("secure_delete", 1)
    try:
        yield
    finally:
        connection.pragma("secure_delete", before)


@contextmanager
def _overwriting_words(connection: apsw.Connection) -> Iterator[None]:
    """Have the keyword index delete words at once; otherwise it only records that they are deleted."""
    with overwriting(connection):
        _set_index(connection, 1)
        yield
        _set_index(connection, 0)


def _set_index(connection: apsw.Connection, thorough: int) -> None:
    for table in ("log_index", "note_index"):
        connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('secure-delete', {thorough})")


def _erase_messages(transaction: WriteTransaction, write: writes.EraseMessages) -> None:
    connection, gone = transaction.connection, _listed(write.seqs)
    found = rows.every(connection.execute(f"SELECT session, thread, owner, at FROM log WHERE seq IN {_GONE}", gone))
    with _overwriting_words(connection):
        connection.execute(_ERASE_MESSAGES, gone)
        latest: dict[int, int] = {}
        for _, _, owner, at in found:
            latest[owner] = max(at, latest.get(owner, at))
        connection.executemany(_NEWEST, [{"owner": owner, "latest": at} for owner, at in latest.items()])
        connection.execute(_COUNT_SESSIONS, _listed({session for session, _, _, _ in found}))
        connection.execute(_EMPTY_THREADS, _listed({thread for _, thread, _, _ in found}))
    # It has the newest session of each thread.
    transaction.names.forget()


def _erase_summaries(transaction: WriteTransaction, write: writes.EraseSummaries) -> None:
    connection, gone = transaction.connection, _listed(write.numbers)
    threads = rows.every(connection.execute(f"SELECT DISTINCT thread FROM summary WHERE id IN {_GONE}", gone))
    with _overwriting_words(connection):
        connection.execute(_ERASE_SUMMARIES, gone)
        connection.execute(_EMPTY_THREADS, _listed(thread for (thread,) in threads))
    transaction.names.forget()


def _erase_memories(transaction: WriteTransaction, write: writes.EraseMemories) -> None:
    with _overwriting_words(transaction.connection):
        transaction.connection.execute(_ERASE_MEMORIES, _listed(write.numbers))


def _erase_user(transaction: WriteTransaction, write: writes.EraseUser) -> None:
    connection, (space, name) = transaction.connection, write.scope[:2]
    with overwriting(connection):
        who = {"space": space, "name": name, "who": find_person(connection, space, name)}
        connection.execute(_ERASE_USER, {**who, **_listed([name, *write.others])})
    transaction.names.forget()


def _erase_derived(transaction: WriteTransaction, write: writes.EraseDerived) -> None:
    with overwriting(transaction.connection):
        transaction.connection.execute(_ERASE_DERIVED, {"space": write.space, **_listed(write.users)})


def _erase_facts(transaction: WriteTransaction, write: writes.EraseFacts) -> None:
    query = "DELETE FROM facts WHERE owner = (SELECT id FROM person WHERE space = ? AND name = ?) AND version = ?"
    _erase_rows(transaction, query, [row[:3] for row in write.rows])


def _erase_memory_versions(transaction: WriteTransaction, write: writes.EraseMemoryVersions) -> None:
    query = "DELETE FROM memory_version WHERE memory = ? AND revision = ?"
    _erase_rows(transaction, query, [(row.number, row.revision) for row in write.rows])


def _erase_rows(transaction: WriteTransaction, query: str, keys: Sequence[tuple[object, ...]]) -> None:
    with overwriting(transaction.connection):
        transaction.connection.executemany(query, keys)


def _erase_old_rows(transaction: WriteTransaction, write: writes.EraseOldRows) -> int:
    with overwriting(transaction.connection):
        return rows.answered(transaction.connection, upkeep.erase_old_rows(write))


def _listed(gone: Iterable[object]) -> dict[str, str]:
    return {"gone": json.dumps(list(gone))}
