"""The readable files of an open store: whether they or the database beside them count, and when they are written."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import uuid4

import apsw

from aforesaid.domain.change import PutMark
from aforesaid.domain.message import Message
from aforesaid.domain.transfer import Row
from aforesaid.errors import AforesaidError, StoreDamaged, StoreError, StoreRefused, StoreTooNew
from aforesaid.store.checksums import SQLITE as CHECKSUMS
from aforesaid.store.readable.disk import Disk, Lock, make_folders, replace_file, translated
from aforesaid.store.readable.document import Header, pieces
from aforesaid.store.readable.journal import journals_of
from aforesaid.store.readable.layouts import HEALTH_CHECK, LOST, AccountFolders, Document, Layout
from aforesaid.store.readable.records import NUMBERED, Content, Name
from aforesaid.store.readable.restoring import Loaded, database_files, label, load, undo_interrupted_restore
from aforesaid.store.row_importer import RowImporter
from aforesaid.store.sql import dumping
from aforesaid.store.sqlite import SqliteStore
from aforesaid.store.sqlite.connection import Options, connect, sync_folder
from aforesaid.store.sqlite.connection import translated as translated_by_database
from aforesaid.store.sqlite.rows import answered
from aforesaid.store.sqlite.salvaging import salvage as salvage_database
from aforesaid.store.sqlite.verify import refuse_damaged_log
from aforesaid.store.unfinished import unfinished

_log: Final = logging.getLogger("aforesaid.store")

MARK: Final = "readable"
"""The mark in the database that says how the files stand. Each file has another one, named after it."""
_PUT_MARK: Final = CHECKSUMS.insert_or_replace("mark", ("name", "value"), ("name",))
_PAUSE_SECONDS: Final = 1.0
"""Seconds without a change after which the files are written."""
_PAUSE_PER_WRITING: Final = 10.0
"""They wait for a pause of so many times what writing them took, so that it takes a tenth of the time at most."""


@dataclass(frozen=True, slots=True)
class State:
    """What the database knows of the files."""

    store: str
    """The seal: a name that no other store has, and how often the files were written."""
    counter: int = 0
    writing: int = 0
    """The counter of files that were being written when the process ended."""
    clean: bool = False
    """Whether the files have all that the database has."""
    erasing: bool = False
    """Whether something was erased that the files may still have."""
    last: int = 0
    """The last message that the files have."""


class Seal(NamedTuple):
    """A file as it was written."""

    size: int
    modified: int
    counter: int
    digest: str
    """Of its records."""
    shown: str
    """Of its records and of what it says at its head."""


class Files:
    """The files of one store, held by this process."""

    def __init__(self, layout: Layout, disk: Disk | None = None) -> None:
        """Take the lock, or raise StoreBusy."""
        self.layout = layout
        self.disk = disk or Disk()
        self.state = State(uuid4().hex)
        self.set_aside: list[str] = []
        """What was damaged when the store was opened, and where it is kept."""
        self.last_error: str | None = None
        self.is_new_account = False
        """Whether an account has no files yet."""
        self.dirty = True
        """Whether the files may lack what the database has."""
        self._seals: dict[str, Seal] = {}
        self._writing = threading.Lock()
        self._changed = threading.Condition()
        self._started = self._finished = 0
        """Changes that were begun, and those that ended."""
        self._closing = False
        self._seconds = 0.0
        self._connection: apsw.Connection | None = None
        self._thread: threading.Thread | None = None
        with translated(layout.path, "opening"):
            layout.prepare(self.disk)
            self._lock = Lock(layout.beside.with_name(layout.beside.name + ".lock"), layout.path)
            try:
                undo_interrupted_restore(self.disk, layout)
            except BaseException:
                self._lock.release()
                raise

    # Which side counts

    def examine(self) -> Loaded | None:
        """Return what was read from files that count; None where the database does, or where there is nothing yet."""
        database = self.layout.database
        with translated(self.layout.path, "opening"):
            if not database.exists():
                return load(self.layout)
            # A store that was closed leaves nothing beside its database.
            was_closed = len(database_files(self.layout)) == 1
            try:
                with translated_by_database(database, "opening"):
                    refuse_damaged_log(database)
                    with closing(connect(database, Options(), create=False)) as connection:
                        known = self._read_marks(connection)
                        return self._compare(connection) if known else load(self.layout)
            except StoreTooNew:
                raise
            except (StoreDamaged, StoreRefused) as error:
                return self._without_database(error, was_closed=was_closed)

    def _read_marks(self, connection: apsw.Connection) -> bool:
        found = dict(connection.execute("SELECT name, value FROM mark WHERE name GLOB ?", (f"{MARK}*",)))
        if MARK not in found:
            return False
        self.state = State(**json.loads(found.pop(MARK)))
        self._seals = {name.removeprefix(f"{MARK}:"): Seal(*json.loads(value)) for name, value in found.items()}
        self.dirty = not self.state.clean
        return True

    def _compare(self, connection: apsw.Connection) -> Loaded | None:
        """Look at files that are not as they were written. Edited ones, and those of another time, count."""
        count, damaged = False, []
        for path in self.layout.files():
            if path.suffix == LOST or self._is_as_written(path):
                continue
            try:
                edited = self._is_edited(path)
            except StoreDamaged as error:
                damaged.append((path, str(error)))
                continue
            count = count or (edited and not self.layout.shows_only(path))
            self.dirty = True
        if count:
            loaded = load(self.layout)
            if loaded is not None and not self.state.clean:
                # What was said after the files were last written is not in them.
                for row in _rows(connection, dumping.MESSAGES, ("", self.state.last)):
                    if isinstance(row, Message):
                        loaded.found.messages.setdefault(row.seq, row)
            return loaded
        for path, why in damaged:
            self._keep_copy(path, f"{why}; it is written again")
        gone = [name for name in self._seals if not (self.layout.main.parent / name).exists()]
        self.dirty = self.dirty or bool(gone)
        return None

    def _is_as_written(self, path: Path) -> bool:
        seal, found = self._seals.get(self._name(path)), path.stat()
        return seal is not None and seal[:2] == (found.st_size, found.st_mtime_ns)

    def _is_edited(self, path: Path) -> bool:
        """Tell whether a file holds other records than were written last. Raises StoreDamaged if it is damaged."""
        read, seal = self.layout.check(path), self._seals.get(self._name(path))
        if read.edited or read.header.store != self.state.store:
            return True
        if read.header.counter == self.state.writing > self.state.counter:
            return False  # the process ended while it wrote the files
        return seal is None or (read.header.counter, read.digest) != (seal.counter, seal.digest)

    def _without_database(self, error: AforesaidError, *, was_closed: bool) -> Loaded:
        """Read the files in the place of a database that cannot be used, and set that aside."""
        loaded = load(self.layout)
        if loaded is None:
            raise error
        lost = []
        try:
            rows = salvage_database(self.layout.database).rows
        except (StoreDamaged, StoreRefused):
            rows = ()
        last = max([*loaded.found.messages, loaded.found.given.get("log", 0)], default=0)
        newer = {row.seq: row for row in rows if isinstance(row, Message) and row.seq > last}
        loaded.found.messages.update(sorted(newer.items()))
        if not was_closed:
            lost = ["the database: changes after the files were last written, other than messages, may be missing"]
        stamp = label("damaged")
        for path in database_files(self.layout):
            path.replace(path.with_name(path.name.replace(".db", f".db.{stamp}", 1)))
        self._tell(f"{self.layout.database} was damaged ({error}); it is made again from the readable files", lost)
        return loaded

    def _keep_copy(self, path: Path, why: str, lost: tuple[str, ...] = ()) -> None:
        aside = path.with_name(f"{path.name}.{label('damaged')}")
        make_folders(self.disk, aside.parent)
        if path.exists():
            replace_file(self.disk, aside, [path.read_bytes()])
        if lost:
            named = "".join(f"{path.parent.name}/{line}\n" for line in lost)
            replace_file(self.disk, aside.with_name(aside.name + LOST), [named.encode()])
        kept = f"was damaged; it is kept as {aside.name}" if aside.exists() else "was gone"
        self.set_aside.append(f"{path} {kept} ({why})")
        self.dirty = True
        _log.error("%s", "; ".join([self.set_aside[-1], *(f"not recovered: {line}" for line in lost)]))

    def _tell(self, what: str, lost: list[str]) -> None:
        self.set_aside.append(what)
        _log.error("%s", "; ".join([what, *(f"not recovered: {line}" for line in lost)]))
        if lost:
            path = self.layout.beside.with_name(self.layout.beside.name + LOST)
            replace_file(self.disk, path, ["".join(f"{line}\n" for line in lost).encode()])

    def losses(self) -> list[str]:
        """Return what could not be recovered of damaged files, when they were opened now or earlier."""
        return [
            f"not recovered: {line}; add it again or restore a backup, then remove {path}"
            for path in self.layout.files()
            if path.suffix == LOST
            for line in path.read_text(encoding="utf-8").splitlines()
        ]

    async def rebuild(self, loaded: Loaded) -> None:
        """Make the database anew from what was read. It gets its name when it is complete."""
        for file in loaded.damaged:
            why = "what is intact is used, and the rest is made again if it can be"
            self._keep_copy(file.path, why, file.lost)
        lost: list[str] = []

        def refused(row: Row, _: str, error: AforesaidError) -> None:
            lost.append(f"a row of the kind {type(row).__name__}: {error}")

        seal, found = loaded.header, loaded.found
        self.state = State(seal.store or self.state.store, seal.counter, seal.counter)
        self._seals, self.dirty = {}, True
        database = self.layout.database
        with unfinished(database) as arriving:
            store = await SqliteStore.open(arriving)
            try:
                importer = RowImporter(store, refused)
                await importer.take(found.rows())
                await importer.finish()
                if found.marks:
                    await store.apply([PutMark(name, value) for name, value in found.marks.items()])
                given = {NUMBERED[name]: last for name, last in found.given.items() if name in NUMBERED}
                await store._engine.alone(lambda connection: self._set_up(connection, given))  # noqa: SLF001
            finally:
                await store.close()
            for path in database_files(self.layout):
                path.unlink()
            arriving.replace(database)
            sync_folder(database.parent)
        if lost:
            self._tell(f"{len(lost)} records of {self.layout.path} could not be used", lost)

    def _set_up(self, connection: apsw.Connection, given: dict[str, int]) -> None:
        """Note the seal, and which numbers were given out before."""
        with _transaction(connection):
            for table, last in given.items():
                set_number(connection, table, last)
            self._put_state(connection)

    def _put_state(self, connection: apsw.Connection) -> None:
        connection.execute(_PUT_MARK, (MARK, json.dumps(asdict(self.state))))

    # While the store is open

    def begin(self, first: int) -> None:
        """Start to watch over an open database. In one without messages, they are numbered from after `first`."""
        with translated_by_database(self.layout.database, "opening"):
            self._connection = connect(self.layout.database, Options(), create=False)
            with _transaction(self._connection):
                if first:
                    set_number(self._connection, "log", first)
                self._put_state(self._connection)
        if self.state.erasing or self.set_aside or journals_of(self.layout.beside):
            try:
                self.write()
            except (StoreError, OSError) as error:
                if self.state.erasing:
                    raise
                self.note(error)
        self._thread = threading.Thread(target=self._run, name="aforesaid-files", daemon=True)
        self._thread.start()

    @contextmanager
    def changing(self) -> Iterator[bool]:
        """Surround a change. Yields whether the database has to be told first that the files lack something."""
        with self._changed:
            self._started += 1
            first, self.dirty = not self.dirty, True
        try:
            yield first
        finally:
            with self._changed:
                self._finished += 1
                self._changed.notify_all()

    def mark_dirty(self, connection: apsw.Connection, *, erasing: bool = False) -> None:
        """Note in the database that the files lack something, or still have what is erased."""
        with _transaction(connection):
            self.state = replace(self.state, clean=False, erasing=self.state.erasing or erasing)
            self._put_state(connection)

    def expect_account(self, name: Name) -> None:
        """Make the folder of a new account."""
        if isinstance(self.layout, AccountFolders) and not self.layout.folder_of(name).exists():
            with suppress(OSError):  # the files are written later, and then it is said why they cannot be
                make_folders(self.disk, self.layout.folder_of(name))
            self.is_new_account = True

    def write(self, *, erased: bool = False) -> None:
        """Write the files that lack something. Raises when that fails; nothing is lost then."""
        connection = self._connection
        if connection is None:
            return
        started_at = time.monotonic()
        with (
            self._writing,
            translated(self.layout.path, "writing"),
            translated_by_database(self.layout.database, "reading"),
        ):
            with self._changed:
                begun, settled = self._started, self._started == self._finished
            self.state = replace(self.state, writing=max(self.state.counter, self.state.writing) + 1)
            with _transaction(connection):
                self._put_state(connection)
            content, last = self._content(connection)
            self.is_new_account = False
            written = {self._name(each.path): self._replaced(each) for each in self.layout.documents(content)}
            self.layout.tidy(self.disk, content)
            for path in journals_of(self.layout.beside).values():
                self.disk.unlink(path)
            if erased or self.state.erasing:
                for path in self.layout.copies():
                    self.disk.unlink(path)
            with _transaction(connection):
                with self._changed:
                    # Whoever begins a change from here on waits for this transaction to note that.
                    clean = settled and begun == self._started
                    self.dirty = not clean
                erasing = self.state.erasing and not erased and self._thread is not None
                self.state = replace(self.state, counter=self.state.writing, clean=clean, erasing=erasing, last=last)
                for name, seal in written.items():
                    if self._seals.get(name) != seal:
                        connection.execute(_PUT_MARK, (f"{MARK}:{name}", json.dumps(seal)))
                for name in self._seals.keys() - written.keys():
                    connection.execute("DELETE FROM mark WHERE name = ?", (f"{MARK}:{name}",))
                self._put_state(connection)
            self._seals = written
        self._seconds = time.monotonic() - started_at
        self.last_error = None

    def _content(self, connection: apsw.Connection) -> tuple[Content, int]:
        content = Content()
        connection.execute("BEGIN")
        try:
            for section in dumping.sections(bytes):
                for row in _rows(connection, section, section.start):
                    content.add(row)
            marks = connection.execute(
                "SELECT name, value FROM mark WHERE name NOT GLOB ? AND name != 'wipe'", (f"{MARK}*",)
            )
            given = dict(connection.execute("SELECT name, seq FROM sqlite_sequence"))
            content.finish(dict(marks), given)
        finally:
            connection.execute("ROLLBACK")
        return content, given.get("log", 0)

    def _replaced(self, made: Document) -> Seal:
        """Write a file unless it says the same already, and return its seal."""
        shown = blake2b(made.body.digest.encode(), digest_size=12)
        shown.update(json.dumps(_lasting(made.about)).encode())
        seal = self._seals.get(self._name(made.path))
        if (
            seal is not None
            and seal.shown == shown.hexdigest()
            and made.path.exists()
            and self._is_as_written(made.path)
        ):
            return seal
        make_folders(self.disk, made.path.parent)
        header = Header(self.state.store, self.state.writing)
        replace_file(self.disk, made.path, pieces(self.layout.kind, header, made.body, made.about))
        found = made.path.stat()
        return Seal(found.st_size, found.st_mtime_ns, self.state.writing, made.body.digest, shown.hexdigest())

    def check(self) -> Iterator[str]:
        """Read all files again, and yield what is wrong with them."""
        if self.dirty:
            self.write()
        with self._writing:
            for name, seal in self._seals.items():
                path = self.layout.main.parent / name
                try:
                    read = self.layout.check(path)
                except (StoreError, OSError) as error:
                    yield str(error)
                    continue
                if (read.header.counter, read.digest) != (seal.counter, seal.digest):
                    yield f"{path} is not what was written"

    def write_copy(self, target: Path) -> None:
        """Write all files to another place, in the same form."""
        layout = self.layout.elsewhere(target)
        layout.prepare(self.disk)
        assert self._connection is not None  # noqa: S101 - the store is open
        with self._writing:
            content, _ = self._content(self._connection)
        for each in layout.documents(content):
            make_folders(self.disk, each.path.parent)
            header = Header(self.state.store, self.state.writing)
            replace_file(self.disk, each.path, pieces(layout.kind, header, each.body, each.about))

    def close(self) -> None:
        """Write what the files do not have yet, and let go of the database. The lock is held until `let_go`."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
            if self.dirty:
                try:
                    self.write()
                except (StoreError, OSError) as error:
                    # Nothing is lost: the database has it, and the files are written when it is opened again.
                    self.note(error)
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def let_go(self) -> None:
        """Release the lock."""
        self._lock.release()

    def note(self, error: Exception) -> None:
        """Keep an error for health and for the administrator."""
        _log.error("%s", error)
        self.last_error = str(error)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closing or (self.dirty and self._finished == self._started))
                if self._closing:
                    return
                seen = self._started
                pause = 0.0 if self.is_new_account else _PAUSE_PER_WRITING * self._seconds
                failing = 0.0 if self.last_error is None else _PAUSE_PER_WRITING
                if self._changed.wait_for(lambda: self._closing, max(_PAUSE_SECONDS, pause, failing)):
                    return
                if self._started != seen:
                    continue
            try:
                self.write()
            except Exception as error:
                # The thread has nobody to raise to. What the files lack is in the database.
                self.note(error)

    def _name(self, path: Path) -> str:
        return os.path.relpath(path, self.layout.main.parent)


def _rows(connection: apsw.Connection, section: dumping.Section, start: dumping.Key) -> Iterator[Row]:
    after: dumping.Key | None = start
    while after is not None:
        page, after = answered(connection, dumping.page(section, after))
        yield from page


def _lasting(about: Any) -> Any:  # noqa: ANN401 - JSON
    """Return what is said at the head of a file without the time at which it is said."""
    if not isinstance(about, dict):
        return about
    return {name: _lasting(value) for name, value in about.items() if name != HEALTH_CHECK}


def set_number(connection: apsw.Connection, table: str, last: int) -> None:
    """Let a table give out numbers after this one."""
    known = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).get
    if known is None:
        connection.execute("INSERT INTO sqlite_sequence VALUES (?, ?)", (table, last))
    elif known < last:
        connection.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = ?", (last, table))


@contextmanager
def _transaction(connection: apsw.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
