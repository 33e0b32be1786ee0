"""What a disk may hold after the power went: images made from the record of what was written to it.

What was synced is certain. Of what came after a file's last sync, each write may have arrived whole, in some of its
sectors, or not at all, in any order; sizes and names may be old or new.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final

from torture.disk import Create, Delete, Operation, Rename, Sync, SyncFolder, Truncate, Write

SECTOR: Final = 512


class Replay:
    """Walks through a record, keeping apart what is certain and what is not."""

    def __init__(self, record: Sequence[Operation]) -> None:
        """Start before the first operation."""
        self._record = record
        self.position = 0
        self._certain: dict[int, bytearray] = {}
        self._uncertain: dict[int, list[Write | Truncate]] = {}
        self._names: dict[str, int] = {}
        self._uncertain_names: list[Create | Delete | Rename] = []

    def advance(self, position: int) -> None:
        """Go on until just before the operation at `position`."""
        for operation in self._record[self.position : position]:
            self._take(operation)
        self.position = position

    def image(self, chance: Random) -> dict[str, bytes]:
        """Return the files as they may be found after a power cut here."""
        names = dict(self._names)
        for change in self._uncertain_names:
            if chance.random() < 0.5:
                _rename(names, change)
        return {name: bytes(_torn(self._certain[file], self._uncertain[file], chance)) for name, file in names.items()}

    def _take(self, operation: Operation) -> None:
        match operation:
            case Write() | Truncate():
                self._uncertain[operation.file].append(operation)
            case Sync(file):
                for change in self._uncertain[file]:
                    _apply(self._certain[file], change)
                self._uncertain[file].clear()
                self._settle_names(file)
            case Create(_, file):
                self._certain[file] = bytearray()
                self._uncertain[file] = []
                self._uncertain_names.append(operation)
            case Delete() | Rename():
                self._uncertain_names.append(operation)
            case SyncFolder():
                self._settle_names(None)

    def _settle_names(self, file: int | None) -> None:
        """Make names certain: all of them, or all up to the one of a file that was synced."""
        changes = self._uncertain_names
        until = len(changes)
        if file is not None:
            created = (isinstance(change, Create) and change.file == file for change in changes)
            until = next((place + 1 for place, this_one in enumerate(created) if this_one), 0)
        for change in changes[:until]:
            _rename(self._names, change)
        del changes[:until]


def write_image(folder: Path, image: dict[str, bytes]) -> None:
    """Put an image into a new folder."""
    folder.mkdir()
    for name, content in image.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def _rename(names: dict[str, int], change: Create | Delete | Rename) -> None:
    if isinstance(change, Create):
        names[change.name] = change.file
    elif isinstance(change, Rename):
        if change.name in names:
            names[change.target] = names.pop(change.name)
    else:
        names.pop(change.name, None)


def _apply(content: bytearray, change: Write | Truncate) -> None:
    if isinstance(change, Truncate):
        _resize(content, change.size)
    else:
        _put(content, change.offset, change.data)


def _torn(certain: bytearray, uncertain: list[Write | Truncate], chance: Random) -> bytearray:
    content = bytearray(certain)
    fate = chance.random()
    if not uncertain or fate < 0.1:
        return content
    if fate < 0.2:
        for change in uncertain:
            _apply(content, change)
        return content
    for change in chance.sample(uncertain, len(uncertain)):
        arrives = chance.random()
        if arrives < 1 / 3:
            _apply(content, change)
        elif arrives < 2 / 3 and isinstance(change, Write):
            _put_some_sectors(content, change, chance)
    return _with_some_size(content, certain, uncertain, chance)


def _put_some_sectors(content: bytearray, write: Write, chance: Random) -> None:
    start, end = write.offset, write.offset + len(write.data)
    while start < end:
        stop = min(end, (start // SECTOR + 1) * SECTOR)
        if chance.random() < 0.5:
            _put(content, start, write.data[start - write.offset : stop - write.offset])
        start = stop


def _with_some_size(
    content: bytearray, certain: bytearray, uncertain: list[Write | Truncate], chance: Random
) -> bytearray:
    """The size of a file is written apart from its content, and may be behind it or ahead of it."""
    fate = chance.random()
    if fate < 0.2 and len(content) > len(certain):
        _resize(content, chance.randint(len(certain), len(content)))
    elif fate < 0.4:
        ends = [change.offset + len(change.data) for change in uncertain if isinstance(change, Write)]
        _resize(content, max([len(content), *ends]))
    return content


def _put(content: bytearray, offset: int, data: bytes) -> None:
    if len(content) < offset:
        _resize(content, offset)
    content[offset : offset + len(data)] = data


def _resize(content: bytearray, size: int) -> None:
    if size < len(content):
        del content[size:]
    else:
        content.extend(bytes(size - len(content)))
