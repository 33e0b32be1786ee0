"""Reading whatever is whole in damaged files and journals."""

from __future__ import annotations

import re
from pathlib import Path

from aforesaid.domain.transfer import Row
from aforesaid.store.ephemeral.dumping import rows
from aforesaid.store.ephemeral.state import State
from aforesaid.store.findings import Salvage, missing, ranges
from aforesaid.store.journalled import loading
from aforesaid.store.journalled.disk import Disk, Lock, translated
from aforesaid.store.journalled.journal import journals_of
from aforesaid.store.journalled.layout import Layout
from aforesaid.store.journalled.lines import DamagedRecord, Record, read_line, salvaged
from aforesaid.store.journalled.restoring import undo_interrupted_restore
from aforesaid.store.journalled.tables import BY_NAME


def salvage(layout: Layout) -> Salvage:
    """Read everything that is whole. The files themselves are not touched."""
    state = State()

    def put(name: str, record: Record) -> None:
        loading.put(state, name, record)

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
    for what, table in loading.NUMBERED.items():
        there = getattr(state, table).keys()
        lost += missing(what, there, state.given.get(table, 0), damaged if table == "log" else ())
    _drop_loose_ends(state)
    found: list[Row] = list(rows(loading.finish(state), vectors=False))
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
    for name, table in loading.NUMBERED.items():
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
        loading.replay(state, record)
    except (loading.UnknownRecord, KeyError, TypeError, ValueError, AttributeError):
        return  # a record of a kind that is not known; its checksum is right, so it is nothing that was lost


def _drop_loose_ends(state: State) -> None:
    """Drop what refers to a message that is gone: vectors are made again, a memory goes on without that source."""
    for key in [key for key in state.vectors if key[1] not in state.log]:
        del state.vectors[key]
    for table in BY_NAME.values():
        if table.name == "memory_versions":
            for memory in [memory for memory in state.versions if memory not in state.memories]:
                del state.versions[memory]
