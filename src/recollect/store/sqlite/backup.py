"""Copying a file while it is in use, and putting a copy in its place."""

from __future__ import annotations

import os
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import apsw

from recollect.errors import InvalidInput, NotFound, StoreBusy, StoreDamaged
from recollect.store.contract import Progress
from recollect.store.sqlite.connection import Options, connect, connect_reader, make_folder, sync_folder, translated
from recollect.store.sqlite.migrate import migrate, schema_version


def copy(source: Path, target: Path, options: Options, progress: Progress | None = None) -> None:
    """Copy the database as it is now. The target appears only once it is complete, checked and on the disk."""
    target = target.expanduser().absolute()
    if target.exists():
        raise InvalidInput(f"{target} exists already; choose another name, nothing was overwritten")
    make_folder(target.parent)
    unfinished = target.with_name(f"{target.name}.part-{os.getpid()}")
    unfinished.unlink(missing_ok=True)
    try:
        with (
            translated(target, "copying to"),
            closing(connect_reader(source, options)) as reader,
            closing(apsw.Connection(str(unfinished))) as writer,
        ):
            _copy_pages(reader, writer, progress)
            # One plain file that can be moved about, without a write-ahead log beside it.
            writer.pragma("journal_mode", "delete")
            if writer.pragma("integrity_check") != "ok":
                raise StoreDamaged(f"the copy of {source} is damaged; run: recollect verify --store {source}")
        # A link fails where a rename would silently replace a file that appeared meanwhile.
        os.link(unfinished, target)
    except FileExistsError:
        raise InvalidInput(f"{target} exists already; choose another name, nothing was overwritten") from None
    finally:
        unfinished.unlink(missing_ok=True)
    sync_folder(target.parent)


def restore(backup: Path, target: Path, *, replace: bool, progress: Progress | None = None) -> Path | None:
    """Put a backup in the place of `target`. What was there is set aside; its new name is returned."""
    backup, target = backup.expanduser().absolute(), target.expanduser().absolute()
    if not backup.exists():
        raise NotFound(f"there is no backup {backup}")
    if target.exists() and not replace:
        raise InvalidInput(f"{target} exists already; with --replace it is set aside under another name")
    with (
        translated(backup, "reading"),
        closing(apsw.Connection(str(backup), flags=apsw.SQLITE_OPEN_READONLY)) as source,
    ):
        schema_version(source, backup)
        if source.pragma("integrity_check") != "ok":
            raise StoreDamaged(f"the backup {backup} is damaged; nothing was changed")
    arriving = target.with_name(f"{target.name}.restore-{os.getpid()}")
    copy(backup, arriving, Options(), progress)
    try:
        with translated(arriving, "opening"), closing(connect(arriving, Options(), create=False)) as connection:
            migrate(connection, arriving)
        aside = _set_aside(target) if target.exists() else None
        arriving.rename(target)
    except BaseException:
        arriving.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)
    return aside


def _copy_pages(reader: apsw.Connection, writer: apsw.Connection, progress: Progress | None) -> None:
    # One step, in one read transaction: a copy in several steps would start over whenever somebody writes.
    with writer.backup("main", reader, "main") as pages:
        pages.step(-1)
        if progress is not None:
            progress("pages", pages.page_count, pages.page_count)


def _set_aside(target: Path) -> Path:
    """Rename a database that nobody uses, its write-ahead log included."""
    with translated(target, "opening"), closing(apsw.Connection(str(target), flags=apsw.SQLITE_OPEN_READWRITE)) as old:
        # Leaving WAL mode empties the log into the file, and is refused while anybody else has it open.
        try:
            in_use = old.pragma("journal_mode", "delete") != "delete"
        except (apsw.BusyError, apsw.LockedError):
            in_use = True
        if in_use:
            raise StoreBusy(f"{target} is in use; stop what uses it and try again, nothing was changed")
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
    aside = target.with_name(f"{target.name}.before-restore-{stamp}")
    target.rename(aside)
    return aside
