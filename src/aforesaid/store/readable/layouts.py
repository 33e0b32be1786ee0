"""The two layouts of readable files: one `memory.json`, or a folder for each account."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple, Protocol, Self, TypeAlias
from urllib.parse import quote

from aforesaid.domain.checks import moment, now
from aforesaid.domain.message import Message, in_time_order
from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.domain.setting import ENABLED, EVERY
from aforesaid.errors import StoreDamaged, StoreRefused
from aforesaid.store.readable import document
from aforesaid.store.readable.disk import Disk, make_folders
from aforesaid.store.readable.document import Body, Header, Put, Read, Section, body
from aforesaid.store.readable.journal import journals_of
from aforesaid.store.readable.records import TABLES, Content, Name, Record, pack_message, read_id, shown_id

DATABASE: Final = ".db"
LOST: Final = ".lost"
"""The end of the names of files that list what could not be recovered, until somebody removes them."""
HEALTH_CHECK: Final = "health_check"
"""When a file was written, as it says itself."""
_WRITTEN: Final = tuple(
    name for name in TABLES if name not in {"agenda", "derived", "walks", "embedders", "note_vectors"}
)


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


Damaged: TypeAlias = Callable[[DamagedFile], None]


class Layout(Protocol):
    """The files of a store."""

    kind: str
    """How the kind of store is called, as in a location."""
    path: Path
    """What the location names."""

    @property
    def main(self) -> Path:
        """The file or folder that holds the store."""

    @property
    def beside(self) -> Path:
        """The name that the names of the lock and of journals begin with."""

    @property
    def database(self) -> Path:
        """The database that does the work."""

    def prepare(self, disk: Disk) -> None:
        """Make the folders that are needed."""

    def documents(self, content: Content) -> Iterator[Document]:
        """Return what is to be in the files, the one that makes the others valid last."""

    def tidy(self, disk: Disk, content: Content) -> None:
        """Remove the files of accounts that are gone for good."""

    def read(self, put: Put, damaged: Damaged) -> Header | None:
        """Read the files. Returns None where there are none; raises StoreDamaged if they cannot be used without repair.

        Damage to a file of an account is reported instead, and its intact records are read.
        """

    def salvage(self, put: Put) -> list[str]:
        """Read whatever is whole in damaged files; return what is lost, one line each."""

    def check(self, path: Path) -> Read:
        """Read one of the files. Raises StoreDamaged if it is damaged."""

    def shows_only(self, path: Path) -> bool:
        """Tell whether a file only shows what is in another."""

    def files(self) -> list[Path]:
        """Return all readable files of the store, and the lists of what was lost."""

    def copies(self) -> list[Path]:
        """Return what was damaged and set aside."""

    def aside(self, path: Path, label: str) -> Path:
        """Return the name under which a file of the store or `main` is set aside."""

    def elsewhere(self, path: Path) -> Layout:
        """Return the same layout at another place."""


class JsonFile:
    """Everything in one file: users, messages and summaries as documented, and after them all else."""

    kind = "json"

    def __init__(self, path: Path) -> None:
        """`path` may be a link: what it leads to is what is replaced."""
        self.path = path
        self.main = self.beside = path.expanduser().absolute().resolve()

    @property
    def database(self) -> Path:
        """A hidden file beside what a link leads to."""
        return self.main.with_name(f".{self.main.name}{DATABASE}")

    def prepare(self, disk: Disk) -> None:
        """Make the folder."""
        if self.main.is_dir():
            raise StoreRefused(f"{self.path} is a folder; name a file, or use files:{self.path}")
        make_folders(disk, self.main.parent)

    def documents(self, content: Content) -> Iterator[Document]:
        """Return the file."""
        yield Document(self.main, body(self._sections(content)), {})

    def _sections(self, content: Content) -> Iterator[Section]:
        yield "users", "named", ((user_key(name), self._user(content, name)) for name in content.users)
        for name in ("messages", "summaries"):
            grouped: dict[str, list[Record]] = {}
            for owner, record in content.tables[name]:
                grouped.setdefault(user_key(owner or ("", "")), []).append(record)
            yield name, "grouped", ((key, record) for key, found in grouped.items() for record in found)
        for name in _WRITTEN:
            if name not in {"users", "messages", "summaries"}:
                yield name, "listed", (("", record) for _, record in content.tables[name])

    def _user(self, content: Content, name: Name) -> Record:
        """Write a user as documented. What is set is kept in `settings` too, which is what counts."""
        records = content.records[name]
        (record,) = records["users"]
        settings = {each["key"]: each for each in records.get("settings", ())}
        every, enabled = settings.get(EVERY), settings.get(ENABLED)
        times = [each["updated_at"] for each in (every, enabled) if each is not None]
        return record | {
            "storage_type": "json",
            "summary_every_n": 10 if every is None else every["value"],
            "memory_enabled": True if enabled is None else enabled["value"],
            "updated_at": max([record["created_at"], *times], key=datetime.fromisoformat),
        }

    def tidy(self, disk: Disk, content: Content) -> None:
        """Do nothing: there is one file."""

    def read(self, put: Put, damaged: Damaged) -> Header | None:  # noqa: ARG002 - the contract's
        """Read the file."""
        return document.read(self.main, self.kind, put).header if self.main.exists() else None

    def salvage(self, put: Put) -> list[str]:
        """Read whatever is whole."""
        return [*document.salvage(self.main, put).lost()] if self.main.exists() else []

    def check(self, path: Path) -> Read:
        """Read the file."""
        return document.read(path, self.kind, _nowhere)

    def shows_only(self, path: Path) -> bool:  # noqa: ARG002 - the contract's
        """Return False."""
        return False

    def files(self) -> list[Path]:
        """Return the file, and the list of what was lost."""
        return [path for path in (self.main, self.main.with_name(self.main.name + LOST)) if path.exists()]

    def copies(self) -> list[Path]:
        """Return what was damaged and set aside."""
        return _copies(self.main.parent, self.main.name, self.database.name)

    def aside(self, path: Path, label: str) -> Path:
        """Return `memory.json.LABEL`, and what belongs to a store of that name."""
        if path.name.startswith(self.database.name):
            return path.with_name(f".{self.main.name}.{label}{path.name.removeprefix(f'.{self.main.name}')}")
        return path.with_name(f"{self.main.name}.{label}{path.name.removeprefix(self.main.name)}")

    def elsewhere(self, path: Path) -> Self:
        """Return the same layout at another place."""
        return type(self)(path)


def user_key(name: Name) -> str:
    """Return the key of a user in the file: the id alone, or `id@space`."""
    space, user = name
    if space == DEFAULT_SPACE and "@" not in user:
        return user
    return f"{quote(user, safe=' ')}@{quote(space, safe=' ')}"


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
_BY_NAME: Final = {file.name: file for file in FILES}


def folder_name(name: Name) -> str:
    """Return the name of an account's folder: its id where that is a safe name, something like it otherwise."""
    space, user = name
    if space == DEFAULT_SPACE and _PLAIN_NAME.fullmatch(user):
        return f"account_{user}"
    readable = re.sub(r"[^\w-]", "_", user if space == DEFAULT_SPACE else f"{user}@{space}")[:_LONGEST_NAME]
    # Two ids may look alike to a file system that does not tell capitals apart.
    digest = blake2b(f"{space}\0{user}".encode(), digest_size=6).hexdigest()
    return f"account_{readable}~{digest}"


class AccountFolders:
    """A folder with a folder for each account, and one file about all of them, which is written last."""

    kind = "files"

    def __init__(self, path: Path) -> None:
        """`path` may be a link."""
        self.path = path
        self.main = path.expanduser().absolute().resolve()

    @property
    def beside(self) -> Path:
        """What the names of index, lock and journals begin with: they are in the folder, and are copied with it.

        A folder keeps the name that it was made with; earlier versions used another one.
        """
        stems = {path.stem for pattern in _OWN_FILES for path in self.main.glob(pattern)}
        return self.main / (stems.pop() if len(stems) == 1 else _STEM)

    @property
    def database(self) -> Path:
        """A hidden file in the folder."""
        return self.main / f".{_STEM}{DATABASE}"

    @property
    def _index(self) -> Path:
        return self.beside.with_name(f"{self.beside.name}.json")

    def prepare(self, disk: Disk) -> None:
        """Make the folder."""
        if self.main.exists() and not self.main.is_dir():
            raise StoreRefused(f"{self.path} is a file; name a folder, or use json:{self.path}")
        make_folders(disk, self.main)

    def folder_of(self, name: Name) -> Path:
        """Return the folder of an account."""
        return self.main / folder_name(name)

    def documents(self, content: Content) -> Iterator[Document]:
        """Return the files of all accounts, and the file about all of them last."""
        for name in content.users:
            account = _Account(content, name)
            for file in FILES:
                made = body(account.sections(file))
                yield Document(self.folder_of(name) / file.name, made, account.about(file))
        nobodys = content.records.get(None, {})
        sections: list[Section] = [("users", "listed", [("", record) for _, record in content.tables["users"]])]
        sections += [
            (table, "listed", [("", record) for record in found])
            for table, found in nobodys.items()
            if table != "users"
        ]
        yield Document(self._index, body(sections), {})

    def tidy(self, disk: Disk, content: Content) -> None:
        """Remove the files of accounts that are gone for good."""
        known = {folder_name(name) for name in content.users}
        for account in self._accounts():
            if account.name in known:
                continue
            for path in [*(account / file.name for file in FILES), *account.glob("*.json.damaged-*")]:
                disk.unlink(path)
            if not any(account.iterdir()):
                account.rmdir()
            disk.sync_folder(self.main)

    def read(self, put: Put, damaged: Damaged) -> Header | None:
        """Read all files. A window that is damaged is no loss: it only shows what is in the whole history."""
        index, accounts = self._index, self._accounts()
        if not index.exists():
            begun = any(journals_of(self.beside).values()) and min(journals_of(self.beside)) == 1
            if any((account / "account.json").exists() for account in accounts) and not begun:
                raise StoreDamaged(f"{index} is gone, but accounts are there; run: aforesaid verify --repair")
            return None
        listed: set[str] = set()

        def put_and_list(name: str, record: Record) -> None:
            put(name, record)
            if name == "users":
                listed.add(folder_name((record["space"], read_id(record["user_id"]))))

        header = document.read(index, self.kind, put_and_list).header
        # The index is written last: all files of the accounts that it lists were there.
        for account in sorted({*accounts, *(self.main / name for name in listed)}):
            for file in FILES:
                path = account / file.name
                if path.exists() or (file.log and account.name in listed):
                    self._read_file(path, file, header, _nowhere if file.window else put, damaged)
        return header

    def _read_file(self, path: Path, file: File, index: Header, put: Put, damaged: Damaged) -> None:
        try:
            document.read(path, self.kind, put)
        except (StoreDamaged, StoreRefused, FileNotFoundError) as error:  # refused: its first line is damaged
            lost: tuple[str, ...] = ()
            if file.log:
                lost = _salvage_messages(path, index, put)
            elif not file.derived and not file.window:
                lost = document.salvage(path, put).lost()
            damaged(DamagedFile(path, () if file.window else file.tables, str(error), lost))

    def salvage(self, put: Put) -> list[str]:
        """Read whatever is whole. The windows are read too: they may hold what the whole history has lost."""
        lost: list[str] = []
        # What is read later takes the place of what was read before, and the index and the history are what counts.
        windows_first = sorted(FILES, key=lambda file: not file.window)
        order = [account / file.name for account in self._accounts() for file in windows_first]
        for path in [*order, self._index]:
            if path.exists():
                found = document.salvage(path, put)
                lost += [f"{path.parent.name}/{line}" for line in found.lost() if not self.shows_only(path)]
        return lost

    def check(self, path: Path) -> Read:
        """Read a file."""
        try:
            return document.read(path, self.kind, _nowhere)
        except StoreRefused as error:
            raise StoreDamaged(str(error)) from error

    def shows_only(self, path: Path) -> bool:
        """Tell whether a file is a window."""
        return path.name in _BY_NAME and _BY_NAME[path.name].window

    def files(self) -> list[Path]:
        """Return the files of all accounts, what they lost, and the index."""
        accounts = [account / file.name for account in self._accounts() for file in FILES]
        lost = [*self.main.glob(f"{_ACCOUNTS}/*{LOST}"), *self.main.glob(f"*{LOST}")]
        return [path for path in (*accounts, *sorted(lost), self._index) if path.exists()]

    def copies(self) -> list[Path]:
        """Return what was damaged and set aside."""
        return [*_copies(self.main, self.database.name), *self.main.glob(f"{_ACCOUNTS}/*.json.damaged-*Z")]

    def aside(self, path: Path, label: str) -> Path:
        """Return the same place below the folder `LABEL`."""
        return self.main / label / path.relative_to(self.main)

    def elsewhere(self, path: Path) -> Self:
        """Return the same layout at another place."""
        return type(self)(path)

    def _accounts(self) -> list[Path]:
        return sorted(path for path in self.main.glob(_ACCOUNTS) if path.is_dir())


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
    settled = found.header is not None and found.header.counter <= index.counter
    return found.lost(recovered if settled else 0)


def _nowhere(name: str, record: Record) -> None:
    """Leave a record out."""
    del name, record


def _copies(folder: Path, *names: str) -> list[Path]:
    return [path for name in names for path in folder.iterdir() if path.name.startswith(f"{name}.damaged-")]
