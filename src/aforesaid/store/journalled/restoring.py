"""Opens files again: loads, checks, salvages, rebuilds."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from aforesaid.domain.checks import now
from aforesaid.domain.memory import NoteKey
from aforesaid.domain.message import Message
from aforesaid.domain.scope import SESSION_SILENCE, Session, opening_message
from aforesaid.domain.transfer import Row
from aforesaid.errors import InvalidInput
from aforesaid.store.contract import Salvage, missing, ranges
from aforesaid.store.ephemeral.dumping import rows
from aforesaid.store.ephemeral.state import KeptSession, Name, Numbers, State, as_microseconds
from aforesaid.store.journalled.codec import decode
from aforesaid.store.journalled.disk import NO_LINKS, Disk, Lock, make_folders, replace_file, translated
from aforesaid.store.journalled.journal import journals_of
from aforesaid.store.journalled.layout import (
    DamagedFile,
    DamagedRecord,
    Header,
    Layout,
    Record,
    Snapshot,
    read_line,
    salvaged,
    sealed,
)
from aforesaid.store.journalled.tables import BY_NAME, TABLES

NUMBERED: Final = {"messages": "log", "summaries": "summaries", "memories": "memories"}
"""Tables whose records have numbers that people see, by their name in files, and their name in a state."""


class UnknownRecord(ValueError):
    """A record is whole, but says nothing that can be read."""


def put_row(state: State, name: str, record: Record) -> None:
    """Put a record into its table."""
    table = BY_NAME.get(name)
    if table is None:
        raise UnknownRecord(f"there is no table {name!r}")
    try:
        key, value = table.unpack(record)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnknownRecord(f"a record of {name} cannot be read: {error!r}") from error
    getattr(state, table.state)[key] = value


def check_readable(record: Record) -> None:
    """Raise InvalidInput if a line of the journal could not be read back. It is read here, before it is written."""
    try:
        replay(State(), read_line(sealed(record)))
    except (DamagedRecord, UnknownRecord, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InvalidInput(f"this cannot be stored, because it could not be read back: {str(error)[:150]}") from error


def still(state: State) -> State:
    """Return the tables as they are now, for somebody who writes them down while others go on.

    The last number of each table is among them, so that a repair can name the last record too where that is lost.
    """
    copied = State()
    for table in TABLES:
        setattr(copied, table.state, dict(getattr(state, table.state)))
    for name in NUMBERED.values():
        if last := state.last_number(name):
            copied.given[name] = last
    return copied


def replay(state: State, record: Record) -> None:
    """Make the changes of a line of the journal. Making them twice is as good as once."""
    for name, packed in record["put"].items():
        for each in packed:
            put_row(state, name, each)
    for name, keys in record.get("gone", {}).items():
        table = BY_NAME[name]
        for key in keys:
            getattr(state, table.state).pop(decode(table.key, key), None)


def finish(state: State) -> State:
    """Bring the tables into their order, and derive from them what is not written down."""
    for table in TABLES:
        if table.numbered:
            rows: dict[int, Any] = getattr(state, table.state)
            setattr(state, table.state, dict(sorted(rows.items())))
    state.facts = dict(sorted(state.facts.items()))
    state.numbers = Numbers()
    for seq, entry in state.log.items():
        message = entry.message
        here = message.space, message.thread
        state.numbers.add(message)
        if entry.given_id is not None:
            state.by_given_id[here, entry.given_id] = seq
        said_then = here, as_microseconds(message.at)
        state.by_time[said_then] = (*state.by_time.get(said_then, ()), seq)
    for embedder, seq in state.vectors:
        if seq in state.log:
            state.embedded.setdefault((embedder, state.log[seq].message.text), seq)
    derive_threads(state)
    return state


def derive_threads(state: State) -> None:
    """Work out which sessions each thread has."""
    state.threads.clear()
    state.session_names.clear()
    for summary in state.summaries.values():
        state.threads.setdefault((summary.space, summary.thread), ())
    by_start = sorted(state.sessions.values(), key=lambda kept: (kept.stretch.started, kept.key))
    found: dict[tuple[str, str], list[int]] = {}
    for kept in by_start:
        here = kept.session.space, kept.session.thread
        state.session_names[here, kept.session.id] = kept.key
        found.setdefault(here, []).extend([kept.key] if kept.automatic else [])
    state.threads.update({here: tuple(keys) for here, keys in found.items()})


_MARKER: Final = ".restoring"


def restore(backup: Layout, target: Layout, *, replace: bool) -> Path | None:
    """Replace a store with a backup. Return where the old store is set aside, or None where there was none."""
    disk = Disk()
    if not backup.path.expanduser().exists():
        raise InvalidInput(f"there is no backup at {backup.path}; nothing was changed")
    state = State()
    with translated(backup.path, "reading"):
        header = backup.load(lambda name, record: put_row(state, name, record))
    if header is None:
        raise InvalidInput(f"{backup.path} is not a backup of a store")
    if not replace and (target.path.expanduser().exists() or journals_of(target.beside)):
        raise InvalidInput(f"{target.path} exists already; with --replace it is set aside under another name")
    snapshot = Snapshot(finish(state), Header(header.store, 1), None)
    with translated(target.path, "replacing"):
        target.prepare(disk)
        lock = Lock(target.beside.with_name(target.beside.name + ".lock"), target.path)
        try:
            undo_interrupted_restore(disk, target)
            return _replace(disk, target, snapshot)
        finally:
            lock.release()


def undo_interrupted_restore(disk: Disk, layout: Layout) -> None:
    """Put the old files back if a restore was interrupted. The caller holds the lock of the store."""
    marker = _marker(layout)
    if not marker.exists():
        return
    names = [tuple(pair) for pair in json.loads(marker.read_text(encoding="utf-8"))]
    base = layout.beside.parent
    for path in _files(layout):
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


def _replace(disk: Disk, target: Layout, snapshot: Snapshot) -> Path | None:
    stamp = label("before-restore")
    old = _files(target)
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
        target.write(disk, snapshot)
        disk.unlink(marker)
    except BaseException:
        with suppress(OSError):  # the marker is still there, and the next open tries again
            undo_interrupted_restore(disk, target)
        raise
    disk.sync_folder(base)
    return target.aside(target.main, stamp) if old else None


def _files(layout: Layout) -> list[Path]:
    return [path for path in (*journals_of(layout.beside).values(), *layout.files()) if path.exists()]


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
    """Read everything that is whole. The files themselves are not touched."""
    state = State()

    def put(name: str, record: Record) -> None:
        put_row(state, name, record)

    with translated(layout.path, "reading"):
        # Whoever uses the files would go on writing to what is set aside.
        lock = Lock(layout.beside.with_name(layout.beside.name + ".lock"), layout.path)
        try:
            undo_interrupted_restore(Disk(), layout)
            lost = list(layout.salvage(put).lost)
            for path in journals_of(layout.beside).values():
                lost += _journal(state, path)
        finally:
            lock.release()
    damaged = [seq for seq, entry in sorted(state.log.items()) if not entry.intact]
    for seq in damaged:
        del state.log[seq]
    if damaged:
        lost.append(f"messages that are not what was stored: {ranges(damaged)}")
    for what, table in NUMBERED.items():
        there = getattr(state, table).keys()
        lost += missing(what, there, state.given.get(table, 0), damaged if table == "log" else ())
    _drop_loose_ends(state)
    found: list[Row] = list(rows(finish(state), vectors=False))
    return Salvage(found, tuple(lost))


def _journal(state: State, path: Path) -> list[str]:
    data = path.read_bytes()
    lines = [line for line in data.split(b"\n") if line]
    whole = 0
    for record in salvaged(data):
        whole += 1
        if "put" in record:
            _replay(state, record)
    torn = bool(lines) and not data.endswith(b"\n") and not _is_whole(lines[-1])
    damaged = len(lines) - whole - torn
    if damaged <= 0:
        return []
    for line in lines[: len(lines) - torn]:
        if not _is_whole(line):
            _note_numbers(state, line)
    return [f"{path.name}: {damaged} of {len(lines)} lines"]


def _note_numbers(state: State, line: bytes) -> None:
    """Note the numbers that a damaged line gave out, as far as they follow on the numbers that are known.

    The damage may be in a number itself, so no other number is believed.
    """
    for name, table in NUMBERED.items():
        section = re.search(rb'"%b": \[(.*?)(?:\], "[a-z_]+": \[|$)' % name.encode(), line)
        for found in re.findall(rb'\{"id": (\d{1,18}),', section[1] if section else b""):
            last = max([*getattr(state, table), state.given.get(table, 0)])
            if int(found) == last + 1:
                state.given[table] = last + 1


def _is_whole(line: bytes) -> bool:
    try:
        read_line(line)
    except DamagedRecord:
        return False
    return True


def _replay(state: State, record: Record) -> None:
    try:
        replay(state, record)
    except (UnknownRecord, KeyError, TypeError, ValueError, AttributeError):
        return  # a record of a kind that is not known; its checksum is right, so it is nothing that was lost


def _drop_loose_ends(state: State) -> None:
    """Drop what refers to a message that is gone: vectors are made again, a memory goes on without that source."""
    for key in [key for key in state.vectors if key[1] not in state.log]:
        del state.vectors[key]
    for table in BY_NAME.values():
        if table.name == "memory_versions":
            for memory in [memory for memory in state.versions if memory not in state.memories]:
                del state.versions[memory]


_TAKES_NOTHING_AWAY: Final = frozenset(
    {"memory.add", "memory.supersede", "memory.expire", "memory.read", "memory.search"}
)


def rebuild(state: State, owner: Name, file: DamagedFile, damaged: Collection[Path]) -> None:
    """Bring the account of a damaged file into a consistent state, from which upkeep makes again what is missing.

    Messages that are lost stay lost; only what refers to them is mended.

    The intact records of the file are in `state`. `damaged` has the paths of all damaged files.
    """
    if "messages" in file.tables:
        _go_on_without_lost_messages(state)
    if "summaries" in file.tables:
        _drop_summaries(state, owner)
    if "vectors" in file.tables:
        _drop_vectors(state, owner)
    if "memories" in file.tables:
        audited = file.path.with_name("audit.json") not in damaged
        _relearn(state, owner, audited=audited)
    if "extracted" in file.tables:
        _restore_marks(state, owner)


def _go_on_without_lost_messages(state: State) -> None:
    """Drop references to messages that are gone, and bring the sessions to what is left.

    Summaries stay as they are: they may be all that is left of a lost message.
    """
    for key in [key for key in state.vectors if key[1] not in state.log]:
        del state.vectors[key]
    for number, memory in list(state.memories.items()):
        if any(seq not in state.log for seq in memory.sources):
            left = tuple(seq for seq in memory.sources if seq in state.log)
            state.memories[number] = replace(memory, sources=left)
    said: dict[tuple[Name, str], list[Message]] = {}
    for seq, entry in list(state.log.items()):
        message = entry.message
        said.setdefault(((message.space, message.thread), message.session), []).append(message)
        if message.replaces is not None and message.replaces not in state.log:
            state.log[seq] = replace(entry, message=replace(message, replaces=None))
    for place in [place for place in state.session_names if place not in said]:
        del state.sessions[state.session_names[place]]
    sessions = [kept.session for kept in state.sessions.values()]
    timeouts = {(session.space, session.thread): session.timeout for session in sessions}
    for (thread, name), messages in said.items():
        times = [message.at for message in messages]
        known = state.session_names.get((thread, name))
        if known is None:
            # A session belongs to whoever opened it, so messages of others can be in one that is gone.
            timeout = timeouts.get(thread, timedelta(microseconds=SESSION_SILENCE))
            made = Session(name, *thread, messages[0].user, min(times), max(times), len(times), timeout)
            number = state.number("sessions")
            state.sessions[number] = KeptSession(number, made, automatic=opening_message(name) is not None)
        elif state.sessions[known].session.messages != len(times):
            kept = state.sessions[known]
            session = replace(kept.session, started_at=min(times), last_activity=max(times), messages=len(times))
            state.sessions[known] = replace(kept, session=session)
    derive_threads(state)


def _relearn(state: State, owner: Name, *, audited: bool) -> None:
    """Drop what belongs to memories that are gone, and have the messages of the account looked through again.

    A request to forget may have been lost. So messages from before the last one that the audit log knows of, and from
    before any other time when somebody took a memory away, are not looked through again; without the log, none are.
    """
    for memory in [number for number in state.versions if number not in state.memories]:
        if _owner_of_version(state, memory) == owner:
            del state.versions[memory]
    for key in [key for key in state.note_vectors if key[1].kind == "memory" and key[1].id not in state.memories]:
        del state.note_vectors[key]
    for number, memory_record in list(state.memories.items()):
        if memory_record.superseded_by is not None and memory_record.superseded_by not in state.memories:
            state.memories[number] = replace(memory_record, superseded_by=None)
    if audited:
        last = max(
            (each.at for each in state.audit.values() if _took_away(each.action, (each.space, each.user), owner)),
            default=None,
        )
        known = [
            seq for seq in state.numbers.owned(owner) if last is not None and state.log[seq].message.stored_at <= last
        ]
        state.extracted[owner] = min(state.extracted.get(owner, 0), max(known, default=0))


def _owner_of_version(state: State, memory: int) -> Name:
    before = state.versions[memory][0].before
    return before.space, before.user


def _took_away(action: str, whose: Name, owner: Name) -> bool:
    return whose == owner and (
        action == "forget" or (action.startswith("memory.") and action not in _TAKES_NOTHING_AWAY)
    )


def _restore_marks(state: State, owner: Name) -> None:
    """Work out again up to where memories were extracted, and which archive was the last, where that was lost."""
    sources = [seq for each in state.memories.values() if (each.space, each.user) == owner for seq in each.sources]
    if owner not in state.extracted and sources:
        state.extracted[owner] = max(sources)
    chunks = [state.log[seq].message.chunk or 0 for seq in state.numbers.owned(owner)]
    last = max([state.chunks.get(owner, 0), *chunks])
    if last:
        state.chunks[owner] = last


def _drop_vectors(state: State, owner: Name) -> None:
    """Drop the vectors of an account, and have embedders begin again. Texts with a vector are not embedded twice."""
    mine = set(state.numbers.owned(owner))
    for key in [key for key in state.vectors if key[1] in mine]:
        del state.vectors[key]
    known = {
        *(NoteKey("summary", each.id) for each in state.summaries.values() if (each.space, each.user) == owner),
        *(NoteKey("memory", each.id) for each in state.memories.values() if (each.space, each.user) == owner),
    }
    for note in [key for key in state.note_vectors if key[1] in known]:
        del state.note_vectors[note]
    state.embedded.clear()
    for embedder, seq in state.vectors:
        state.embedded.setdefault((embedder, state.log[seq].message.text), seq)
    state.seen.clear()


def _drop_summaries(state: State, owner: Name) -> None:
    """Drop the summaries of an account, and what was derived for it, so that upkeep makes them again.

    Messages that these had archived are active again.
    """
    numbers = [number for number, each in state.summaries.items() if (each.space, each.user) == owner]
    state.given["summaries"] = state.last_number("summaries")
    for number in numbers:
        del state.summaries[number]
    for key in [key for key in state.note_vectors if key[1].kind == "summary" and key[1].id not in state.summaries]:
        del state.note_vectors[key]
    for derived in [key for key in state.derived if key[0] == owner]:
        del state.derived[derived]
    for seq in state.numbers.owned(owner):
        entry = state.log[seq]
        if not entry.message.active:
            state.log[seq] = replace(entry, message=replace(entry.message, active=True, chunk=None))
    for subject, planned in list(state.agenda.items()):
        if (subject.space, subject.user) == owner:
            state.agenda[subject] = replace(planned, due_at=now(), done_at=None, done_seq=0, failures=0, error=None)
