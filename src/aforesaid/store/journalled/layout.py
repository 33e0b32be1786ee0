"""What a kind of file store has to bring: where its files are, and how a state is laid out in them."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from aforesaid.store.ephemeral.state import Name, State
from aforesaid.store.journalled.disk import Disk
from aforesaid.store.journalled.lines import Record

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
