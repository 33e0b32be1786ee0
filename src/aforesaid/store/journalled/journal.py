"""The journal: what was changed since the files were last written, a line for each change set, synced in groups.

A group is only written once the group before it is known to be on the disk. So damage in any group but the last is
damage to what was acknowledged; at the very end, it can be what a crash left of a group that nobody was told about.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from aforesaid.errors import StoreDamaged
from aforesaid.store.ephemeral.state import Layer, State
from aforesaid.store.journalled.codec import encode
from aforesaid.store.journalled.disk import Disk, write_all
from aforesaid.store.journalled.layout import DamagedRecord, Record, Touched, read_line, sealed
from aforesaid.store.journalled.tables import TABLES

SECTOR: Final = 512
_ZEROS: Final = re.compile(rb"\0+")


class Read(NamedTuple):
    """What a journal holds."""

    records: list[Record]
    """Change sets, in order."""
    size: int
    """Up to where it is whole."""
    group: int
    """The number of its last group."""
    store: str | None
    """Whose journal it is; None for one that was never begun."""


def journals_of(beside: Path) -> dict[int, Path]:
    """Return the journals whose names begin like this, oldest first."""
    pattern = re.compile(re.escape(beside.name) + r"\.journal-(\d{1,18})")
    names = [entry.name for entry in beside.parent.iterdir()] if beside.parent.is_dir() else []
    found = {int(match[1]): beside.with_name(name) for name in names if (match := pattern.fullmatch(name))}
    return dict(sorted(found.items()))


def change_record(changed: State) -> tuple[Record, set[Touched]] | None:
    """Return what a layer changes, as a record, and whose records of which tables; None when it changes nothing."""
    put: Record = {}
    gone: Record = {}
    touched: set[Touched] = set()
    for table in TABLES:
        layer: Layer[Any, Any] = getattr(changed, table.state)
        if layer.put:
            put[table.name] = [table.pack(key, value) for key, value in layer.put.items()]
            touched.update((table.owner(changed, key, value), table.name) for key, value in layer.put.items())
        if layer.gone:
            gone[table.name] = [encode(key) for key in layer.gone]
            touched.update((table.owner(changed, key, layer.below[key]), table.name) for key in layer.gone)
    if not touched:
        return None
    return ({"put": put, "gone": gone} if gone else {"put": put}), touched


class Journal:
    """A journal that is being written."""

    def __init__(self, disk: Disk, path: Path, number: int, handle: int, read: Read | None = None) -> None:
        """Use `begin` or `resume`."""
        self.number = number
        self.path = path
        self.size = 0 if read is None else read.size
        self.broken = False
        """Whether it can no longer be relied on; the files have to be written anew."""
        self._group = 0 if read is None else read.group
        self._disk = disk
        self._handle = handle

    @classmethod
    def begin(cls, disk: Disk, path: Path, number: int, store: str) -> Self:
        """Begin a new one. When this returns, it is on the disk."""
        journal = cls(disk, path, number, disk.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC))
        try:
            header = {"aforesaid": "journal", "format": 1, "number": number, "store": store}
            journal.write(sealed(header) + b"\n")
            disk.sync_folder(path.parent)
        except BaseException:
            with suppress(OSError):
                journal.close()
                disk.unlink(path)
            raise
        return journal

    @classmethod
    def resume(cls, disk: Disk, path: Path, number: int, read: Read) -> Self:
        """Go on with one that was read. What a crash left half written at its end is cut off."""
        handle = disk.open(path, os.O_RDWR)
        journal = cls(disk, path, number, handle, read)
        try:
            if path.stat().st_size != read.size:
                disk.truncate(handle, read.size)
                disk.sync(handle)
        except BaseException:
            journal.close()
            raise
        return journal

    def append(self, records: Sequence[Record]) -> None:
        """Write a group. When this returns, it is on the disk; when it raises, it is not there, or `broken` is set."""
        self._group += 1
        lines = [sealed({"group": self._group, **record}) for record in records]
        self.write(b"\n".join(lines) + b"\n")

    def close(self) -> None:
        """Let go of the file."""
        if self._handle >= 0:
            handle, self._handle = self._handle, -1
            self.broken = True
            with suppress(OSError):  # all that was acknowledged has been synced
                self._disk.close(handle)

    def write(self, data: bytes) -> None:
        """Write whole lines and sync them."""
        if self._handle < 0:
            raise OSError("the journal is closed")
        syncing = False
        try:
            os.lseek(self._handle, self.size, os.SEEK_SET)
            write_all(self._disk, self._handle, data)
            syncing = True
            self._disk.sync(self._handle)
        except BaseException:
            # After a failed sync nobody knows what of the file is on the disk, whatever later syncs say.
            self.broken = syncing
            self.cut()
            raise
        self.size += len(data)

    def cut(self) -> None:
        """Take away what was not acknowledged, so that it cannot come back."""
        if self._handle < 0:
            return
        try:
            self._disk.truncate(self._handle, self.size)
            if self.broken:
                self._disk.sync(self._handle)
        except OSError:
            self.broken = True


def read_journal(path: Path, *, newest: bool) -> Read:
    """Read a journal. Raises StoreDamaged unless all that was acknowledged is whole."""
    data = path.read_bytes()
    records: list[Record] = []
    size, group, store = 0, 0, None
    for start, line, ended in _lines(data):
        try:
            record = read_line(line)
        except DamagedRecord as error:
            if newest and _torn(data, start, line, ended=ended) and not _goes_on(data, start, group + 1):
                break
            raise StoreDamaged(f"{path} is damaged at byte {start} ({error}); run: aforesaid verify --repair") from None
        if store is None:
            store = str(record.get("store"))
        else:
            group = int(record.pop("group"))
            records.append(record)
        size = start + len(line) + 1
        if not ended:
            break
    return Read(records, min(size, len(data)), group, store)


def _lines(data: bytes) -> Iterator[tuple[int, bytes, bool]]:
    """Return each line with its place, and whether it has an end."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        yield start, data[start : end if end >= 0 else len(data)], end >= 0
        start = end + 1 if end >= 0 else len(data)


def _torn(data: bytes, start: int, line: bytes, *, ended: bool) -> bool:
    """Tell whether a line looks like what a crash leaves: it stops, or sectors of it were never written.

    A sector that was never written is all zeros, or zeros from where the line begins: the rest of the
    sector was written earlier.
    """
    if not ended:
        return True
    for zeros in _ZEROS.finditer(data, start, start + len(line)):
        begins = zeros.start() % SECTOR == 0 or zeros.start() == start
        if begins and (zeros.end() % SECTOR == 0 or zeros.end() == len(data)):
            return True
    return False


def _goes_on(data: bytes, start: int, group: int) -> bool:
    """Tell whether a later group follows, so that what is at `start` had been synced."""
    for _, line, _ in _lines(data[start:]):
        with suppress(DamagedRecord):
            if int(read_line(line).get("group", 0)) > group:
                return True
    return False
