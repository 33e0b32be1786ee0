"""Where readable files are, and what is in each: one `memory.json`, or a folder for each account."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from glob import escape
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple, Self
from urllib.parse import quote

from aforesaid.domain.checks import moment, now
from aforesaid.domain.message import Message, in_time_order
from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.domain.setting import ENABLED, EVERY
from aforesaid.errors import StoreDamaged, StoreRefused
from aforesaid.store.readable import document
from aforesaid.store.readable.disk import Disk, make_folders
from aforesaid.store.readable.document import Body, Header, Section, body
from aforesaid.store.readable.journal import journals_of
from aforesaid.store.readable.records import NUMBERED, TABLES, Content, Name, Record, Records, pack_message, shown_id

DATABASE: Final = ".db"
LOST: Final = ".lost"
"""The end of the names of files that list what could not be recovered, until somebody removes them."""
HEALTH_CHECK: Final = "health_check"
"""When a file was written, as it says itself."""
_ASIDE: Final = re.compile(r".*\.(damaged|edited)-\d{8}T\d+Z(\.db)?(-wal|-shm)?")
"""The names of what is set aside."""


class Document(NamedTuple):
    """A file that is to be written."""

    path: Path
    body: Body
    about: Record
    """What is said at its head, for people."""


@dataclass(frozen=True, slots=True)
class DamagedFile:
    """A damaged file of an account, whose intact records are used."""

    path: Path
    tables: tuple[str, ...]
    """The tables whose records are in it alone. Empty for a file that repeats records of another."""
    error: str
    lost: tuple[str, ...] = ()
    """What could not be read of it, one line each. Empty where all of it is made again from the messages."""


@dataclass(slots=True)
class FilesRead:
    """What readable files hold."""

    header: Header
    records: Records = field(default_factory=dict)
    damaged: list[DamagedFile] = field(default_factory=list)
    edited: list[Message] = field(default_factory=list)
    """Messages that somebody changed."""
    doubtful: dict[Path, list[str]] = field(default_factory=dict)
    """Records of which one byte changed, by file."""

    def add(self, path: Path, read: document.Read) -> None:
        """Add what a file holds. Raises StoreDamaged if another account has something with the same number."""
        for table, found in read.records.items():
            there = self.records.setdefault(table, {})
            if table in NUMBERED and (twice := there.keys() & found.keys()):
                raise StoreDamaged(
                    f"{path} has {table} {min(twice)}, and so has another account; a copy of another store's account "
                    "cannot be put beside these: export and import it"
                )
            there.update(found)
        self.edited += read.edited_messages
        if read.doubtful:
            self.doubtful[path] = read.doubtful


@dataclass(frozen=True, slots=True)
class File:
    """A file of an account, and the tables whose records are in it."""

    name: str
    tables: tuple[str, ...]
    window: bool = False
    """Whether it only shows what is in the whole history."""
    derived: bool = False
    """Whether all that is in it can be made again from the messages."""
    log: bool = False
    """Whether it holds the messages, which nothing makes again. The windows repeat the newest of them."""


FILES: Final = (
    File("account.json", ("users", "settings", "extracted", "chunks", "spending")),
    File("whole_history.json", ("messages", "sessions"), log=True),
    File("short_term.json", ("messages",), window=True),
    File("mid_term.json", ("messages",), window=True),
    File("history_context.json", ("summaries",), derived=True),
    File("memories.json", ("memories", "memory_versions", "facts", "forgotten")),
    File("vectors.json", ("vectors",), derived=True),
    File("audit.json", ("audit",)),
    File("receipts.json", ("receipts",)),
)
WINDOWS: Final = frozenset(file.name for file in FILES if file.window)


class Layout:
    """The files of a store: `index`, which is about all of it and is written last, and folders of accounts."""

    kind: str
    """How the kind of store is called, as in a location."""
    index: Path
    beside: Path
    """What the names of the lock and of an earlier version's journals begin with."""
    database: Path
    """The database that does the work."""

    def __init__(self, path: Path) -> None:
        """`path` is what the location names. It may be a link: what it leads to is what is replaced."""
        self.path = path
        self.main = path.expanduser().absolute().resolve()

    def prepare(self, disk: Disk) -> None:
        """Make the folder. Raises StoreRefused if something else is in its place."""
        raise NotImplementedError

    def documents(self, content: Content) -> Iterator[Document]:
        """Return what is to be in the files, the index last."""
        raise NotImplementedError

    def accounts(self) -> list[Path]:
        """Return the folders of accounts that are there."""
        return []

    def aside(self, path: Path, label: str) -> Path:
        """Return the name under which a file of the store or `main` is set aside by a restore."""
        raise NotImplementedError

    def folders_of(self, names: Iterable[Name]) -> set[Path]:  # noqa: ARG002 - only one layout has any
        """Return the folders of accounts."""
        return set()

    def elsewhere(self, path: Path) -> Self:
        """Return the same layout at another place."""
        return type(self)(path)

    @property
    def lock(self) -> Path:
        """The file whose lock says that the store is in use."""
        return self.beside.with_name(f"{self.beside.name}.lock")

    def files(self) -> list[Path]:
        """Return the readable files that are there."""
        accounts = [account / file.name for account in self.accounts() for file in FILES]
        return [path for path in (*accounts, self.index) if path.exists()]

    def lists(self) -> list[Path]:
        """Return the lists of what could not be recovered."""
        return [
            path
            for folder in (self.index.parent, *self.accounts())
            for path in sorted(folder.glob(f"*{LOST}"))
            if path.name.startswith(self.index.name if folder == self.index.parent else "")
        ]

    def copies(self) -> list[Path]:
        """Return what was set aside: damaged and edited files, and the copies that repairs keep."""
        found = {path for account in self.accounts() for path in account.iterdir()}
        for own in (self.main, self.main.with_name(f".{self.main.name}"), self.index, self.database):
            found.update(own.parent.glob(f"{escape(own.name)}.*"))
        return sorted(path for path in found if _ASIDE.fullmatch(path.name))

    def read(self) -> FilesRead | None:
        """Read the files. Returns None where there are none; raises StoreDamaged if they cannot be used without repair.

        Damage to a file of an account is reported instead, and its intact records are read.
        """
        if not self.index.exists():
            begun = any(journals_of(self.beside).values()) and min(journals_of(self.beside)) == 1
            if any((account / "account.json").exists() for account in self.accounts()) and not begun:
                raise StoreDamaged(f"{self.index} is gone, but accounts are there; run: aforesaid verify --repair")
            return None
        index = document.read(self.index, self.kind)
        found = FilesRead(index.header)
        found.add(self.index, index)
        # The index is written last: all files of the accounts that it lists were there.
        listed = self.folders_of(name for name, _ in found.records.get("users", {}).values())
        for account in sorted({*self.accounts(), *listed}):
            for file in FILES:
                path = account / file.name
                if path.exists() or (file.log and account in listed):
                    self._read_file(path, file, found)
        return found

    def _read_file(self, path: Path, file: File, found: FilesRead) -> None:
        try:
            read = document.read(path, self.kind)
        except (StoreDamaged, StoreRefused, FileNotFoundError) as error:  # refused: its first line is damaged
            lost: tuple[str, ...] = ()
            if file.log:
                lost = _salvage_messages(path, found)
            elif not file.derived and not file.window:
                salvaged = document.salvage(path)
                _merge(found.records, salvaged.records)
                lost = salvaged.lost()
            found.damaged.append(DamagedFile(path, () if file.window else file.tables, str(error), lost))
        else:
            if not file.window:
                found.add(path, read)

    def salvage(self, found: FilesRead) -> list[str]:
        """Read whatever is whole in damaged files; return what is lost, one line each."""
        lost: list[str] = []
        # What is read later takes the place of what was read before, and the index and the histories are what counts.
        for path in sorted(self.files(), key=lambda path: path.name not in WINDOWS):
            try:
                read = document.read(path, self.kind)
            except (StoreDamaged, StoreRefused):
                whole = document.salvage(path)
                _merge(found.records, whole.records)
                folder = "" if path == self.main else f"{path.parent.name}/"
                lost += [f"{folder}{line}" for line in whole.lost() if path.name not in WINDOWS]
            else:
                _merge(found.records, read.records)
                found.edited += read.edited_messages
        return lost

    def tidy(self, disk: Disk, content: Content, known: Iterable[Path]) -> None:
        """Remove those of the known folders whose accounts are gone for good."""
        left = self.folders_of(content.users)
        for account in set(known).intersection(self.accounts()):
            if account not in left:
                for path in account.glob("*.json*"):
                    disk.unlink(path)
                if not any(account.iterdir()):
                    account.rmdir()
                disk.sync_folder(account.parent)


def _merge(records: Records, more: Records) -> None:
    for table, found in more.items():
        records.setdefault(table, {}).update(found)


def _salvage_messages(path: Path, found: FilesRead) -> tuple[str, ...]:
    """Read what is whole of an account's messages, and the rest from the windows that repeat some of them.

    Returns what is missing, one line each.
    """
    whole = document.salvage(path) if path.exists() else None
    records: Records = {} if whole is None else whole.records
    there = len(records.setdefault("messages", {}))
    for name in WINDOWS:
        window = path.with_name(name)
        repeated = document.salvage(window).records.get("messages", {}) if window.exists() else {}
        records["messages"] = repeated | records["messages"]
    _merge(found.records, records)
    recovered = len(records["messages"]) - there
    if whole is None:
        return (f"{path.name}: the file is gone; {recovered} messages were found in the windows beside it",)
    # A file that is newer than the index was being written: then a window may still have what was erased meanwhile.
    settled = whole.header is not None and whole.header.counter <= found.header.counter
    return whole.lost(recovered if settled else 0)


class JsonFile(Layout):
    """Everything in one file: users, messages and summaries as documented, and after them all else."""

    kind = "json"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.index = self.beside = self.main
        self.database = self.main.with_name(f".{self.main.name}{DATABASE}")

    def prepare(self, disk: Disk) -> None:
        if self.main.is_dir():
            raise StoreRefused(f"{self.path} is a folder; name a file, or use files:{self.path}")
        make_folders(disk, self.main.parent)

    def documents(self, content: Content) -> Iterator[Document]:
        yield Document(self.main, body(self._sections(content)), {})

    def _sections(self, content: Content) -> Iterator[Section]:
        yield "users", "named", ((user_key(name), _documented_user(content, name)) for name in content.users)
        for table in ("messages", "summaries"):
            owners = sorted(content.records, key=lambda owner: owner is not None)
            yield (
                table,
                "grouped",
                [
                    (user_key(owner or ("", "")), record)
                    for owner in owners
                    for record in content.records[owner].get(table, ())
                ],
            )
        for table, about in TABLES.items():
            if not about.legacy and table not in {"users", "messages", "summaries"}:
                yield table, "listed", [("", record) for record in content.every(table)]

    def aside(self, path: Path, label: str) -> Path:
        hidden = "." if path.name.startswith(self.database.name) else ""
        return path.with_name(path.name.replace(f"{hidden}{self.main.name}", f"{hidden}{self.main.name}.{label}", 1))


def user_key(name: Name) -> str:
    """Return the key of a user in the file: the id alone, or `id@space`."""
    space, user = name
    if space == DEFAULT_SPACE and "@" not in user:
        return user
    return f"{quote(user, safe=' ')}@{quote(space, safe=' ')}"


def _documented_user(content: Content, name: Name) -> Record:
    """Write a user as documented. What is set is kept in `settings` too, which is what counts."""
    (record,) = content.records[name]["users"]
    settings = {each["key"]: each for each in content.records[name].get("settings", ())}
    every, enabled = settings.get(EVERY), settings.get(ENABLED)
    times = [each["updated_at"] for each in (every, enabled) if each is not None]
    return record | {
        "storage_type": "json",
        "summary_every_n": 10 if every is None else every["value"],
        "memory_enabled": True if enabled is None else enabled["value"],
        "updated_at": max([record["created_at"], *times], key=datetime.fromisoformat),
    }


SHORT_TERM: Final = 50
MID_TERM: Final = 200
"""Sizes of the two windows in messages; the first has the newest."""
_PLAIN_NAME: Final = re.compile(r"[a-z0-9_-]{1,100}")
_LONGEST_NAME: Final = 40
_STEM: Final = "aforesaid"
"""What the names of index, lock, database and journals begin with in a new folder."""
_OWN_FILES: Final = ("*.json", "*.lock", "*.journal-*")
_ACCOUNTS: Final = "account_*"
COMPONENTS: Final = ("short_term", "mid_term", "whole_history", "history_context")


def folder_name(name: Name) -> str:
    """Return the name of an account's folder: its id where that is a safe name, something like it otherwise."""
    space, user = name
    if space == DEFAULT_SPACE and _PLAIN_NAME.fullmatch(user):
        return f"account_{user}"
    readable = re.sub(r"[^\w-]", "_", user if space == DEFAULT_SPACE else f"{user}@{space}")[:_LONGEST_NAME]
    # Two ids may look alike to a file system that does not tell capitals apart.
    digest = blake2b(f"{space}\0{user}".encode(), digest_size=6).hexdigest()
    return f"account_{readable}~{digest}"


class AccountFolders(Layout):
    """A folder with a folder for each account, and one file about all of them."""

    kind = "files"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        # A folder keeps the name that it was made with; earlier versions used another one.
        stems = {path.stem for pattern in _OWN_FILES for path in self.main.glob(pattern)}
        self.beside = self.main / (stems.pop() if len(stems) == 1 else _STEM)
        self.index = self.beside.with_name(f"{self.beside.name}.json")
        self.database = self.main / f".{_STEM}{DATABASE}"

    def prepare(self, disk: Disk) -> None:
        if self.main.exists() and not self.main.is_dir():
            raise StoreRefused(f"{self.path} is a file; name a folder, or use json:{self.path}")
        make_folders(disk, self.main)

    def folder_of(self, name: Name) -> Path:
        """Return the folder of an account."""
        return self.main / folder_name(name)

    def folders_of(self, names: Iterable[Name]) -> set[Path]:
        return {self.folder_of(name) for name in names}

    def accounts(self) -> list[Path]:
        return sorted(path for path in self.main.glob(_ACCOUNTS) if path.is_dir())

    def documents(self, content: Content) -> Iterator[Document]:
        for name in content.users:
            account = _Account(content, name)
            for file in FILES:
                yield Document(self.folder_of(name) / file.name, body(account.sections(file)), account.about(file))
        tables = {"users": list(content.every("users")), **content.records[None]}
        yield Document(
            self.index, body((table, "listed", [("", each) for each in found]) for table, found in tables.items()), {}
        )

    def aside(self, path: Path, label: str) -> Path:
        return self.main / label / path.relative_to(self.main)


class _Account:
    """What is written about one account."""

    def __init__(self, content: Content, name: Name) -> None:
        self._name = name
        self._records = content.records[name]
        self._created = content.users[name].created_at
        self._history = content.histories.get(name)
        self._said = in_time_order(content.messages.get(name, ()))

    def about(self, file: File) -> Record:
        """Return what is said at the head of a file, for people."""
        component = file.name.removesuffix(".json")
        account_id = shown_id(self._name[1])
        if component == "account":
            parts = {each: self._status(each) for each in COMPONENTS}
            status = {each: "active" if part["message_count"] else "initialized" for each, part in parts.items()}
            return {
                "account_id": account_id,
                "space": self._name[0],
                "created_at": self._created.isoformat(),
                "memory_status": status,
                "components": parts,
            }
        if component == "history_context":
            return self._status(component) | {"context": self._context()}
        return self._status(component) if component in COMPONENTS else {"account_id": account_id}

    def sections(self, file: File) -> Iterator[Section]:
        """Return the records of a file."""
        if file.window:
            shown = self._covered(file.name.removesuffix(".json"))
            yield "messages", "listed", (("", pack_message(message)) for message in shown)
            return
        for name in file.tables:
            yield name, "listed", (("", record) for record in self._records.get(name, ()))

    def _status(self, component: str) -> Record:
        said = self._covered(component)
        updated = said[-1].stored_at if said else self._created
        if component == "history_context" and self._history is not None:
            updated = self._history.created_at
        return {
            "account_id": shown_id(self._name[1]),
            "status": "active" if said else "initializing",
            "last_update": updated.isoformat(),
            "message_count": len(said),
            HEALTH_CHECK: moment(now()).isoformat(),
        }

    def _covered(self, component: str) -> list[Message]:
        if component == "short_term":
            return self._said[-SHORT_TERM:]
        if component == "mid_term":
            return self._said[-SHORT_TERM - MID_TERM : -SHORT_TERM]
        if component == "whole_history":
            return self._said
        newest = self._history
        return [] if newest is None else [each for each in self._said if newest.first <= each.seq <= newest.last]

    def _context(self) -> Record:
        """Return the newest analysis; before there is one, a baseline that says so."""
        newest = self._history
        if newest is None:
            return {"baseline": True, "text": "", "initialized_at": self._created.isoformat()}
        return {"baseline": False, "text": newest.text, "generated_at": newest.created_at.isoformat()}
