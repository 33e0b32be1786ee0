"""Readable files that come back: read after they were edited, copied or damaged, or put in the place of others."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from aforesaid.domain.checks import microseconds
from aforesaid.domain.message import Message, message_hash, sequence_number
from aforesaid.domain.transfer import Row
from aforesaid.errors import StoreDamaged, StoreRefused
from aforesaid.store.contract import Salvage, missing, ranges
from aforesaid.store.readable import journal
from aforesaid.store.readable.disk import Lock, translated
from aforesaid.store.readable.document import Header
from aforesaid.store.readable.journal import journals_of
from aforesaid.store.readable.layouts import DamagedFile, FilesRead, Layout, folder_name
from aforesaid.store.readable.records import Found, Name
from aforesaid.store.sqlite.salvaging import salvage as salvage_database

_TAKES_NOTHING_AWAY: Final = frozenset(
    {"memory.add", "memory.supersede", "memory.expire", "memory.read", "memory.search"}
)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was read from files."""

    found: Found
    header: Header
    """Nobody's where there were no files yet, but a journal."""
    damaged: list[DamagedFile]
    doubtful: dict[Path, list[str]]
    """Records of which one byte changed, by file."""


def load(layout: Layout) -> Loaded | None:
    """Read all files, and the journals of an earlier version. Returns None where there are none.

    Raises StoreDamaged where they cannot be used without a repair.
    """
    read = layout.read()
    journals = journals_of(layout.beside)
    if read is None and not journals:
        return None
    seen = read or FilesRead(Header("", 0))
    journal.replay_all(seen.records, layout.beside, None if read is None else read.header)
    found = Found(seen.records)
    owners = {folder_name(name): name for name in found.users}
    for file in seen.damaged:
        owner = owners.get(file.path.parent.name)
        if owner is None:
            raise StoreDamaged(file.error)
        _mend(found, owner, file, [each.path for each in seen.damaged])
    # The vector of a message is that of its text.
    changed = {message.seq for message in seen.edited}
    found.vectors = [each for each in found.vectors if each[1] not in changed]
    counter = max(seen.header.counter, *journals) if journals else seen.header.counter
    return Loaded(found, Header(seen.header.store, counter), seen.damaged, seen.doubtful)


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
            read = FilesRead(Header("", 0))
            lost = layout.salvage(read)
            for path in journals_of(layout.beside).values():
                lost += journal.salvage(read.records, path)
            from_files, edited = Found(read.records), {message.seq for message in read.edited}
            known = [line for path in layout.lists() for line in path.read_text(encoding="utf-8").splitlines()]
            from_database = None
            if layout.database.exists():
                with suppress(StoreDamaged, StoreRefused):
                    from_database = salvage_database(layout.database)
        finally:
            lock.release()
    if from_database is None:
        return _named(from_files, [*known, *lost], edited)
    there = {row.seq for row in from_database.rows if isinstance(row, Message)}
    back = [message for seq, message in from_files.messages.items() if seq not in there]
    rows = sorted([*(row for row in from_database.rows if isinstance(row, Message)), *back], key=lambda row: row.seq)
    others = [row for row in from_database.rows if not isinstance(row, Message)]
    named = [line for line in from_database.lost if not back or not line.startswith("messages that are not")]
    if back:
        given = max([*there, *from_files.messages, from_files.given.get("log", 0)])
        named += missing("messages", {row.seq for row in rows}, given)
    return Salvage([*rows, *others], (*known, *named))


def _named(found: Found, lost: list[str], edited: Collection[int]) -> Salvage:
    """Return what files hold, and name what they do not."""
    changed = [seq for seq, message in found.messages.items() if seq not in edited and not intact(message)]
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
