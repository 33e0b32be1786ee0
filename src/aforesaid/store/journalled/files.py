"""The files of a store while they are in use: opened, journalled, written anew from time to time."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final
from uuid import uuid4

from aforesaid.domain.report import Check
from aforesaid.errors import InvalidInput, StoreDamaged, StoreError
from aforesaid.store import contract
from aforesaid.store.contract import Progress
from aforesaid.store.ephemeral.state import State
from aforesaid.store.journalled import restoring
from aforesaid.store.journalled.disk import Disk, Lock, make_folders, replace_file, translated
from aforesaid.store.journalled.journal import Journal, Read, journals_of, read_journal
from aforesaid.store.journalled.layout import LOST, DamagedFile, Header, Layout, Record, Snapshot, Touched
from aforesaid.store.journalled.restoring import label, rebuild, undo_interrupted_restore
from aforesaid.store.journalled.tables import TABLES

_log: Final = logging.getLogger("aforesaid.store")

LARGEST_JOURNAL: Final = 4 << 20
"""The files are written anew when the journal is larger than this and than the files (4 MB)."""
ERASED: Final = "erased"
"""Marks the record of a purge: the files must be written anew before anybody uses them."""
_WORTH_IT: Final = 8
"""In a pause they are written anew when the journal has at least this part (one eighth) of their size."""


class Files:
    """The files of one store, held by this process. One thread uses them."""

    def __init__(self, layout: Layout, disk: Disk | None = None) -> None:
        """Take the lock and read everything into `state`."""
        self.layout = layout
        self.disk = disk or Disk()
        self.state = State()
        self.written = 0
        """How large the files are."""
        self.last_error: str | None = None
        self.set_aside: list[str] = []
        """What was damaged when the files were opened, and where it is kept."""
        self.loss_lists: list[Path] = []
        """The files that list what could not be recovered. Whoever has dealt with it removes them."""
        self._touched: set[Touched] = set()
        self._all_touched = False
        self._purge_unfinished = False
        self._background: threading.Thread | None = None
        with translated(layout.path, "opening"):
            layout.prepare(self.disk)
            self._lock = Lock(layout.beside.with_name(layout.beside.name + ".lock"), layout.path)
            try:
                undo_interrupted_restore(self.disk, layout)
                self._journal = self._open()
                if self._purge_unfinished:
                    # What was erased is still in the files, and in the journals before the erasure.
                    self.write_now(self.state, everything=True)
                elif self.set_aside:
                    self._write_rebuilt()
                self.loss_lists = layout.loss_lists()
            except BaseException:
                self._lock.release()
                raise

    @property
    def store(self) -> str:
        """A name that no other store has."""
        return self._header.store

    @property
    def journalled(self) -> int:
        """How large the journals are that the files do not have yet."""
        return self._journal.size

    def losses(self) -> list[str]:
        """Return what could not be recovered of damaged files, when they were opened now or earlier."""
        return [
            f"not recovered: {line}; add it again or restore a backup, then remove {path}"
            for path in self.loss_lists
            if path.exists()
            for line in path.read_text(encoding="utf-8").splitlines()
        ]

    def append(self, records: Sequence[Record], touched: AbstractSet[Touched]) -> None:
        """Write change sets down. When this returns, they are on the disk."""
        with translated(self.layout.path, "writing to"):
            if self._journal.broken:
                self._mend()
            self._touched |= touched
            self._journal.append(records)

    def write_when_due(self, state: State, *, pause: bool) -> None:
        """Have the files written anew, in the background, when the journal has grown enough."""
        size = self._journal.size
        if pause:
            # Whoever looks for a new account finds its folder.
            new_folder = self.layout.kind == "files" and any(table == "users" for _, table in self._touched)
            worth_it = new_folder or size * _WORTH_IT >= self.written
        else:
            worth_it = size >= max(LARGEST_JOURNAL, self.written)
        if not self._unwritten or not worth_it or self.busy:
            return
        try:
            snapshot, old = self._turn_over(state)
        except (OSError, StoreError) as error:
            self.note(error)
            return
        self._background = threading.Thread(
            target=self._write, args=(snapshot, old), name="aforesaid-files", daemon=True
        )
        self._background.start()

    @property
    def _unwritten(self) -> bool:
        return bool(self._touched) or self._all_touched

    @property
    def busy(self) -> bool:
        """Whether the files are being written."""
        return self._background is not None and self._background.is_alive()

    def write_now(self, state: State, *, everything: bool = False) -> None:
        """Write the files anew, those that changed or all. Raises when that fails; nothing is lost then."""
        self.settle()
        self._all_touched = self._all_touched or everything
        with translated(self.layout.path, "writing"):
            if self._journal.broken:
                self._mend()
                return
            snapshot, old = self._turn_over(state)
            self._replace(snapshot, old)

    def settle(self) -> None:
        """Wait until the files are not being written."""
        if self._background is not None:
            self._background.join()
            self._background = None

    def close(self, state: State) -> None:
        """Write what the files do not have yet, and let go of everything."""
        self.settle()
        try:
            if self._unwritten:
                self.write_now(state)
            self._journal.close()
            self.disk.unlink(self._journal.path)
        except (OSError, StoreError) as error:
            # Nothing is lost: what was acknowledged is in the journal, which is read when it is opened again.
            self.note(error)
            self._journal.cut()
        finally:
            self._journal.close()
            self._lock.release()

    def let_go(self) -> None:
        """Release the lock without writing anything."""
        self.settle()
        self._journal.close()
        self._lock.release()

    def _open(self) -> Journal:
        state = self.state
        damaged: list[DamagedFile] = []
        header = self.layout.load(
            lambda name, record: restoring.put_row(state, name, record),
            damaged.append,
        )
        self.written = self.layout.size()
        journals = journals_of(self.layout.beside)
        current = {number: path for number, path in journals.items() if header is None or number >= header.journal}
        self._expect_all(header, current)
        self._header = header or Header(uuid4().hex, 1)
        self._all_touched = header is None
        journal = None
        for number, path in current.items():
            journal = self._replay(state, number, path, newest=number == max(current))
        for number in journals.keys() - current.keys():
            self.disk.unlink(journals[number])
        restoring.finish(state)
        self._rebuild(damaged)
        if journal is not None:
            return journal
        return Journal.begin(
            self.disk, self._journal_path(self._header.journal), self._header.journal, self._header.store
        )

    def _rebuild(self, damaged: Sequence[DamagedFile]) -> None:
        """Copy damaged files to another name, and go on with what can be read or made again of their content."""
        # Messages first: what is rebuilt of the other files refers to no message that is lost.
        for file in sorted(damaged, key=lambda file: "messages" not in file.tables):
            owner = self.layout.owner_of(file.path, self.state)
            if owner is None:
                raise StoreDamaged(file.error)
            rebuild(self.state, owner, file, [each.path for each in damaged])
            aside = file.path.with_name(f"{file.path.name}.{label('damaged')}")
            make_folders(self.disk, aside.parent)
            if file.path.exists():
                replace_file(self.disk, aside, [file.path.read_bytes()])
            if file.lost:
                named = "".join(f"{file.path.parent.name}/{line}\n" for line in file.lost)
                replace_file(self.disk, aside.with_name(aside.name + LOST), [named.encode()])
            kept = f"was damaged; it is kept as {aside.name}" if aside.exists() else "was gone"
            self.set_aside.append(
                f"{file.path} {kept}; what is intact is used, and the rest is made again if it can be"
            )
            _log.error("%s", "; ".join([self.set_aside[-1], *(f"not recovered: {line}" for line in file.lost)]))
        self._all_touched = self._all_touched or bool(damaged)

    def _write_rebuilt(self) -> None:
        """Replace damaged files by rebuilt ones. If the disk refuses, the store is used all the same, as in memory."""
        try:
            self.write_now(self.state, everything=True)
        except (OSError, StoreError) as error:
            self.note(error)

    def _replay(self, state: State, number: int, path: Path, *, newest: bool) -> Journal | None:
        read = read_journal(path, newest=newest)
        self._expect_ours(path, read)
        for record in read.records:
            try:
                restoring.replay(state, record)
                self._purge_unfinished = self._purge_unfinished or ERASED in record
            except (restoring.UnknownRecord, KeyError, TypeError, ValueError, AttributeError) as error:
                raise StoreDamaged(
                    f"{path} holds what cannot be read ({error}); run: aforesaid verify --repair"
                ) from error
        # Whose records they are is not worked out again: everything is written once.
        self._all_touched = self._all_touched or bool(read.records)
        if not newest:
            return None
        if read.store is None:
            return Journal.begin(self.disk, path, number, self._header.store)
        return Journal.resume(self.disk, path, number, read)

    def _expect_all(self, header: Header | None, current: dict[int, Path]) -> None:
        first = 1 if header is None else header.journal
        if current and list(current) != list(range(first, first + len(current))):
            what = "the files are gone" if header is None else f"journal {first} is gone"
            raise StoreDamaged(
                f"{self.layout.path} has journals that do not fit: {what}; bring back what was removed, or run: "
                "aforesaid verify --repair"
            )

    def _expect_ours(self, path: Path, read: Read) -> None:
        if read.store not in (None, self._header.store) and self._header.journal > 1:
            raise StoreDamaged(f"{path} belongs to other files than {self.layout.path}; move one of them away")
        if read.store is not None:
            self._header = replace(self._header, store=read.store)

    def _journal_path(self, number: int) -> Path:
        return self.layout.beside.with_name(f"{self.layout.beside.name}.journal-{number:06d}")

    def _turn_over(self, state: State) -> tuple[Snapshot, list[Path]]:
        """Begin a new journal, and return the state at this moment with the journals that come before it."""
        number = self._journal.number + 1
        old = [path for each, path in journals_of(self.layout.beside).items() if each < number]
        begun = Journal.begin(self.disk, self._journal_path(number), number, self._header.store)
        left, self._journal = self._journal, begun
        if not left.broken:
            left.close()
        touched, self._touched = (None if self._all_touched else self._touched), set()
        self._all_touched = False
        return Snapshot(restoring.still(state), replace(self._header, journal=number), touched), old

    def _write(self, snapshot: Snapshot, old: list[Path]) -> None:
        try:
            with translated(self.layout.path, "writing"):
                self._replace(snapshot, old)
        except Exception as error:
            # The thread has nobody to raise to. What the files lack is in the journals, which are kept.
            self.note(error)

    def _replace(self, snapshot: Snapshot, old: list[Path]) -> None:
        try:
            self.written = self.layout.write(self.disk, snapshot)
        except BaseException:
            self._all_touched = self._all_touched or snapshot.touched is None
            self._touched |= snapshot.touched or set()
            raise
        self._header = snapshot.header
        for path in old:
            self.disk.unlink(path)
        self.last_error = None

    def _mend(self) -> None:
        """Leave a journal that cannot be relied on behind: write the files anew, without what was not acknowledged."""
        self.settle()
        broken = self._journal
        broken.cut()
        snapshot, old = self._turn_over(self.state)
        try:
            self._replace(snapshot, old)
        except BaseException:
            # Back to the broken one: what comes after it in a new journal would bring back what it has at its end.
            begun, self._journal = self._journal, broken
            begun.close()
            self.disk.unlink(begun.path)
            raise
        broken.close()

    def note(self, error: Exception) -> None:
        """Keep an error for health and for the administrator."""
        _log.error("%s", error)
        self.last_error = str(error)


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
        contract.run("files", lambda: _read_files(files, read)),
        contract.run("journal", lambda: _read_journals(files, read)),
        contract.run("memory", lambda: _differences(read, state)),
        contract.run("hashes", hashes),
        contract.run("references", lambda: _references(state)),
        contract.run("losses", files.losses),
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
            layout.write(files.disk, Snapshot(restoring.still(state), Header(files.store, 1), None))
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
        files.layout.load(lambda name, record: restoring.put_row(read, name, record), damaged.append)
    except StoreError as error:
        yield str(error)
    yield from (file.error for file in damaged)


def _read_journals(files: Files, read: State) -> Iterator[str]:
    journals = journals_of(files.layout.beside)
    for number, path in journals.items():
        try:
            for record in read_journal(path, newest=number == max(journals)).records:
                restoring.replay(read, record)
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
    last = {name: max(getattr(state, name), default=0) for name in restoring.NUMBERED.values()}
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
