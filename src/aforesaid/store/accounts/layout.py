"""The layout of account folders: `memory/account_ann/whole_history.json` and so on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Self

from aforesaid.errors import StoreDamaged, StoreRefused
from aforesaid.store.accounts.components import FILES, Account, File, folder_name
from aforesaid.store.ephemeral.state import Name, State
from aforesaid.store.journalled import document
from aforesaid.store.journalled.disk import Disk, make_folders, replace_file
from aforesaid.store.journalled.layout import LOST, Damaged, DamagedFile, Header, Put, Record, Salvaged, Snapshot
from aforesaid.store.journalled.tables import BY_NAME, TABLES

_STEM: Final = "aforesaid"
"""What the names of index, lock and journals begin with in a new folder."""
_OWN_FILES: Final = ("*.json", "*.lock", "*.journal-*")
_ACCOUNTS: Final = "account_*"


class AccountFolders:
    """A folder with a folder for each account, and one file about all of them, which is written last."""

    kind = "files"

    def __init__(self, path: Path) -> None:
        """`path` may be a link."""
        self.path = path
        self._folder = path.expanduser().absolute().resolve()

    @property
    def beside(self) -> Path:
        """What the names of index, lock and journals begin with: they are in the folder, and are copied with it.

        A folder keeps the name that it was made with; earlier versions used another one.
        """
        found = [path for pattern in _OWN_FILES for path in self._folder.glob(pattern)]
        stems = {path.stem for path in found}
        return self._folder / (stems.pop() if len(stems) == 1 else _STEM)

    @property
    def _index(self) -> Path:
        return self.beside.with_name(f"{self.beside.name}.json")

    def prepare(self, disk: Disk) -> None:
        """Make the folder."""
        if self._folder.exists() and not self._folder.is_dir():
            raise StoreRefused(f"{self.path} is a file; name a folder, or use json:{self.path}")
        make_folders(disk, self._folder)

    def load(self, put: Put, damaged: Damaged | None = None) -> Header | None:
        """Read all files. A window that is damaged is no loss: it only shows what is in the whole history."""
        index = self._index
        accounts = self._accounts()
        if not index.exists():
            if any((account / "account.json").exists() for account in accounts) and not self._has_first_journal():
                raise StoreDamaged(f"{index} is gone, but accounts are there; run: aforesaid verify --repair")
            return None
        listed: set[str] = set()

        def put_and_list(name: str, record: Record) -> None:
            put(name, record)
            if name == "users":
                listed.add(folder_name(BY_NAME[name].unpack(record)[0]))

        header = document.read(index, self.kind, put_and_list)
        # The index is written last: all files of the accounts that it lists were there.
        for account in sorted({*accounts, *(self._folder / name for name in listed)}):
            for file in FILES:
                path = account / file.name
                # A window repeats what the whole history has: it is read only to look for damage.
                wanted = not (file.window and damaged is None)
                if wanted and (path.exists() or (file.log and account.name in listed)):
                    self._load_file(path, file, header, _nowhere if file.window else put, damaged)
        return header

    def owner_of(self, path: Path, state: State) -> Name | None:
        """Return the account in whose folder a file is."""
        return next((name for name in state.owners if folder_name(name) == path.parent.name), None)

    def write(self, disk: Disk, snapshot: Snapshot) -> int:
        """Write the files of those accounts that changed, each old or new, and the file about all of them last."""
        state, touched = snapshot.state, snapshot.touched
        rows = _rows_by_owner(state)
        for name in state.owners:
            folder = self._folder / folder_name(name)
            fresh = not (folder / FILES[0].name).exists()
            make_folders(disk, folder)
            account = Account(state, name, rows.get(name, {}))
            for file in FILES:
                if fresh or touched is None or any((name, table) in touched for table in file.tables):
                    self._write_file(disk, folder / file.name, file, account, snapshot.header)
        self._remove_strangers(disk, state)
        index = document.pieces(self.kind, snapshot.header, _sections_of_all(state, rows.get(None, {})))
        replace_file(disk, self._index, index)
        return self.size()

    def salvage(self, put: Put) -> Salvaged:
        """Read whatever is whole. The windows are read too: they may hold what the whole history has lost."""
        lost: list[str] = []
        files: list[Path] = []
        header: Header | None = None
        # What is read later takes the place of what was read before, and the index and the history are what counts.
        order = [path for account in self._accounts() for path in self._files_of(account)]
        if self._index.exists():
            order.append(self._index)
        for path in order:
            found = document.salvage(path, put)
            header = found.header if found.header is not None and path == self._index else header or found.header
            lost += [f"{path.parent.name}/{line}" for line in found.lost() if not _is_window(path)]
            files.append(path)
        lost += [line for path in self.loss_lists() for line in path.read_text(encoding="utf-8").splitlines()]
        return Salvaged(header, tuple(files), tuple(lost))

    @property
    def main(self) -> Path:
        """The folder with all accounts."""
        return self._folder

    def files(self) -> list[Path]:
        """Return the files of all accounts, what they lost, and the index."""
        return [
            *(path for account in self._accounts() for path in self._files_of(account)),
            *self.loss_lists(),
            self._index,
        ]

    def loss_lists(self) -> list[Path]:
        """Return those of all accounts. They lie beside the copies of the damaged files."""
        return sorted(self._folder.glob(f"{_ACCOUNTS}/*{LOST}"))

    def aside(self, path: Path, label: str) -> Path:
        """Return the same place below the folder `LABEL`."""
        return self._folder / label / path.relative_to(self._folder)

    def elsewhere(self, path: Path) -> Self:
        """Return the same layout at another place."""
        return type(self)(path)

    def size(self) -> int:
        """Return how many bytes the files take up."""
        found = [*self._folder.glob(f"{_ACCOUNTS}/*.json"), self._index]
        return sum(path.stat().st_size for path in found if path.exists())

    def _accounts(self) -> list[Path]:
        return sorted(path for path in self._folder.glob(_ACCOUNTS) if path.is_dir())

    def _files_of(self, account: Path) -> Iterator[Path]:
        windows_first = sorted(FILES, key=lambda file: not file.window)
        return (account / file.name for file in windows_first if (account / file.name).exists())

    def _has_first_journal(self) -> bool:
        return any(self._folder.glob(f"{self.beside.name}.journal-*1"))

    def _load_file(self, path: Path, file: File, index: Header, put: Put, damaged: Damaged | None) -> None:
        try:
            document.read(path, self.kind, put)
        except (StoreDamaged, StoreRefused, FileNotFoundError) as error:  # refused: its first line is damaged
            if damaged is None:
                raise
            lost: tuple[str, ...] = ()
            if file.log:
                lost = _salvage_messages(path, index, put)
            elif not file.derived and not file.window:
                lost = document.salvage(path, put).lost()
            damaged(DamagedFile(path, () if file.window else file.tables, str(error), lost))

    def _write_file(self, disk: Disk, path: Path, file: File, account: Account, header: Header) -> None:
        made = document.pieces(self.kind, header, account.sections(file), about=account.about(file))
        replace_file(disk, path, made)

    def _remove_strangers(self, disk: Disk, state: State) -> None:
        """Remove the files of accounts that are gone for good."""
        known = {folder_name(name) for name in state.owners}
        for account in self._accounts():
            if account.name not in known:
                for file in FILES:
                    disk.unlink(account / file.name)
                for kept in account.glob("*.json.damaged-*"):
                    disk.unlink(kept)
                if not any(account.iterdir()):
                    account.rmdir()
                disk.sync_folder(self._folder)


def _salvage_messages(path: Path, index: Header, put: Put) -> tuple[str, ...]:
    """Read what is whole of an account's messages, and the rest from the windows that repeat some of them.

    Returns what is missing, one line each.
    """
    there: set[int] = set()

    def put_new(name: str, record: Record) -> None:
        if name == "messages" and record.get("id") in there:
            return
        put(name, record)
        if name == "messages":
            there.add(record["id"])

    found = document.salvage(path, put_new) if path.exists() else None
    whole = len(there)
    for file in FILES:
        window = path.with_name(file.name)
        if file.window and window.exists():
            document.salvage(window, put_new)
    recovered = len(there) - whole
    if found is None:
        return (f"{path.name}: the file is gone; {recovered} messages were found in the windows beside it",)
    # A file that is newer than the index was being written: then a window may still have what was erased meanwhile.
    settled = found.header is not None and found.header.journal <= index.journal
    return found.lost(recovered if settled else 0)


def _nowhere(name: str, record: Record) -> None:
    """Leave a record out."""
    del name, record


def _rows_by_owner(state: State) -> dict[Name | None, dict[str, list[Any]]]:
    found: dict[Name | None, dict[str, list[Any]]] = {}
    for table in TABLES:
        rows: dict[Any, Any] = getattr(state, table.state)
        for key, value in rows.items():
            owner = table.owner(state, key, value)
            # Who has no folder is written down with what is nobody's.
            owner = owner if owner in state.owners else None
            found.setdefault(owner, {}).setdefault(table.name, []).append(key)
    return found


def _sections_of_all(state: State, rows: dict[str, list[Any]]) -> Iterator[document.Section]:
    yield "users", "listed", [("", BY_NAME["users"].pack(name, at)) for name, at in state.owners.items()]
    for table in TABLES:
        if table.name in rows:
            held: dict[Any, Any] = getattr(state, table.state)
            yield table.name, "listed", [("", table.pack(key, held[key])) for key in rows[table.name]]


def _is_window(path: Path) -> bool:
    return any(file.window and file.name == path.name for file in FILES)
