"""Where readable files are, and what is in each: one `memory.json`, or a folder for each account."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from glob import escape
from hashlib import blake2b
from pathlib import Path
from typing import Final
from urllib.parse import quote

from aforesaid.domain.checks import moment, now
from aforesaid.domain.message import Message, in_time_order
from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.domain.setting import ENABLED, EVERY
from aforesaid.errors import StoreRefused
from aforesaid.extras import re
from aforesaid.store.readable.disk import Disk, make_folders
from aforesaid.store.readable.document import Document, Section, document
from aforesaid.store.readable.records import TABLES, Content, Name, Record, pack_message, shown_id

DATABASE: Final = ".db"
LOST: Final = ".lost"
"""The end of the names of files that list what could not be recovered, until somebody removes them."""
HEALTH_CHECK: Final = "health_check"
"""When a file was written, as it says itself."""
_ASIDE: Final = re.compile(r".*\.(damaged|edited)-\d{8}T\d+Z(\.db)?(-wal|-shm)?")
"""The names of what is set aside."""


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

    def aside(self, path: Path, label: str) -> Path:
        """Return the name under which a file of the store or `main` is set aside by a restore."""
        raise NotImplementedError

    def accounts(self) -> list[Path]:
        return []

    def folders_of(self, names: Iterable[Name]) -> set[Path]:  # noqa: ARG002 - only one layout has any
        """Return the folders that accounts have, or will have."""
        return set()

    @property
    def lock(self) -> Path:
        return self.beside.with_name(f"{self.beside.name}.lock")

    def shown(self, path: Path) -> str:
        """Return what a file is called in a list of losses."""
        return path.name if self.main == self.index else f"{path.parent.name}/{path.name}"

    def files(self) -> list[Path]:
        """Return the readable files that are there."""
        return [path for path in self._named("") if path.exists()]

    def lists(self) -> list[Path]:
        """Return the lists of what could not be recovered."""
        return [path for path in self._named(LOST) if path.exists()]

    def _named(self, end: str) -> Iterator[Path]:
        yield from (account / f"{file.name}{end}" for account in self.accounts() for file in FILES)
        yield self.index.with_name(f"{self.index.name}{end}")

    def copies(self) -> list[Path]:
        """Return what was set aside: damaged and edited files, and the copies that repairs keep."""
        found = {path for account in self.accounts() for path in account.iterdir()}
        for own in (self.main, self.main.with_name(f".{self.main.name}"), self.index, self.database):
            found.update(own.parent.glob(f"{escape(own.name)}.*"))
        return sorted(path for path in found if _ASIDE.fullmatch(path.name))

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
        users = {user_key(name): _documented_user(content, name) for name in content.users}
        sections: dict[str, Section] = {"users": users}
        for table in ("messages", "summaries"):
            found = ((owner or ("", ""), records.get(table, [])) for owner, records in content.records.items())
            sections[table] = {user_key(owner): records for owner, records in found if records}
        for table, about in TABLES.items():
            if not about.legacy and table not in sections:
                sections[table] = list(content.every(table))
        yield document(self.main, sections, {})

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
_LISTED: Final = ("instruction", "preference")
"""Kinds of memories that are no items of an analysis: they are its style and its preferences."""
_MOST_LISTED: Final = 10
_MOST_ITEMS: Final = 20
_DAY: Final = len("2026-03-01")
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

    def folders_of(self, names: Iterable[Name]) -> set[Path]:
        return {self.main / folder_name(name) for name in names}

    def accounts(self) -> list[Path]:
        return sorted(path for path in self.main.glob(_ACCOUNTS) if path.is_dir())

    def documents(self, content: Content) -> Iterator[Document]:
        for name in content.users:
            account = _Account(content, name)
            for file in FILES:
                yield document(self.main / folder_name(name) / file.name, account.sections(file), account.about(file))
        yield document(self.index, {"users": list(content.every("users")), **content.records[None]}, {})

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

    def sections(self, file: File) -> dict[str, list[Record]]:
        if file.window:
            return {"messages": [pack_message(each) for each in self._covered(file.name.removesuffix(".json"))]}
        return {name: self._records.get(name, []) for name in file.tables}

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
        made = {"baseline": False, "text": newest.text, "generated_at": newest.created_at.isoformat()}
        return made | (dict(newest.details) if newest.details else self._known())

    def _known(self) -> Record:
        """Return what is remembered in the form of an analysis, beside a text that no model wrote."""
        found = [each for each in self._records.get("memories", ()) if each["state"] == "active"]
        found.sort(key=lambda each: (-each["importance"], -each["id"]))
        wishes, likes = ([each["text"] for each in found if each["kind"] == kind] for kind in _LISTED)
        items = [
            {
                "text": each["text"],
                "priority": max(1, round(each["importance"] / 2)),
                "relevance": each["importance"] / 10,
                "tags": each.get("tags", []),
                "expires": ((each.get("event") or {}).get("end") or each.get("expires_at") or "")[:_DAY] or None,
            }
            for each in found
            if each["kind"] not in _LISTED
        ]
        return {"preferences": likes[:_MOST_LISTED], "style": " ".join(wishes), "items": items[:_MOST_ITEMS]}
