"""Readable files that come back: read after they were edited, copied or damaged, or put in the place of others."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from aforesaid.domain.message import Message
from aforesaid.domain.transfer import draft_of
from aforesaid.errors import StoreDamaged, StoreError, StoreRefused
from aforesaid.extras import re
from aforesaid.store.contract import Salvage, missing, ranges
from aforesaid.store.readable import document
from aforesaid.store.readable.disk import Lock
from aforesaid.store.readable.document import ADVICE, DamagedRecord, Header, Read, unsealed
from aforesaid.store.readable.layouts import FILES, WINDOWS, File, Layout, folder_name
from aforesaid.store.readable.records import NUMBERED, Name, Record, Records, as_key
from aforesaid.store.sqlite.connection import translated
from aforesaid.store.sqlite.salvaging import salvage as salvage_database

_ON_MEMORIES: Final = ("forget", "memory.")
_KEEPS: Final = frozenset({"memory.add", "memory.supersede", "memory.expire", "memory.read", "memory.search"})
"""What the audit log calls actions on memories that take none away."""
_INDEX: Final = File("", ())


@dataclass(frozen=True, slots=True)
class DamagedFile:
    """A damaged file, of which what is whole is used."""

    path: Path
    file: File
    error: StoreError
    lost: list[str]
    """What could not be read of it, one line each."""


@dataclass(slots=True)
class FilesRead:
    """What readable files hold."""

    header: Header = field(default=Header("", 0))
    """Nobody's where there is no index."""
    records: Records = field(default_factory=Records)
    error: StoreError | None = None
    """Why they cannot be used without a repair."""
    damaged: list[DamagedFile] = field(default_factory=list)
    edited: set[int] = field(default_factory=set)
    """Messages that somebody changed."""
    doubtful: dict[Path, list[str]] = field(default_factory=dict)
    """Records of which one byte changed, by file."""

    def take(self, path: Path, read: Read) -> None:
        """Add what a file holds."""
        for table, found in read.records.items():
            there = self.records[table]
            if table in NUMBERED and (twice := there.keys() & found.keys()):
                self.error = self.error or StoreDamaged(
                    f"{path} has {table} {min(twice)}, and so has another account; a copy of another store's account "
                    "cannot be put beside these: export and import it"
                )
            there.update(found)
        self.edited |= read.edited_messages
        if read.doubtful:
            self.doubtful[path] = read.doubtful


def read_files(layout: Layout) -> FilesRead | None:
    """Read all files and the journals of an earlier version: all that is whole. Returns None where there are none."""
    found, journals = FilesRead(), journals_of(layout.beside)
    if layout.index.exists():
        index = document.read(layout.index, layout.kind)
        found.take(layout.index, index)
        found.header, found.error = index.header or found.header, index.error
        if index.error is not None:
            lost = index.lost(layout.shown(layout.index))
            found.damaged.append(DamagedFile(layout.index, _INDEX, index.error, lost))
    elif any((account / "account.json").exists() for account in layout.accounts()) and 1 not in journals:
        found.error = StoreDamaged(f"{layout.index} is gone, but accounts are there{ADVICE}")
    elif not journals:
        return None
    # The index is written last: all files of the accounts that it lists were there.
    listed = layout.folders_of(found.records["users"])
    for account in sorted({*layout.accounts(), *listed}):
        for file in FILES:
            path = account / file.name
            if path.exists():
                _take_file(layout, path, file, document.read(path, layout.kind), found)
            elif file.log and account in listed:
                _take_file(layout, path, file, Read(error=StoreDamaged(f"{path} is gone")), found)
    _replay(found, layout, journals)
    return found


def _take_file(layout: Layout, path: Path, file: File, read: Read, found: FilesRead) -> None:
    if read.error is not None:
        lost = [] if file.window else _lost(layout, path, read, found) if file.log else read.lost(layout.shown(path))
        found.damaged.append(DamagedFile(path, file, read.error, lost))
    if not file.window:
        found.take(path, read)


def _lost(layout: Layout, path: Path, read: Read, found: FilesRead) -> list[str]:
    """Add to what is whole of a damaged history what the windows repeat of it; return what is missing."""
    messages, there = read.records["messages"], len(read.records["messages"])
    for name in WINDOWS:
        window = path.with_name(name)
        if window.exists():
            read.records["messages"] = document.salvage(window.read_bytes()).records["messages"] | messages
            messages = read.records["messages"]
    recovered = len(messages) - there
    if not path.exists():
        return [f"{layout.shown(path)}: the file is gone; {recovered} messages were found in the windows beside it"]
    # A file that is newer than the index was being written: then a window may still have what was erased meanwhile.
    settled = read.header is not None and read.header.counter <= found.header.counter
    return read.lost(layout.shown(path), recovered if settled else 0)


def load(layout: Layout) -> FilesRead | None:
    """Read all files, and bring accounts that lost something into a state from which upkeep makes it again.

    Returns None where there are none. Raises where they cannot be used without a repair.
    """
    found = read_files(layout)
    if found is None:
        return None
    if found.error is not None:
        raise found.error
    owners = {folder_name(name): name for name in found.records["users"]}
    for damaged in found.damaged:
        owner = owners.get(damaged.path.parent.name)
        if owner is None:
            raise damaged.error
        _mend(found, owner, damaged)
    # The vector of a message is that of its text.
    vectors = found.records["vectors"]
    found.records["vectors"] = {key: value for key, value in vectors.items() if key[1] not in found.edited}
    return found


def _mend(found: FilesRead, owner: Name, damaged: DamagedFile) -> None:
    records, tables = found.records, () if damaged.file.window else damaged.file.tables
    mine = records.of_user("messages", owner)
    if "summaries" in tables:
        # Upkeep makes all of them again, from messages that are active again.
        given, numbers = records["numbers_given"], records["summaries"].keys()
        given["summaries"] = max(*numbers, given.get("summaries", 0), 0)
        for number in records.of_user("summaries", owner):
            del records["summaries"][number]
    if "vectors" in tables:
        records["vectors"] = {key: value for key, value in records["vectors"].items() if key[1] not in mine}
    extracted = records["extracted"]
    if "memories" in tables and damaged.path.with_name("audit.json") not in [each.path for each in found.damaged]:
        # A request to forget may have been lost. So messages from before the last one that the audit log knows of, and
        # from before any other time when somebody took a memory away, are not looked through again.
        rows = records.of_user("audit", owner).values()
        took_away = (row.at for row in rows if row.action.startswith(_ON_MEMORIES) and row.action not in _KEEPS)
        last = max(took_away, default=None)
        known = [seq for seq, each in mine.items() if last is not None and each.stored_at <= last]
        extracted[owner] = min(extracted.get(owner, 0), max(known, default=0))
    if "extracted" in tables:
        sources = [seq for each in records.of_user("memories", owner).values() for seq in each.sources]
        if owner not in extracted and sources:
            extracted[owner] = max(sources)
        last_chunk = max([records["chunks"].get(owner, 0), *(each.chunk or 0 for each in mine.values())])
        if last_chunk:
            records["chunks"][owner] = last_chunk


# --- Journals of earlier versions, which hold what was changed after their files were last written --------------------


def journals_of(beside: Path) -> dict[int, Path]:
    """Return the journals whose names begin like this, oldest first."""
    pattern = re.compile(re.escape(beside.name) + r"\.journal-(\d{1,18})")
    names = [entry.name for entry in beside.parent.iterdir()] if beside.parent.is_dir() else []
    found = {int(match[1]): beside.with_name(name) for name in names if (match := pattern.fullmatch(name))}
    return dict(sorted(found.items()))


def _replay(found: FilesRead, layout: Layout, journals: dict[int, Path]) -> None:
    """Make the changes of all journals that go on from the files."""
    first = found.header.counter or 1
    current = {number: path for number, path in journals.items() if number >= first}
    if current and list(current) != list(range(first, first + len(current))):
        what = f"journal {first} is gone" if found.header.store else "the files are gone"
        found.error = found.error or StoreDamaged(
            f"{layout.beside} has journals that do not fit: {what}; bring back what was removed, or run: "
            "aforesaid verify --repair"
        )
    for number, path in current.items():
        lines, damaged, before = _lines(path)
        # What a crash left at the very end was acknowledged to nobody: a line without an end, or sectors of zeros.
        if number == max(current) and all(damaged):
            lines, damaged = lines[:before], []
        error = f"{path} is damaged{ADVICE}" if damaged else ""
        lost = len(damaged)
        if found.header.counter > 1 and lines and lines[0].get("store") not in (None, found.header.store):
            error = error or f"{path} belongs to other files than {layout.beside}; move one of them away"
        for line in lines:
            try:
                # Making them twice is as good as once.
                for name, packed in line.get("put", {}).items():
                    for each in packed:
                        found.records.put(name, each)
                for name, keys in line.get("gone", {}).items():
                    for key in keys:
                        found.records.get(name, {}).pop(as_key(key), None)
            except (KeyError, TypeError, ValueError, AttributeError) as wrong:
                lost, error = lost + 1, error or f"{path} holds what cannot be read ({wrong}){ADVICE}"
        if error:
            found.error = found.error or StoreDamaged(error)
            told = [f"{path.name}: {lost} of {len(lines) + len(damaged)} lines"] if lost else []
            found.damaged.append(DamagedFile(path, _INDEX, StoreDamaged(error), told))
    if journals:
        found.header = found.header._replace(counter=max(found.header.counter, *journals))


def _lines(path: Path) -> tuple[list[Record], list[bool], int | None]:
    """Return the lines that are whole, whether each other one may be what a crash left, and how many came before it.

    A group of lines was only written once the group before it was known to be on the disk. So a line with two groups
    behind it had been acknowledged.
    """
    found: list[Record] = []
    torn: list[bool] = []
    before, group = None, 0
    for line in path.read_bytes().splitlines(keepends=True):
        try:
            found.append(unsealed(json.loads(line)))
        except (DamagedRecord, ValueError, RecursionError):
            torn.append(b"\0" in line or not line.endswith(b"\n"))
            before = len(found) if before is None else before
            continue
        its_group = int(found[-1].get("group", 0))
        if before is None:
            group = its_group
        elif its_group > group + 1:
            torn = [False for _ in torn]
    return found, torn, before


# --- Repairs ----------------------------------------------------------------------------------------------------------


def label(why: str) -> str:
    """Return what is added to the names of files that are set aside: the reason and the time."""
    return f"{why}-{datetime.now(UTC).strftime('%Y%m%dT%H%M%S%fZ')}"


def database_files(layout: Layout) -> list[Path]:
    """Return the database and what SQLite has beside it."""
    every = [layout.database.with_name(layout.database.name + suffix) for suffix in ("", "-wal", "-shm")]
    return [path for path in every if path.exists()]


def salvage(layout: Layout) -> Salvage:
    """Read everything that is whole, in the database and in the files. Neither is touched."""
    with translated(layout.path, "reading"):
        # Whoever uses the files would go on writing to what is set aside.
        lock = Lock(layout.lock, layout.path)
        try:
            files = read_files(layout) or FilesRead()
            named = [line for path in layout.lists() for line in path.read_text(encoding="utf-8").splitlines()]
            database = None
            if layout.database.exists():
                with suppress(StoreDamaged, StoreRefused):
                    database = salvage_database(layout.database)
        finally:
            lock.release()
    given, messages = files.records["numbers_given"], files.records["messages"]
    if database is not None:
        there = {row.seq for row in database.rows if isinstance(row, Message)}
        back = [message for seq, message in messages.items() if seq not in there]
        named += [line for line in database.lost if not back or not line.startswith("messages that are not")]
        if back:
            named += missing("messages", there | messages.keys(), max([*there, *messages, given.get("log", 0)]))
        log = sorted([*(row for row in database.rows if isinstance(row, Message)), *back], key=lambda row: row.seq)
        return Salvage([*log, *(row for row in database.rows if not isinstance(row, Message))], tuple(named))
    named += [line for damaged in files.damaged for line in damaged.lost]
    changed = [
        seq for seq, message in messages.items() if seq not in files.edited and draft_of(message).hash != message.hash
    ]
    for seq in changed:
        del messages[seq]
    if changed:
        named.append(f"messages that are not what was stored: {ranges(changed)}")
    for table, name in (("messages", "log"), ("summaries", "summaries"), ("memories", "memories")):
        named += missing(table, files.records[table], given.get(name, 0), changed if table == "messages" else ())
    return Salvage(list(files.records.rows()), tuple(named))
