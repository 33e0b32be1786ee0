"""The layout of `memory.json`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote

from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.domain.setting import ENABLED, EVERY
from aforesaid.errors import StoreRefused
from aforesaid.store.ephemeral.state import Name, State
from aforesaid.store.journalled import document
from aforesaid.store.journalled.disk import Disk, make_folders, replace_file
from aforesaid.store.journalled.layout import Damaged, Header, Put, Record, Salvaged, Snapshot
from aforesaid.store.journalled.tables import BY_NAME, TABLES, Table

_BY_USER: Final = ("messages", "summaries")
_USUAL_EVERY: Final = 10


class JsonFile:
    """Everything in one file."""

    kind = "json"

    def __init__(self, path: Path) -> None:
        """`path` may be a link: what it leads to is what is replaced."""
        self.path = path
        self._file = path.expanduser().absolute().resolve()

    @property
    def beside(self) -> Path:
        """The file itself: lock and journals lie beside what a link leads to."""
        return self._file

    def prepare(self, disk: Disk) -> None:
        """Make the folder."""
        if self._file.is_dir():
            raise StoreRefused(f"{self.path} is a folder; name a file, or use files:{self.path}")
        make_folders(disk, self._file.parent)

    def owner_of(self, path: Path, state: State) -> Name | None:  # noqa: ARG002 - the contract's
        """Return None: the file belongs to all."""
        return None

    def load(self, put: Put, damaged: Damaged | None = None) -> Header | None:  # noqa: ARG002 - the contract's
        """Read the file."""
        if not self._file.exists():
            return None
        return document.read(self._file, self.kind, put)

    def write(self, disk: Disk, snapshot: Snapshot) -> int:
        """Put a new file in the place of the old one."""
        return replace_file(disk, self._file, document.pieces(self.kind, snapshot.header, _sections(snapshot.state)))

    def salvage(self, put: Put) -> Salvaged:
        """Read whatever is whole in a damaged file."""
        if not self._file.exists():
            return Salvaged(None, (), ())
        found = document.salvage(self._file, put)
        return Salvaged(found.header, (self._file,), found.lost())

    @property
    def main(self) -> Path:
        """The file."""
        return self._file

    def files(self) -> list[Path]:
        """Return the file."""
        return [self._file]

    def loss_lists(self) -> list[Path]:
        """Return none: a damaged file is not opened."""
        return []

    def aside(self, path: Path, label: str) -> Path:
        """Return `memory.json.LABEL`, and `memory.json.LABEL.journal-…` for a journal."""
        return path.with_name(f"{self._file.name}.{label}{path.name.removeprefix(self._file.name)}")

    def elsewhere(self, path: Path) -> Self:
        """Return the same layout at another place."""
        return type(self)(path)

    def size(self) -> int:
        """Return the size of the file."""
        return self._file.stat().st_size if self._file.exists() else 0


def user_key(name: Name) -> str:
    """Return the key of a user in the file: the id alone, or `id@space`."""
    space, user = name
    if space == DEFAULT_SPACE and "@" not in user:
        return user
    return f"{quote(user, safe=' ')}@{quote(space, safe=' ')}"


def _sections(state: State) -> Iterator[document.Section]:
    users = BY_NAME["users"]
    yield "users", "named", ((user_key(name), _user(state, users, name)) for name in state.owners)
    for name in _BY_USER:
        yield name, "grouped", _grouped(state, BY_NAME[name])
    for table in TABLES:
        if table.name not in (*_BY_USER, "users"):
            yield table.name, "listed", _listed(state, table)


def _listed(state: State, table: Table) -> Iterator[tuple[str, Record]]:
    rows: dict[Any, Any] = getattr(state, table.state)
    return (("", table.pack(key, value)) for key, value in rows.items())


def _grouped(state: State, table: Table) -> Iterator[tuple[str, Record]]:
    rows: dict[int, Any] = getattr(state, table.state)
    by_user: dict[Name, list[int]] = {}
    for key, value in rows.items():
        by_user.setdefault(table.owner(state, key, value) or ("", ""), []).append(key)
    for name, keys in by_user.items():
        for key in keys:
            yield user_key(name), table.pack(key, rows[key])


def _user(state: State, table: Table, name: Name) -> Record:
    """Write a user as documented. What is set is kept in `settings` too, which is what counts."""
    enabled, every = state.settings.get((name, ENABLED)), state.settings.get((name, EVERY))
    created = state.owners[name]
    changed = [setting.updated_at for setting in (enabled, every) if setting is not None]
    return {
        **table.pack(name, created),
        "storage_type": "json",
        "summary_every_n": _USUAL_EVERY if every is None else every.value,
        "memory_enabled": True if enabled is None else enabled.value,
        "updated_at": max([created, *changed]).isoformat(),
    }
