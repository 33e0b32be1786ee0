"""What a kind of file store has to bring: where its files are, and how a state is laid out in them."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from aforesaid.store.ephemeral.state import Name, State
from aforesaid.store.journalled.disk import Disk

Record: TypeAlias = dict[str, Any]

CHECK: Final = "check"
"""The field with a record's checksum."""
_START: Final = re.compile(r"\{")
_decoder: Final = json.JSONDecoder()
_encoder: Final = json.JSONEncoder(ensure_ascii=False)


class DamagedRecord(ValueError):
    """A record is not what was written."""


def sealed(record: Record) -> bytes:
    """Write a record as one line, without its end, with its checksum as the last field."""
    body = _encoder.encode(record).encode()
    return b'%b, "%b": "%08x"}' % (body[:-1], CHECK.encode(), zlib.crc32(body))


def check_of(line: bytes) -> bytes:
    """Return the checksum of a line that was just sealed."""
    return line[-10:-2]


def unsealed(record: object) -> Record:
    """Return a record that was read, without its checksum, or raise DamagedRecord. Spaces between fields are free."""
    if not isinstance(record, dict) or not isinstance(check := record.pop(CHECK, None), str):
        raise DamagedRecord("it has no checksum")
    try:
        body = _encoder.encode(record).encode()
    except UnicodeEncodeError:
        raise DamagedRecord("it is not valid Unicode") from None
    if f"{zlib.crc32(body):08x}" != check:
        raise DamagedRecord("it is not what was written")
    return record


def read_line(line: bytes) -> Record:
    """Return the record of a line, or raise DamagedRecord."""
    try:
        return unsealed(json.loads(line))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise DamagedRecord(str(error)) from None


def salvaged(data: bytes) -> Iterator[Record]:
    """Return every record that is whole, wherever it is in a damaged file, whatever surrounds it."""
    text = data.decode(errors="replace")
    position = 0
    while (found := _START.search(text, position)) is not None:
        position = found.end()
        try:
            value, end = _decoder.raw_decode(text, found.start())
            record = unsealed(value)
        except (json.JSONDecodeError, DamagedRecord, RecursionError):
            continue
        position = end
        yield record


Touched: TypeAlias = tuple[Name | None, str]
"""Whose record changed (None: nobody's in particular), and of which table."""

LOST: Final = ".lost"
"""The end of the names of files that list what could not be recovered, until somebody removes them."""

Put = Callable[[str, Record], None]
"""Takes the name of a table and a record of it."""


@dataclass(frozen=True, slots=True)
class DamagedFile:
    """A damaged file that a store can do without until its content is rebuilt."""

    path: Path
    tables: tuple[str, ...]
    """The tables whose records are in it alone. Empty for a file that repeats records of another."""
    error: str
    lost: tuple[str, ...] = ()
    """What could not be read of it, one line each. Empty where all of it is rebuilt from the messages."""


Damaged = Callable[[DamagedFile], None]


@dataclass(frozen=True, slots=True)
class Header:
    """What the files say of themselves."""

    store: str
    """A name that nobody else has, so that a journal is never read into the wrong files."""
    journal: int
    """All that is in journals before this one is in the files."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A state at a moment, to be written down."""

    state: State
    header: Header
    touched: AbstractSet[Touched] | None
    """What changed since the files were last written; None for everything."""


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What could be read of damaged files."""

    header: Header | None
    files: tuple[Path, ...]
    """All files that belong to the store but for journals: they are to be set aside."""
    lost: tuple[str, ...]
    """What could not be read, one line each."""


class Layout(Protocol):
    """The files of a store."""

    kind: str
    """How the kind of store is called, as in a location."""
    path: Path
    """What the location names."""

    @property
    def beside(self) -> Path:
        """The name that the names of the lock and of the journals begin with."""

    def prepare(self, disk: Disk) -> None:
        """Make the folders that are needed."""

    def load(self, put: Put, damaged: Damaged | None = None) -> Header | None:
        """Read the files. Returns None where there are none yet; raises StoreDamaged when something is wrong.

        With `damaged`, damage to any file of an account is reported there instead. The intact records of such a file
        are read, unless they can all be made again from the messages.
        """

    def owner_of(self, path: Path, state: State) -> Name | None:
        """Return the account that a file belongs to; None where it belongs to all."""

    def write(self, disk: Disk, snapshot: Snapshot) -> int:
        """Write the files, each of them old or new at any moment, and return their size."""

    def salvage(self, put: Put) -> Salvaged:
        """Read whatever is whole in damaged files."""

    @property
    def main(self) -> Path:
        """The file or folder that holds the store."""

    def files(self) -> list[Path]:
        """Return all files of the store but for lock and journals. Not all of them need to exist."""

    def loss_lists(self) -> list[Path]:
        """Return the files that list what could not be recovered of damaged files (`DamagedFile.lost`)."""

    def aside(self, path: Path, label: str) -> Path:
        """Return the name under which one of the files, a journal or `main` is set aside, in the same folder."""

    def elsewhere(self, path: Path) -> Layout:
        """Return the same layout at another place."""

    def size(self) -> int:
        """Return how many bytes the files take up."""
