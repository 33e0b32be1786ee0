"""Readable files that come back: read after they were edited, copied or damaged, or put in the place of others."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from aforesaid.domain.checks import microseconds
from aforesaid.domain.message import Message, message_hash, sequence_number
from aforesaid.domain.transfer import Row
from aforesaid.errors import InvalidInput, StoreDamaged, StoreRefused
from aforesaid.store.contract import Salvage, missing, ranges
from aforesaid.store.readable import journal
from aforesaid.store.readable.disk import NO_LINKS, Disk, Lock, make_folders, replace_file, translated
from aforesaid.store.readable.document import Header
from aforesaid.store.readable.journal import journals_of
from aforesaid.store.readable.layouts import LOST, DamagedFile, Layout, folder_name
from aforesaid.store.readable.records import Found, Name, Record, Records, put
from aforesaid.store.sqlite.salvaging import salvage as salvage_database

_MARKER: Final = ".restoring"
_BESIDE_DATABASE: Final = ("", "-wal", "-shm")
_TAKES_NOTHING_AWAY: Final = frozenset(
    {"memory.add", "memory.supersede", "memory.expire", "memory.read", "memory.search"}
)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was read from files."""

    found: Found
    header: Header
    """Nobody's where there were no files yet, but a journal."""
    damaged: tuple[DamagedFile, ...]


def load(layout: Layout) -> Loaded | None:
    """Read all files, and the journals of an earlier version. Returns None where there are none.

    Raises StoreDamaged where they cannot be used without a repair.
    """
    records: Records = {}
    damaged: list[DamagedFile] = []

    def put_record(name: str, record: Record) -> None:
        put(records, name, record)

    header = layout.read(put_record, damaged.append)
    if header is None and not journals_of(layout.beside):
        return None
    journal.replay_all(records, layout.beside, header)
    found = Found(records)
    owners = {folder_name(name): name for name in found.users}
    for file in damaged:
        owner = owners.get(file.path.parent.name)
        if owner is None:
            raise StoreDamaged(file.error)
        _mend(found, owner, file, [each.path for each in damaged])
    last = max(journals_of(layout.beside), default=0)
    seal = Header("", 0) if header is None else header
    return Loaded(found, Header(seal.store, max(seal.counter, last)), tuple(damaged))


def _mend(found: Found, owner: Name, file: DamagedFile, damaged: Collection[Path]) -> None:
    """Bring an account without the records that a damaged file lost into a state from which upkeep makes them again."""
    mine = [each for each in found.messages.values() if (each.space, each.user) == owner]
    if "summaries" in file.tables:
        # Upkeep makes all of them again, from messages that are active again.
        if found.summaries:
            found.given["summaries"] = max(*found.summaries, found.given.get("summaries", 0))
        for number in [each.id for each in found.summaries.values() if (each.space, each.user) == owner]:
            del found.summaries[number]
    if "vectors" in file.tables:
        numbers = {each.seq for each in mine}
        found.vectors = [each for each in found.vectors if each[1] not in numbers]
    if "memories" in file.tables and file.path.with_name("audit.json") not in damaged:
        # A request to forget may have been lost. So messages from before the last one that the audit log knows of, and
        # from before any other time when somebody took a memory away, are not looked through again.
        last = max(
            (each.at for each in found.audit if _took_away(each.action, (each.space, each.user), owner)), default=None
        )
        known = [each.seq for each in mine if last is not None and each.stored_at <= last]
        found.extracted[owner] = min(found.extracted.get(owner, 0), max(known, default=0))
    if "extracted" in file.tables:
        sources = [seq for each in found.memories.values() if (each.space, each.user) == owner for seq in each.sources]
        if owner not in found.extracted and sources:
            found.extracted[owner] = max(sources)
        last_chunk = max([found.chunks.get(owner, 0), *(each.chunk or 0 for each in mine)])
        if last_chunk:
            found.chunks[owner] = last_chunk


def _took_away(action: str, whose: Name, owner: Name) -> bool:
    return whose == owner and (
        action == "forget" or (action.startswith("memory.") and action not in _TAKES_NOTHING_AWAY)
    )


def restore(backup: Layout, target: Layout, *, replace: bool) -> Path | None:
    """Replace a store with a backup. Return where the old store is set aside, or None where there was none."""
    disk = Disk()
    if not backup.path.expanduser().exists():
        raise InvalidInput(f"there is no backup at {backup.path}; nothing was changed")
    with translated(backup.path, "reading"):
        names = [path for path in backup.files() if path.suffix == ".json" or path == backup.main]
        read = [backup.check(path) for path in names]
    if not read:
        raise InvalidInput(f"{backup.path} is not a backup of a store")
    if not replace and (target.path.expanduser().exists() or journals_of(target.beside) or target.database.exists()):
        raise InvalidInput(f"{target.path} exists already; with --replace it is set aside under another name")
    with translated(target.path, "replacing"):
        target.prepare(disk)
        lock = Lock(target.beside.with_name(target.beside.name + ".lock"), target.path)
        try:
            undo_interrupted_restore(disk, target)
            return _replace(disk, backup, target)
        finally:
            lock.release()


def undo_interrupted_restore(disk: Disk, layout: Layout) -> None:
    """Put the old files back if a restore was interrupted. The caller holds the lock of the store."""
    marker = _marker(layout)
    if not marker.exists():
        return
    names = [tuple(pair) for pair in json.loads(marker.read_text(encoding="utf-8"))]
    base = layout.beside.parent
    for path in files_of(layout):
        disk.unlink(path)
    for name, aside in names:
        make_folders(disk, (base / name).parent)
        _give_second_name(disk, base / aside, base / name)
    for folder in {(base / name).parent for name, _ in names}:
        disk.sync_folder(folder)
    disk.unlink(marker)
    disk.sync_folder(base)
    with suppress(OSError):  # leftovers of the attempt; the store itself is whole again
        for _, aside in names:
            disk.unlink(base / aside)


def label(why: str) -> str:
    """Return what is added to the names of files that are set aside: the reason and the time."""
    return f"{why}-{datetime.now(UTC).strftime('%Y%m%dT%H%M%S%fZ')}"


def _replace(disk: Disk, backup: Layout, target: Layout) -> Path | None:
    stamp = label("before-restore")
    old = files_of(target)
    base = target.beside.parent
    names = []
    for path in old:
        aside = target.aside(path, stamp)
        make_folders(disk, aside.parent)
        _give_second_name(disk, path, aside)
        names.append((path.relative_to(base).as_posix(), aside.relative_to(base).as_posix()))
    for folder in {(base / aside).parent for _, aside in names}:
        disk.sync_folder(folder)
    marker = _marker(target)
    replace_file(disk, marker, [json.dumps(names).encode()])
    try:
        for path in old:
            disk.unlink(path)
        for path in backup.files():
            # The file about all accounts is the last of them.
            there = target.main if path == backup.main else target.main / path.relative_to(backup.main)
            make_folders(disk, there.parent)
            replace_file(disk, there, [path.read_bytes()])
        disk.unlink(marker)
    except BaseException:
        with suppress(OSError):  # the marker is still there, and the next open tries again
            undo_interrupted_restore(disk, target)
        raise
    disk.sync_folder(base)
    return target.aside(target.main, stamp) if old else None


def database_files(layout: Layout) -> list[Path]:
    """Return the database and what SQLite has beside it."""
    every = [layout.database.with_name(layout.database.name + suffix) for suffix in _BESIDE_DATABASE]
    return [path for path in every if path.exists()]


def files_of(layout: Layout) -> list[Path]:
    """Return all files of a store."""
    return [*journals_of(layout.beside).values(), *database_files(layout), *layout.files()]


def _marker(layout: Layout) -> Path:
    return layout.beside.with_name(layout.beside.name + _MARKER)


def _give_second_name(disk: Disk, path: Path, name: Path) -> None:
    """Link a file under another name, or copy it where the file system has no links."""
    disk.unlink(name)
    try:
        disk.link(path, name)
    except (OSError, NotImplementedError) as error:
        if isinstance(error, OSError) and error.errno not in NO_LINKS:
            raise
        replace_file(disk, name, [path.read_bytes()])
        os.utime(name, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))


def salvage(layout: Layout) -> Salvage:
    """Read everything that is whole, in the database and in the files. Neither is touched."""
    with translated(layout.path, "reading"):
        # Whoever uses the files would go on writing to what is set aside.
        lock = Lock(layout.beside.with_name(layout.beside.name + ".lock"), layout.path)
        try:
            undo_interrupted_restore(Disk(), layout)
            from_files, lost = _salvage_files(layout)
            lists = [path for path in layout.files() if path.suffix == LOST]
            known = [line for path in lists for line in path.read_text(encoding="utf-8").splitlines()]
            from_database = None
            if layout.database.exists():
                with suppress(StoreDamaged, StoreRefused):
                    from_database = salvage_database(layout.database)
        finally:
            lock.release()
    if from_database is None:
        return _named(from_files, [*known, *lost])
    there = {row.seq for row in from_database.rows if isinstance(row, Message)}
    back = [message for seq, message in from_files.messages.items() if seq not in there]
    rows = sorted([*(row for row in from_database.rows if isinstance(row, Message)), *back], key=lambda row: row.seq)
    others = [row for row in from_database.rows if not isinstance(row, Message)]
    named = [line for line in from_database.lost if not back or not line.startswith("messages that are not")]
    if back:
        given = max([*there, *from_files.messages, from_files.given.get("log", 0)])
        named += missing("messages", {row.seq for row in rows}, given)
    return Salvage([*rows, *others], (*known, *named))


def _salvage_files(layout: Layout) -> tuple[Found, list[str]]:
    records: Records = {}

    def put_record(name: str, record: Record) -> None:
        put(records, name, record)

    lost = layout.salvage(put_record)
    for path in journals_of(layout.beside).values():
        lost += journal.salvage(records, path)
    return Found(records), lost


def _named(found: Found, lost: list[str]) -> Salvage:
    """Return what files hold, and name what they do not."""
    changed = [seq for seq, message in found.messages.items() if not intact(message)]
    for seq in changed:
        del found.messages[seq]
    if changed:
        lost.append(f"messages that are not what was stored: {ranges(changed)}")
    for what, table, there in (
        ("messages", "log", found.messages),
        ("summaries", "summaries", found.summaries),
        ("memories", "memories", found.memories),
    ):
        lost += missing(what, there, found.given.get(table, 0), changed if table == "log" else ())
    rows: list[Row] = list(found.rows())
    return Salvage(rows, tuple(lost))


def intact(message: Message) -> bool:
    """Tell whether a message is what was stored."""
    given = None if sequence_number(message.id) == message.seq else message.id
    names = message.space, message.user, message.thread, given, message.role, message.author, message.name
    times = microseconds(message.at, "at"), microseconds(message.stored_at, "stored_at")
    return message.hash == message_hash(*names, message.text, *times, message.details)
