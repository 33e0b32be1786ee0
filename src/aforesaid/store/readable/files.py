"""The readable files of an open store: whether they or the database beside them count, and when they are written."""

from __future__ import annotations

import json
import logging
import os
import shutil
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import uuid4

import apsw

from aforesaid.domain.transfer import Row
from aforesaid.errors import AforesaidError, StoreDamaged, StoreError, StoreRefused
from aforesaid.store import dumping
from aforesaid.store.checksums import SQLITE as CHECKSUMS
from aforesaid.store.dumping import RowImporter
from aforesaid.store.people import PutMark
from aforesaid.store.readable.disk import Disk, Lock, make_folders, replace_file
from aforesaid.store.readable.document import ADVICE, Document, Header, Read, pieces, read
from aforesaid.store.readable.layouts import HEALTH_CHECK, LOST, WINDOWS, Layout
from aforesaid.store.readable.records import GIVEN, Content
from aforesaid.store.readable.restoring import FilesRead, database_files, journals_of, label, load
from aforesaid.store.sqlite import SqliteStore
from aforesaid.store.sqlite.connection import Options, answered, connect, translated, writing
from aforesaid.store.sqlite.salvaging import salvage as salvage_database
from aforesaid.store.sqlite.verify import refuse_damaged_log
from aforesaid.store.unfinished import sync_folder, unfinished

_log: Final = logging.getLogger("aforesaid.store")

MARK: Final = "readable"
"""The mark in the database that says how the files stand."""
SEALS: Final = f"{MARK} seals"
"""The mark with the seal of each file, by its path from the folder of the store."""
_PUT_MARK: Final = CHECKSUMS.insert_or_replace("metadata", ("name", "value"), ("name",))
_KEPT: Final = 5
"""Copies of a file that are kept when it is edited again and again: each is a whole file."""
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
    """Whether the store was closed, and the files have all that the database has."""
    erasing: bool = False
    """Whether something was erased that the files may still have."""
    rebuilt: bool = False
    """Whether the database was just made anew: it counts, whatever the files say, until they are written."""
    given: Mapping[str, int] = field(default_factory=dict)
    """The last numbers that had been given out when the files were written."""


class Seal(NamedTuple):
    """A file as it was written."""

    size: int
    modified: int
    digest: str
    """Of its records."""
    shown: str
    """Of its records and of what it says at its head."""


def _seal(path: Path, digest: str = "", shown: str = "") -> Seal:
    found = path.stat()
    return Seal(found.st_size, found.st_mtime_ns, digest, shown)


class Files:
    """The files of one store, held by this process."""

    def __init__(self, layout: Layout, disk: Disk | None = None) -> None:
        """Take the lock, or raise StoreBusy."""
        self.layout = layout
        self.disk = disk or Disk()
        self.state = State(uuid4().hex)
        self.issues: list[str] = []
        """What was damaged or edited, and where it is kept, as found since the store was opened."""
        self.last_error: str | None = None
        self.is_new_account = False
        """Whether an account has no files yet."""
        self._seals: dict[str, Seal] = {}
        self._writing = threading.Lock()
        self._changed = threading.Event()
        self._written: int | None = None
        """The version of the database that the files have; None where they may lack something."""
        self._lacking = True
        """Whether files lack something that the database had when it was closed."""
        self._closing = False
        self._seconds = 0.0
        self._connection: apsw.Connection | None = None
        self._thread: threading.Thread | None = None
        with translated(layout.path, "opening"):
            layout.prepare(self.disk)
            self._lock = Lock(layout.lock, layout.path)

    # Which side counts

    def examine(self) -> FilesRead | None:
        """Return what was read from files that count; None where the database does, or where there is nothing yet."""
        database = self.layout.database
        with translated(self.layout.path, "opening"):
            if not database.exists():
                return load(self.layout)
            # A store that was closed leaves nothing beside its database.
            was_closed = len(database_files(self.layout)) == 1
            try:
                with translated(database, "opening"):
                    refuse_damaged_log(database)
                    connection = connect(database, Options(), create=False)
                with closing(connection), translated(database, "reading"):
                    known = self._read_state(connection)
                    edited = self._look_at_files(connection) if known and not self.state.rebuilt else False
                    newer = list(_rows(connection)) if edited else []
            except (StoreDamaged, StoreRefused) as error:
                return self._without_database(error, was_closed=was_closed)
            if known and not edited:
                return None
            files = load(self.layout)
            if files is not None:
                files.records.add_newer(newer, self.state.given, others=not (self.state.clean and was_closed))
            return files

    def _read_state(self, connection: apsw.Connection) -> bool:
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'metadata'").get is None:
            return False  # the process ended while it made the database
        found = dict(connection.execute("SELECT name, value FROM metadata WHERE name IN (?, ?)", (MARK, SEALS)))
        if MARK not in found:
            return False
        self.state = State(**json.loads(found[MARK]))
        self._seals = {name: Seal(*seal) for name, seal in json.loads(found.get(SEALS, "{}")).items()}
        self._lacking = not self.state.clean
        return True

    def _look_at_files(self, connection: apsw.Connection) -> bool:
        """Tell whether there are files that count: edited ones, and those of another time.

        What the database has in their place is kept beside them. Damaged ones are set aside and, where others count,
        written again before those are read.
        """
        edited, there = [], self.layout.files()
        lacking = [path for name in self._seals if (path := self.layout.main.parent / name) not in there]
        for path in there:
            if self._is_as_written(path):
                continue
            self._lacking = True
            found, is_ours = read(path, self.layout.kind), self._name(path) in self._seals
            if found.error is not None and not is_ours:
                self._note(f"{found.error}; it is none of this store's files, and left alone")
                continue
            if found.error is not None:
                self._keep_copy(path, "damaged", f"{found.error}; it is written again")
                lacking.append(path)
            elif self._counts(path, found):
                if path.name not in WINDOWS:
                    edited.append(path)
                    continue
                if is_ours and found.is_edited:
                    self._keep_copy(path, "edited", "it only shows what is in whole_history.json: edit that one")
            self._seals[self._name(path)] = _seal(path)
        self._lacking |= bool(lacking)
        for made in self.layout.documents(_content(connection)) if edited else ():
            if made.path in edited:
                aside = self._aside(made.path, "edited")
                self._put(aside, made)
                self._note(f"{made.path} was edited, and counts; what was stored before it is kept as {aside.name}")
            elif made.path in lacking:
                self._put(made.path, made)
        return bool(edited)

    def _is_as_written(self, path: Path) -> bool:
        seal = self._seals.get(self._name(path))
        return seal is not None and seal[:2] == _seal(path)[:2]

    def _counts(self, path: Path, found: Read) -> bool:
        """Tell whether a file holds other records than were written last."""
        if found.header is None or found.is_edited or found.header.store != self.state.store:
            return True
        if found.header.counter == self.state.writing > self.state.counter:
            return False  # the process ended while it wrote the files
        seal = self._seals.get(self._name(path))
        return seal is None or found.digest != seal.digest

    def _without_database(self, error: StoreError, *, was_closed: bool) -> FilesRead:
        """Read the files in the place of a database that cannot be used, and keep a copy of that."""
        files = load(self.layout)
        if files is None:
            raise error
        with suppress(StoreDamaged, StoreRefused):
            rows = salvage_database(self.layout.database).rows
            files.records.add_newer(rows, files.records["numbers_given"], others=False)
        aside = self._aside(self.layout.database, "damaged")
        for path in database_files(self.layout):
            shutil.copyfile(path, aside.with_name(path.name.replace(self.layout.database.name, aside.name)))
        self._note(f"{self.layout.database} was damaged ({error}); it is made again from the readable files")
        if not was_closed:
            lost = "the database: changes after the files were last written, other than messages, may be missing"
            self._list(self.layout.index, [lost])
        return files

    def _keep_copy(self, path: Path, why: str, what: str) -> None:
        aside = self._aside(path, why)
        replace_file(self.disk, aside, [path.read_bytes()])
        # What is done about it here needs no repair.
        self._note(f"{path} was {why}; it is kept as {aside.name} ({what.replace(ADVICE, '')})")

    def _note(self, what: str) -> None:
        self.issues.append(what)
        _log.warning("%s", what)

    def _list(self, path: Path, lost: Iterable[str]) -> None:
        """Add to the list, beside a file, of what could not be recovered."""
        listed = path.with_name(path.name + LOST)
        before = listed.read_text(encoding="utf-8").splitlines() if listed.exists() else []
        make_folders(self.disk, listed.parent)
        replace_file(self.disk, listed, [f"{line}\n".encode() for line in dict.fromkeys([*before, *lost])])
        _log.error("not recovered: %s", "; ".join(lost))

    def losses(self) -> list[str]:
        """Return what could not be recovered, now or earlier, until somebody removes the list."""
        return [
            f"not recovered: {line}; add or correct it, or restore a backup, then remove {path}"
            for path in self.layout.lists()
            for line in path.read_text(encoding="utf-8").splitlines()
        ]

    async def rebuild(self, files: FilesRead) -> None:
        """Make the database anew from what was read. It gets its name when it is complete."""
        for damaged in files.damaged:
            if damaged.path.exists():
                what = "what is intact is used, and the rest is made again if it can be"
                self._keep_copy(damaged.path, "damaged", f"{damaged.error}; {what}")
            else:
                self._note(f"{damaged.path} was gone; it is made again as far as it can be")
            if damaged.lost and not damaged.file.derived:
                self._list(damaged.path, damaged.lost)
        for path, records in files.doubtful.items():
            what = "as written: one character differs, typed by somebody or a damaged byte; it counts as it is now"
            self._list(path, [f"{self.layout.shown(path)}: {record} {what}" for record in records])
        store, counter = files.header
        self.state = State(store or self.state.store, counter, counter, rebuilt=True)
        self._seals, self._lacking = {}, True
        refused: list[str] = []
        with unfinished(self.layout.database) as arriving:
            database = await SqliteStore.open(arriving)
            try:
                importer = RowImporter(
                    database, lambda row, _, error: refused.append(f"a {type(row).__name__}: {error}")
                )
                await importer.take(files.records.rows())
                await importer.finish()
                if marks := files.records["marks"]:
                    await database.apply([PutMark(name, value) for name, value in marks.items()])
            finally:
                await database.close()
            with closing(connect(arriving, Options(), create=False)) as connection, writing(connection):
                for name, last in files.records["numbers_given"].items():
                    if name in GIVEN:
                        _set_number(connection, GIVEN[name], last)
                self._put_state(connection)
            if refused:
                self._list(self.layout.index, [f"{self.layout.path.name}: {each}" for each in refused])
            _empty_log(self.layout)
            arriving.replace(self.layout.database)
            sync_folder(arriving.parent)

    def _put_state(self, connection: apsw.Connection, **changed: Any) -> None:  # noqa: ANN401 - values of `State`
        self.state = replace(self.state, **changed)
        connection.execute(_PUT_MARK, (MARK, json.dumps(asdict(self.state))))

    # While the store is open

    def begin(self, first: int = 0) -> None:
        """Start to watch over an open database. In one without messages, they are numbered from after `first`."""
        with translated(self.layout.database, "opening"):
            self._connection = connect(self.layout.database, Options(), create=False)
            self._written = None if self._lacking else self._version
            with writing(self._connection):
                if first:
                    _set_number(self._connection, "log", first)
                # Until it is closed, files that lack nothing now may lack something later.
                self._put_state(self._connection, clean=False)
        if self.state.erasing or self.state.rebuilt or self.issues or journals_of(self.layout.beside):
            try:
                self.write()
            except (StoreError, OSError) as error:
                if self.state.erasing:
                    raise
                self.note(error)
        if self._is_dirty:
            self._changed.set()
        self._thread = threading.Thread(target=self._run, name="aforesaid-files", daemon=True)
        self._thread.start()

    @property
    def _version(self) -> int:
        """The version of the database, which changes with every commit of another connection."""
        assert self._connection is not None  # noqa: S101 - the store is open
        return int(self._connection.pragma("data_version"))

    @property
    def _is_dirty(self) -> bool:
        """Whether the files may lack what the database has."""
        with self._writing:
            return self._written != self._version

    def changed(self) -> None:
        """Note that the database was changed: the files are written in the next pause."""
        self._changed.set()

    def mark_erasing(self) -> None:
        """Note in the database that the files still have what is erased."""
        if self._connection is not None:
            with self._writing, translated(self.layout.database, "writing"), writing(self._connection):
                self._put_state(self._connection, erasing=True)

    def write(self, *, erased: bool = False) -> None:
        """Write the files that lack something. Raises when that fails; nothing is lost then."""
        connection, layout = self._connection, self.layout
        if connection is None:
            return
        started_at = time.monotonic()
        with self._writing, translated(layout.path, "writing"):
            version = self._version
            with writing(connection):
                self._put_state(connection, writing=max(self.state.counter, self.state.writing) + 1)
            content = _content(connection)
            self.is_new_account = False
            known = {(layout.main.parent / name).parent for name in self._seals}
            written = {self._name(each.path): self._replaced(each) for each in layout.documents(content)}
            layout.tidy(self.disk, content, layout.accounts() if self.state.rebuilt else known)
            for path in journals_of(layout.beside).values():
                self.disk.unlink(path)
            if erased or self.state.erasing:
                for path in layout.copies():
                    shutil.rmtree(path) if path.is_dir() else self.disk.unlink(path)
            self._seals = written
            with writing(connection):
                connection.execute(_PUT_MARK, (SEALS, json.dumps(written)))
                self._put_state(
                    connection,
                    counter=self.state.writing,
                    erasing=self.state.erasing and not erased and self._thread is not None,
                    rebuilt=False,
                    given=content.given,
                )
            self._written = version
        self._seconds = time.monotonic() - started_at
        self.last_error = None

    def _replaced(self, made: Document) -> Seal:
        """Write a file unless it says the same already, and return its seal."""
        name, path = self._name(made.path), made.path
        shown = blake2b((made.digest + json.dumps(_lasting(made.about))).encode(), digest_size=12).hexdigest()
        seal = self._seals.get(name)
        if seal is not None and path.exists():
            if not self._is_as_written(path):
                self._keep_copy(path, "edited", "that was while the store was open, so it is written again")
            elif seal.shown == shown:
                return seal
        self._put(path, made)
        self._seals[name] = _seal(path, made.digest, shown)
        return self._seals[name]

    def _put(self, path: Path, made: Document) -> None:
        make_folders(self.disk, path.parent)
        header = Header(self.state.store, self.state.writing)
        replace_file(self.disk, path, pieces(self.layout.kind, header, made))

    def check(self) -> Iterator[str]:
        """Read all files again, and yield what is wrong with them.

        A file that changed although nobody wrote to it is set aside, and written again in the next pause.
        """
        if self._is_dirty:
            self.write()
        with self._writing:
            for name, seal in list(self._seals.items()):
                path = self.layout.main.parent / name
                try:
                    found = read(path, self.layout.kind)
                except (StoreError, OSError) as error:
                    wrong = str(error)
                else:
                    if found.error is None and not self._counts(path, found):
                        continue
                    wrong = str(found.error or f"{path} is not what was written")
                yield wrong
                if path.exists() and self._is_as_written(path):
                    self._keep_copy(path, "damaged", f"{wrong}; it is written again")
                    self._seals[name] = seal._replace(shown="")
                    self._written = None
                    self._changed.set()

    def write_copy(self, target: Path) -> None:
        layout = type(self.layout)(target)
        layout.prepare(self.disk)
        assert self._connection is not None  # noqa: S101 - the store is open
        with self._writing:
            content = _content(self._connection)
        for each in layout.documents(content):
            self._put(each.path, each)

    def close(self) -> None:
        """Write what the files do not have yet, and let go of the database. The lock is held until `let_go`."""
        self._closing = True
        self._changed.set()
        if self._connection is None:
            return
        if self._thread is not None:
            self._thread.join()
            try:
                if self._is_dirty:
                    self.write()
                with translated(self.layout.database, "closing"), writing(self._connection):
                    self._put_state(self._connection, clean=self._written == self._version)
            except (StoreError, OSError) as error:
                # Nothing is lost: the database has it, and the files are written when it is opened again.
                self.note(error)
        self._connection.close()
        self._connection = None

    def let_go(self) -> None:
        self._lock.release()

    def note(self, error: Exception) -> None:
        """Keep an error for health and for the administrator."""
        _log.error("%s", error)
        self.last_error = str(error)

    def _run(self) -> None:
        while True:
            self._changed.wait()
            self._changed.clear()
            if self._closing:
                return
            pause = 0.0 if self.is_new_account else _PAUSE_PER_WRITING * self._seconds
            failing = 0.0 if self.last_error is None else _PAUSE_PER_WRITING
            if self._changed.wait(max(_PAUSE_SECONDS, pause, failing)):
                continue
            try:
                self.write()
            except Exception as error:
                # The thread has nobody to raise to. What the files lack is in the database.
                self.note(error)
                self._changed.set()

    def _aside(self, path: Path, why: str) -> Path:
        """Return a new name under which a file is set aside. Of edited ones, a few are kept."""
        if why == "edited":
            earlier = [each for each in self.layout.copies() if each.name.startswith(f"{path.name}.{why}-")]
            for each in [each for each in earlier if each.parent == path.parent][: 1 - _KEPT]:
                self.disk.unlink(each)
        return path.with_name(f"{path.name}.{label(why)}")

    def _name(self, path: Path) -> str:
        return os.path.relpath(path, self.layout.main.parent)


def _content(connection: apsw.Connection) -> Content:
    content = Content()
    connection.execute("BEGIN")
    try:
        for row in _rows(connection):
            content.add(row)
        marks = connection.execute("SELECT name, value FROM metadata WHERE name NOT IN (?, ?, 'wipe')", (MARK, SEALS))
        content.finish(dict(marks), dict(connection.execute("SELECT name, seq FROM sqlite_sequence")))
    finally:
        connection.execute("ROLLBACK")
    return content


def _rows(connection: apsw.Connection) -> Iterator[Row]:
    for section in dumping.sections(bytes):
        after: dumping.Key | None = section.start
        while after is not None:
            page, after = answered(connection, dumping.page(section, after))
            yield from page


def _lasting(about: Any) -> Any:  # noqa: ANN401 - JSON
    """Return what is said at the head of a file without the time at which it is said."""
    if not isinstance(about, dict):
        return about
    return {name: _lasting(value) for name, value in about.items() if name != HEALTH_CHECK}


def _empty_log(layout: Layout) -> None:
    """Leave nothing beside a database that another one takes the place of: it would be taken for that one's log."""
    with suppress(AforesaidError), translated(layout.database, "closing"):
        if layout.database.exists():
            with closing(connect(layout.database, Options(), create=False)) as connection:
                connection.pragma("journal_mode", "delete")
    for path in database_files(layout):
        if path != layout.database:
            path.unlink()


def _set_number(connection: apsw.Connection, table: str, last: int) -> None:
    """Let a table give out numbers after this one."""
    known = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).get
    if known is None:
        connection.execute("INSERT INTO sqlite_sequence VALUES (?, ?)", (table, last))
    elif known < last:
        connection.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = ?", (last, table))
