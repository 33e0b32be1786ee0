"""Disks that watch, and disks that fail: SQLite file systems laid over the real one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import apsw

from aforesaid.store.readable import disk as readable

_JOURNALS: Final = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL


class Write(NamedTuple):
    """Bytes were written to a file."""

    file: int
    offset: int
    data: bytes


class Truncate(NamedTuple):
    """A file was cut."""

    file: int
    size: int


class Sync(NamedTuple):
    """Everything written to a file so far is certain to be there."""

    file: int


class Create(NamedTuple):
    """A name was given to a new file."""

    name: str
    file: int


class Delete(NamedTuple):
    """A name was taken away."""

    name: str


class Rename(NamedTuple):
    """A file was given the name of another."""

    name: str
    target: str


class SyncFolder(NamedTuple):
    """The names given and taken away so far are certain."""


Operation: TypeAlias = Write | Truncate | Sync | Create | Delete | Rename | SyncFolder


class Disk(apsw.VFS):
    """A file system that lets everything through. Subclasses watch it or make it fail."""

    def __init__(self, name: str) -> None:
        """Register under a name, for `Options(vfs=name)`."""
        super().__init__(name, "unix")
        self.vfs = name

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        """Open a file; those without a name are temporary and nobody's business."""
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        return apsw.VFSFile("unix", name, flags) if path is None else self.open(Path(path), name, flags)

    def open(
        self,
        path: Path,  # noqa: ARG002 - what subclasses go by
        name: str | apsw.URIFilename | None,
        flags: list[int],
    ) -> apsw.VFSFile:
        """Open a file that has a name."""
        return apsw.VFSFile("unix", name, flags)

    @contextmanager
    def registered(self) -> Iterator[str]:
        """Give its name, and let go of it at the end."""
        try:
            yield self.vfs
        finally:
            self.unregister()


class RecordingDisk(Disk):
    """Writes down everything that a power cut could tear apart, in order."""

    def __init__(self, name: str, root: Path | None = None) -> None:
        """Start with an empty record. Without `root`, all files are in one folder."""
        super().__init__(name)
        self.root = root
        self.record: list[Operation] = []
        self.lock = threading.RLock()
        self._files: dict[str, int] = {}
        self._made = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._syncs = 0
        self._heard = 0
        """The syncs whose acknowledgements the loop has passed on."""

    def open(self, path: Path, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        """Open a file and give it a number of its own if it is new."""
        with self.lock:
            # Of a file that is made for its owner alone, SQLite is not the first to know.
            created = not path.exists() or self.name(path) not in self._files
            opened = _RecordedFile(self, name, flags)
            opened.number = self.create(path) if created else self._files[self.name(path)]
            opened.syncs_folder = created and bool(flags[0] & _JOURNALS)
            return opened

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: FBT001, N802 - SQLite's signature
        """Delete a file."""
        self.let_callers_hear()
        with self.lock:
            super().xDelete(filename, syncdir)
            self.record.append(Delete(self.name(Path(filename))))
            if syncdir:
                self.record.append(SyncFolder())

    def name(self, path: Path) -> str:
        """Return the name of a file in the record."""
        return path.name if self.root is None else str(path.relative_to(self.root))

    def create(self, path: Path) -> int:
        """Give a new file its number."""
        self._made += 1
        self._files[self.name(path)] = self._made
        self.record.append(Create(self.name(path), self._made))
        return self._made

    def rename(self, source: Path, target: Path) -> None:
        """Record that a file has another name."""
        self._files[self.name(target)] = self._files.pop(self.name(source))
        self.record.append(Rename(self.name(source), self.name(target)))

    def tell_callers(self) -> None:
        """Record the running loop, so that pending acknowledgements are delivered before the disk continues."""
        self._loop = asyncio.get_running_loop()

    def something_was_synced(self) -> None:
        """After a sync acknowledgements may be on their way."""
        with self.lock:
            self._syncs += 1

    def let_callers_hear(self) -> None:
        """Wait until the loop has passed on every acknowledgement, so that its place in the record is exact.

        Several threads may wait: the one that writes the database, and the one that writes readable files.
        """
        syncs, heard = self._syncs, threading.Event()
        if self._loop is None or self._heard >= syncs:
            return

        def passed_on() -> None:
            self._heard = max(self._heard, syncs)
            heard.set()

        try:
            # Settling a future only schedules the one who waits for it; the second hop comes after that one.
            self._loop.call_soon_threadsafe(self._loop.call_soon, passed_on)
        except RuntimeError:
            return  # the loop is closed, and nobody is waiting
        heard.wait()


class _RecordedFile(apsw.VFSFile):
    number: int
    syncs_folder: bool

    def __init__(self, disk: RecordingDisk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        self._disk = disk

    def xWrite(self, data: object, offset: int) -> None:  # noqa: N802
        self._disk.let_callers_hear()
        with self._disk.lock:
            written = bytes(data)  # type: ignore[call-overload]
            super().xWrite(written, offset)
            self._disk.record.append(Write(self.number, offset, written))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._disk.let_callers_hear()
        with self._disk.lock:
            super().xTruncate(newsize)
            self._disk.record.append(Truncate(self.number, newsize))

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.let_callers_hear()
        with self._disk.lock:
            super().xSync(flags)
            self._disk.record.append(Sync(self.number))
            if self.syncs_folder:
                # SQLite's own code for Unix does this once for every journal that it has made.
                self._disk.record.append(SyncFolder())
                self.syncs_folder = False
        self._disk.something_was_synced()


class RecordingFiles(readable.Disk):
    """Writes down what is done to readable files, in the record of the disk on which their database is."""

    def __init__(self, disk: RecordingDisk) -> None:
        """Use the record of `disk`."""
        self._disk = disk
        self._open: dict[int, list[int]] = {}

    def open(self, path: Path, flags: int) -> int:
        """Make a new file."""
        self._disk.let_callers_hear()
        with self._disk.lock:
            assert not path.exists(), "only new files are written"
            handle = super().open(path, flags)
            self._open[handle] = [self._disk.create(path), 0]
            return handle

    def write(self, handle: int, data: bytes) -> int:
        """Write at the end."""
        self._disk.let_callers_hear()
        with self._disk.lock:
            written = super().write(handle, data)
            number, end = self._open[handle]
            self._disk.record.append(Write(number, end, data[:written]))
            self._open[handle][1] += written
            return written

    def sync(self, handle: int) -> None:
        """Sync a file."""
        self._disk.let_callers_hear()
        with self._disk.lock:
            super().sync(handle)
            self._disk.record.append(Sync(self._open[handle][0]))

    def replace(self, source: Path, target: Path) -> None:
        """Rename a file."""
        self._disk.let_callers_hear()
        with self._disk.lock:
            super().replace(source, target)
            self._disk.rename(source, target)

    def unlink(self, path: Path) -> None:
        """Delete a file."""
        self._disk.let_callers_hear()
        with self._disk.lock:
            if path.exists():
                self._disk.record.append(Delete(self._disk.name(path)))
            super().unlink(path)

    def sync_folder(self, folder: Path) -> None:
        """Sync names. The loop calls this too, and cannot wait for itself."""
        with self._disk.lock:
            super().sync_folder(folder)
            self._disk.record.append(SyncFolder())


class FailingDisk(Disk):
    """Asks before every write and every sync whether it should fail."""

    def __init__(self, name: str, verdict: Callable[[str, Path], Exception | None]) -> None:
        """`verdict` gets "write" or "sync" and the file, and returns the error to raise, if any."""
        super().__init__(name)
        self.verdict = verdict

    def open(self, path: Path, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        """Open a file that may fail later."""
        return _FailingFile(self, path, name, flags)


class _FailingFile(apsw.VFSFile):
    def __init__(self, disk: FailingDisk, path: Path, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        self._disk = disk
        self._path = path

    def xWrite(self, data: object, offset: int) -> None:  # noqa: N802
        self._fail_if_told("write")
        super().xWrite(bytes(data), offset)  # type: ignore[call-overload]

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._fail_if_told("sync")
        super().xSync(flags)

    def _fail_if_told(self, what: str) -> None:
        error = self._disk.verdict(what, self._path)
        if error is not None:
            raise error


class SmallDisk(Disk):
    """A disk with a limited number of bytes."""

    def __init__(self, name: str) -> None:
        """Start empty, and without any room."""
        super().__init__(name)
        self._room = 0
        self.lock = threading.RLock()
        self._sizes: dict[Path, int] = {}

    def open(self, path: Path, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        """Open a file that takes up room as it grows."""
        return _SmallFile(self, path, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: FBT001, N802
        """Delete a file and have its room back."""
        with self.lock:
            super().xDelete(filename, syncdir)
            self._sizes.pop(Path(filename), None)

    def set_room(self, size: int) -> None:
        """Say how many bytes there are in all."""
        self._room = size

    def resize(self, path: Path, size: int) -> None:
        """Take up room, or fail."""
        with self.lock:
            growth = size - self._sizes.get(path, 0)
            if growth > 0 and sum(self._sizes.values()) + growth > self._room:
                raise apsw.FullError("the small disk is full")
            self._sizes[path] = size

    def size(self, path: Path) -> int:
        """Return how much room a file takes up."""
        return self._sizes.get(path, 0)


class _SmallFile(apsw.VFSFile):
    def __init__(self, disk: SmallDisk, path: Path, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        self._disk = disk
        self._path = path

    def xWrite(self, data: object, offset: int) -> None:  # noqa: N802
        written = bytes(data)  # type: ignore[call-overload]
        self._disk.resize(self._path, max(self._disk.size(self._path), offset + len(written)))
        super().xWrite(written, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        super().xTruncate(newsize)
        self._disk.resize(self._path, newsize)
