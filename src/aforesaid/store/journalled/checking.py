"""Checking files against what is in memory, and copying them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from aforesaid.domain.report import Check
from aforesaid.errors import InvalidInput, StoreError
from aforesaid.store import findings
from aforesaid.store.contract import Progress
from aforesaid.store.ephemeral.state import State
from aforesaid.store.journalled import loading
from aforesaid.store.journalled.disk import make_folders, translated
from aforesaid.store.journalled.files import Files
from aforesaid.store.journalled.journal import journals_of, read_journal
from aforesaid.store.journalled.layout import DamagedFile, Header, Snapshot
from aforesaid.store.journalled.tables import TABLES


def verify(files: Files, state: State, progress: Progress | None) -> tuple[Check, ...]:
    """Read everything again."""
    files.settle()
    read = State()

    def hashes() -> Iterator[str]:
        for done, entry in enumerate(state.log.values(), 1):
            if not entry.intact:
                yield f"{entry.message.id} is not what was stored"
            if progress is not None:
                progress("hashes", done, len(state.log))

    return (
        findings.run("files", lambda: _read_files(files, read)),
        findings.run("journal", lambda: _read_journals(files, read)),
        findings.run("memory", lambda: _differences(read, state)),
        findings.run("hashes", hashes),
        findings.run("references", lambda: _references(state)),
        findings.run("losses", files.losses),
    )


def copy(files: Files, state: State, target: Path) -> None:
    """Write a state to a place where there is nothing yet. It gets its name when it is complete and on the disk."""
    target = target.expanduser().absolute()
    if target.exists():
        raise InvalidInput(f"{target} exists already; choose another name, nothing was overwritten")
    unfinished = target.with_name(f"{target.name}.part-{uuid4().hex}")
    layout = files.layout.elsewhere(unfinished)
    with translated(target, "copying to"):
        try:
            make_folders(files.disk, target.parent)
            layout.prepare(files.disk)
            layout.write(files.disk, Snapshot(loading.still(state), Header(files.store, 1), None))
            files.disk.replace(unfinished, target)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise
        files.disk.sync_folder(target.parent)


def _read_files(files: Files, read: State) -> Iterator[str]:
    damaged: list[DamagedFile] = []
    try:
        files.layout.load(lambda name, record: loading.put(read, name, record), damaged.append)
    except StoreError as error:
        yield str(error)
    yield from (file.error for file in damaged)


def _read_journals(files: Files, read: State) -> Iterator[str]:
    journals = journals_of(files.layout.beside)
    for number, path in journals.items():
        try:
            for record in read_journal(path, newest=number == max(journals)).records:
                loading.replay(read, record)
        except StoreError as error:
            yield str(error)


def _differences(read: State, state: State) -> Iterator[str]:
    for table in TABLES:
        written, held = getattr(read, table.state), getattr(state, table.state)
        if table.name == "numbers_given":
            written, held = _last_numbers(read), _last_numbers(state)
        for key in written.keys() ^ held.keys():
            yield f"{table.name} {key} is {'only in the files' if key in written else 'not in the files'}"
        for key in written.keys() & held.keys():
            if written[key] != held[key]:
                yield f"{table.name} {key} is another in the files"


def _last_numbers(state: State) -> dict[str, int]:
    """Return the last number of each table. Files have it also where it follows from the records."""
    last = {name: max(getattr(state, name), default=0) for name in loading.NUMBERED.values()}
    every = {name: max(last.get(name, 0), state.given.get(name, 0)) for name in {*last, *state.given}}
    return {name: number for name, number in every.items() if number}


def _references(state: State) -> Iterator[str]:
    for entry in state.log.values():
        message = entry.message
        if ((message.space, message.thread), message.session) not in state.session_names:
            yield f"{message.id} is in a session that does not exist"
        if message.active != (message.chunk is None):
            yield f"{message.id} is archived without a chunk, or active within one"
        if entry.owner not in state.owners:
            yield f"{message.id} belongs to nobody"
    for memory in state.memories.values():
        # Only the oldest ones can have been removed.
        kept = [version.before.revision for version in state.versions.get(memory.id, ())]
        if kept != list(range(memory.revision - len(kept), memory.revision)):
            yield f"the versions of memory {memory.id} are not all there"
