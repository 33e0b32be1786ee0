"""Backups and restoring them."""

from __future__ import annotations

import os
from contextlib import ExitStack, closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import apsw

from aforesaid.errors import InvalidInput, StoreBusy, StoreDamaged, StoreRefused, StoreUnavailable
from aforesaid.store.contract import Progress
from aforesaid.store.sqlite.connection import (
    Options,
    connect,
    make_folder,
    migrate,
    opened,
    schema_version,
    translated,
)
from aforesaid.store.unfinished import sync_folder, unfinished

_BESIDE: Final = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a file. It belongs to that file and must never meet another one."""


def restore(backup: Path, target: Path, *, replace: bool) -> Path | None:
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
                _fill(arriving, source)
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


def _fill(arriving: Path, reader: apsw.Connection, progress: Progress | None = None) -> None:
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
