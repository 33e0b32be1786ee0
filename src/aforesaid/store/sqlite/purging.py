"""Erasing a user or messages: from every table in one transaction, then from every page of the file and of its log."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Final

import apsw

from aforesaid.domain.transfer import Purged
from aforesaid.errors import StoreBusy
from aforesaid.store.checksums import SQLITE as CHECKSUMS
from aforesaid.store.rules.driving import Rule
from aforesaid.store.sqlite.change_sets import ChangeSetRunner
from aforesaid.store.sqlite.connection import patience
from aforesaid.store.sqlite.erasing import overwriting
from aforesaid.store.sqlite.names import Names

_WIPE: Final = "wipe"
"""The mark that is set with an erasure and removed once the file has been wiped."""
_TURN_SECONDS: Final = 0.2
"""Seconds for which other processes cannot write while a purge waits for their readers."""
_PAUSE_SECONDS: Final = 0.3
"""Seconds between two such turns."""
_TO_WIPE: Final = CHECKSUMS.insert("mark", ("name", "value"), "ON CONFLICT DO NOTHING")


def erase(connection: apsw.Connection, rule: Rule[Purged]) -> Purged:
    """Delete a user or messages from every table, in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        with overwriting(connection):
            done = ChangeSetRunner(connection, Names(connection)).run(rule)
            connection.execute(_TO_WIPE, (_WIPE, "due"))
            connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return done


def wipe_is_due(connection: apsw.Connection) -> bool:
    """Tell whether users were erased whose bytes may still lie between the rows, because `wipe` was interrupted."""
    return connection.execute("SELECT 1 FROM mark WHERE name = ?", (_WIPE,)).get is not None


def wipe(
    connection: apsw.Connection,
    path: Path,
    seconds: float,
    quiet: Callable[[], AbstractContextManager[None]],
    *,
    in_memory: bool,
) -> None:
    """Write the file anew without what lies between its rows, and empty the write-ahead log.

    Raises StoreBusy when another process reads the file as it was before; it is wiped at the next opening then.
    """
    for table in ("log_index", "note_index"):
        # Words of texts that were changed at some time are still in the lists, marked as gone.
        connection.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")
    # The copy that is made on the way is as large as the file; only where it would lie open, it is kept in memory.
    connection.pragma("temp_store", "MEMORY" if in_memory else "FILE")
    try:
        connection.execute("VACUUM")
    finally:
        connection.pragma("temp_store", "MEMORY")
    until = monotonic() + seconds
    connection.set_busy_handler(patience(_TURN_SECONDS))
    try:
        while not _emptied(connection, path, quiet):
            if monotonic() >= until:
                raise StoreBusy(
                    f"the rows are erased, but another process still reads {path} as it was before; "
                    "stop that process and erase again, or open the file again, to clear the rest"
                )
            sleep(_PAUSE_SECONDS)
    finally:
        connection.set_busy_handler(patience(seconds))


def _emptied(connection: apsw.Connection, path: Path, quiet: Callable[[], AbstractContextManager[None]]) -> bool:
    """Try to empty the write-ahead log; return whether nobody read what is in it.

    While SQLite waits for readers here, no process can write. So it waits for a moment only, and is asked again.
    """
    try:
        with quiet():
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            _sync_log(path)
            connection.execute("DELETE FROM mark WHERE name = ?", (_WIPE,))
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.BusyError:
        return False
    return True


def _sync_log(path: Path) -> None:
    """Make the empty log durable. SQLite syncs the file itself, and not the log: a power cut could bring it back.

    No locks are on the log, so opening and closing it here drops none.
    """
    with suppress(FileNotFoundError):
        handle = os.open(path.with_name(path.name + "-wal"), os.O_RDWR)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
