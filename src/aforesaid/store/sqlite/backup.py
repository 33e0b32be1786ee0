"""Backups, and erasure of what was deleted."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import apsw

from aforesaid.errors import InvalidInput, StoreBusy, StoreDamaged, StoreRefused, StoreUnavailable
from aforesaid.store.checksums import SQLITE as CHECKSUMS
from aforesaid.store.contract import Progress
from aforesaid.store.rules import writes
from aforesaid.store.sql import erasing, upkeep
from aforesaid.store.sql.statements import for_sqlite
from aforesaid.store.sqlite import rows
from aforesaid.store.sqlite.connection import (
    Options,
    connect,
    make_folder,
    migrate,
    opened,
    schema_version,
    sync_folder,
    translated,
)
from aforesaid.store.sqlite.rows import WriteTransaction, find_person
from aforesaid.store.unfinished import unfinished

_BESIDE: Final = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a file. It belongs to that file and must never meet another one."""


def restore(backup: Path, target: Path, *, replace: bool, progress: Progress | None = None) -> Path | None:
    """Put a backup in the place of `target`. What was there is set aside; its new name is returned."""
    backup, target = backup.expanduser().absolute(), target.expanduser().absolute()
    if not backup.exists():
        raise InvalidInput(f"there is no backup at {backup}; nothing was changed")
    if target.exists() and not replace:
        raise InvalidInput(f"{target} exists already; with --replace it is set aside under another name")
    with ExitStack() as stack:
        with translated(target, "copying to"):
            make_folder(target.parent)
            arriving = stack.enter_context(unfinished(target, "restore"))
        # Read-only, so that the backup stays what it is, byte for byte.
        read_only = apsw.SQLITE_OPEN_READONLY
        with translated(backup, "reading"), closing(opened(backup, flags=read_only)) as source:
            schema_version(source, backup)
            if source.pragma("integrity_check") != "ok":
                raise StoreDamaged(f"the backup {backup} is damaged; nothing was changed")
            with translated(target, "copying to"):
                _fill(arriving, source, progress)
        with translated(arriving, "opening"), closing(connect(arriving, Options(), create=False)) as connection:
            migrate(connection, arriving)
        with translated(target, "replacing"):
            aside = _set_aside(target)
            arriving.replace(target)
            sync_folder(target.parent)
    return aside


def copy(reader: apsw.Connection, target: Path, progress: Progress | None = None) -> None:
    """Copy what a connection reads, and close it. The target appears once it is complete, checked and on the disk."""
    target = target.expanduser().absolute()
    with closing(reader), translated(target, "copying to"):
        if target.exists():
            raise InvalidInput(f"{target} exists already; choose another name, nothing was overwritten")
        make_folder(target.parent)
        with unfinished(target) as arriving:
            _fill(arriving, reader, progress)
            _give_name(arriving, target)
        sync_folder(target.parent)


def _fill(arriving: Path, reader: apsw.Connection, progress: Progress | None) -> None:
    """Copy a database into an empty file."""
    with closing(opened(arriving)) as writer:
        # One step, in one read transaction: a copy in several would start over whenever somebody writes.
        with writer.backup("main", reader, "main") as pages:
            pages.step(-1)
            if progress is not None:
                progress("pages", pages.page_count, pages.page_count)
        # One plain file that can be moved about, without a write-ahead log beside it.
        writer.pragma("journal_mode", "delete")
        if writer.pragma("integrity_check") != "ok":
            raise StoreDamaged("the copy is damaged, and so is what was copied; run: aforesaid verify")


def _give_name(arriving: Path, target: Path) -> None:
    """Give a finished file its name, unless another file has taken it."""
    try:
        try:
            os.link(arriving, target)
        except FileExistsError:
            raise
        except OSError:
            # A file system without links. The name is taken with an empty file first, which fails if it is in use.
            os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            arriving.replace(target)
    except FileExistsError:
        raise InvalidInput(f"{target} exists already; choose another name, nothing was overwritten") from None


def _set_aside(target: Path) -> Path | None:
    """Give another name to a database that nobody uses, and to all that SQLite left beside it."""
    beside = [suffix for suffix in _BESIDE if target.with_name(target.name + suffix).exists()]
    if not target.exists() and not beside:
        return None
    if target.exists():
        _refuse_if_in_use(target)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
    aside = target.with_name(f"{target.name}.before-restore-{stamp}")
    for suffix in beside:
        with suppress(FileNotFoundError):  # gone since the file was checked
            target.with_name(target.name + suffix).rename(aside.with_name(aside.name + suffix))
    if not target.exists():
        return None
    try:
        # With two names for a moment, there is no moment without a store.
        os.link(target, aside)
    except OSError:
        target.rename(aside)
    return aside


def _refuse_if_in_use(target: Path) -> None:
    try:
        with (
            translated(target, "opening"),
            closing(opened(target, flags=apsw.SQLITE_OPEN_READWRITE)) as old,
        ):
            # Leaving WAL mode empties the log into the file, and is refused while anybody else has it open.
            in_use = old.pragma("journal_mode", "delete") != "delete"
    except StoreBusy:
        in_use = True
    except (StoreDamaged, StoreRefused, StoreUnavailable):
        # What cannot be read as a database can still be set aside.
        return
    if in_use:
        raise StoreBusy(f"{target} is in use; stop what uses it and try again, nothing was changed")


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


_ERASE_MESSAGES: Final = _UNINDEX_MESSAGES + _script(erasing.MESSAGES)
_COUNT_SESSIONS: Final = _script(erasing.SESSIONS)
_EMPTY_THREADS: Final = _script(erasing.THREADS)
_ERASE_SUMMARIES: Final = _UNINDEX_NOTES.format(note="2 * x.id", table="summary", gone=_GONE) + _script(
    erasing.SUMMARIES
)
_ERASE_MEMORIES: Final = (
    _UNINDEX_NOTES.format(note="2 * x.id + 1", table="memory", gone=_GONE) + _PART_VERSIONS + _script(erasing.MEMORIES)
)
_ERASE_USER: Final = _ERASE_DERIVED + _script(erasing.USER)


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
