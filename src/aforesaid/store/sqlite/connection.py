"""Connections to an SQLite file: opened, encrypted, shared between processes."""

from __future__ import annotations

import json
import logging
import os
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar, cast

import apsw

from aforesaid.errors import (
    AforesaidError,
    InvalidInput,
    StoreBusy,
    StoreDamaged,
    StoreFailed,
    StoreFull,
    StoreRefused,
    StoreTooNew,
    StoreUnavailable,
)
from aforesaid.settings import Secret, open_to_others, read_password
from aforesaid.store.checksums import row_checksum
from aforesaid.store.contract import FILE_RULES, Rule, of, rule_for
from aforesaid.store.sql import Answer, Migration, Row, for_sqlite, steps_of
from aforesaid.store.unfinished import sync_folder
from aforesaid.text.languages import terms

KEY: Final = "AFORESAID_KEY"
KEY_FILE: Final = "AFORESAID_KEY_FILE"

_PLAIN: Final = b"SQLite format 3\0"

_log: Final = logging.getLogger("aforesaid.store")


def configured_key() -> Secret | None:
    """Return the key that the environment holds, or that the file holds which it names; None when there is none."""
    given, named = os.environ.get(KEY), os.environ.get(KEY_FILE)
    if given and named:
        raise InvalidInput(f"{KEY} and {KEY_FILE} are both set; which of the two is meant?")
    if given:
        return Secret(given)
    if not named:
        return None
    path = Path(named).expanduser()
    key, why = read_password(path)
    if key is None:
        raise InvalidInput(f"the key file {path} ({KEY_FILE}) cannot be used: {why}")
    if open_to_others(path):
        _log.warning("the key file %s can be read by other users of this machine; run: chmod 600 %s", path, path)
    return key


_FOR_WRITING: Final = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE


def opened(path: Path, *, flags: int = _FOR_WRITING, vfs: str | None = None) -> apsw.Connection:
    """Open a file with the configured key, if there is one. Nothing is read yet."""
    key = configured_key() if vfs != MEMORY else None
    if key is not None and not hasattr(apsw, "mc_version"):
        raise StoreRefused(
            f"a key is configured ({KEY} or {KEY_FILE}), but the SQLite library that is installed cannot encrypt, and "
            f"{path} was not touched. Install the one that can, in the place of apsw: "
            "pip uninstall apsw, then pip install 'apsw-sqlite3mc'"
        )
    if flags & apsw.SQLITE_OPEN_CREATE and vfs is None:
        # An empty file that its owner alone can read: what SQLite puts beside it has the same permissions. Where no
        # file can be made, SQLite is about to say so, and why; one that is there keeps its permissions.
        with suppress(OSError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    connection = apsw.Connection(str(path), flags=flags, vfs=vfs)
    if key is not None:
        try:
            connection.pragma("key", str(key))
        except BaseException:
            connection.close()
            raise
    return connection


def is_plain(path: Path) -> bool:
    """Tell whether a file begins like a database that is not encrypted, or is not there."""
    try:
        with path.open("rb") as file:
            return file.read(len(_PLAIN)) == _PLAIN
    except FileNotFoundError:
        return True


def unreadable(path: Path) -> str:
    """Say why a file cannot be read as a database. Encrypted data and damaged data look the same without the key."""
    if configured_key() is None:
        return f"{path} is not a SQLite database, or it is encrypted; if it is, say with which key: {KEY} or {KEY_FILE}"
    if is_plain(path):
        return f"{path} is not encrypted, but a key is configured ({KEY} or {KEY_FILE}); nothing was changed"
    return (
        f"{path} cannot be read with the key that is configured ({KEY} or {KEY_FILE}): it has another one, or its "
        "first page is damaged; nothing was changed"
    )


APPLICATION_ID: Final = 0x52436C74
"""Marks a file as ours in SQLite's header (the letters RClt, kept from the first version)."""


def migrations() -> tuple[Migration, ...]:
    return steps_of("aforesaid.store.sqlite")


@cache
def whole_schema() -> Migration:
    """Return the sum of the steps up to a number, as one script that creates it eight times as fast as they do.

    `tools/sqlite_schema.py` writes it. It may be older than the newest step: later steps are applied after it.
    """
    sql = (files("aforesaid.store.sqlite") / "schema.sql").read_text(encoding="utf-8")
    number = re.match(r"-- schema (\d+)", sql)
    assert number is not None  # noqa: S101 - a file of this package
    return Migration(int(number[1]), "schema", sql)


@contextmanager
def writing(connection: apsw.Connection) -> Iterator[None]:
    """Hold the write lock; commit what was done, or take it back when the block raises."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def migrate(connection: apsw.Connection, path: Path) -> None:
    """Apply the steps that the file lacks, all in one transaction. Several processes may try at once."""
    newest = migrations()[-1].number
    if schema_version(connection, path) == newest:
        return
    with writing(connection):
        current = schema_version(connection, path)
        whole = whole_schema()
        if current == 0 and whole.number <= newest:
            connection.execute(whole.sql)
            current = whole.number
        for step in migrations():
            if step.number > current:
                connection.execute(step.sql)
        connection.pragma("user_version", newest)
        connection.pragma("application_id", APPLICATION_ID)


def schema_version(connection: apsw.Connection, path: Path) -> int:
    """Return the schema of a file of ours, 0 for an empty one. Raises for all others, and for newer ones."""
    alone = not connection.in_transaction
    if alone:
        connection.execute("BEGIN")  # all of one moment: another process may be creating the file
    try:
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
        version, mark = int(connection.pragma("user_version")), int(connection.pragma("application_id"))
    finally:
        if alone and connection.in_transaction:
            connection.execute("ROLLBACK")
    newest = migrations()[-1].number
    if mark == APPLICATION_ID:
        if version > newest:
            raise StoreTooNew(
                f"{path} was written by a newer Aforesaid (schema {version}; this version knows {newest}): "
                "install that version or a later one"
            )
        return version
    if mark == version == tables == 0:
        return 0
    raise StoreRefused(f"{path} is a SQLite database, but not one of Aforesaid's; choose another file")


OLDEST_SQLITE: Final = (3, 51, 3)
"""Older versions can corrupt a database in WAL mode when a checkpoint and a restart of the log meet."""

NETWORK_FILE_SYSTEMS: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb", "smb3", "smbfs", "9p", "afs", "ncpfs", "davfs", "ceph", "glusterfs", "lustre"}
    | {"gpfs", "virtiofs", "vboxsf"}
    | {"fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.rclone", "fuse.davfs2", "fuse.ceph"}
)
"""File systems whose clients do not share memory, which WAL mode needs."""

_KIBIBYTE: Final = 1024
MEMORY: Final = "memdb"
"""SQLite's VFS of databases in memory. Those of one name, which begins with a slash, are the same database."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a file is opened. Tests use another VFS to make the disk fail."""

    vfs: str | None = None
    busy_seconds: float = 60.0
    """How long to wait for another process before StoreBusy."""
    readers: int = 4
    cache_kib: int = 16 * _KIBIBYTE
    """Page cache of each connection."""

    @property
    def in_memory(self) -> bool:
        """Whether nothing is on a disk. Then one connection does everything: SQLite has no snapshots there."""
        return self.vfs == MEMORY


def refuse_unsafe_places(path: Path) -> None:
    version = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    if version < OLDEST_SQLITE:
        wanted = ".".join(map(str, OLDEST_SQLITE))
        raise StoreRefused(
            f"SQLite {apsw.sqlite_lib_version()} has a bug that can corrupt the log; {wanted} or newer is needed: "
            "pip install --upgrade apsw"
        )
    kind = kind_of_file_system(path)
    if kind in NETWORK_FILE_SYSTEMS:
        raise StoreRefused(
            f"{path} is on a network file system ({kind}), where several machines could damage it; "
            "put it on a local disk, or use PostgreSQL to share a memory between machines"
        )


def kind_of_file_system(path: Path) -> str:
    """Return the kind of file system that `path` is on; `unknown` where the system does not tell."""
    mounts = Path("/proc/self/mountinfo")
    if not mounts.exists():
        return "unknown"
    return file_system_of(path, mounts.read_text(encoding="utf-8", errors="replace"))


def file_system_of(path: Path, mountinfo: str) -> str:
    """Return the kind of file system that `path` is on, read from the text of /proc/self/mountinfo."""
    best, kind = -1, "unknown"
    for line in mountinfo.splitlines():
        before, separator, after = line.partition(" - ")
        fields = before.split()
        if not separator or len(fields) <= 4:  # noqa: PLR2004 - the mount point is the fifth field
            continue
        mount = Path(fields[4].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\"))
        # A later line hides an earlier one at the same place.
        if path.is_relative_to(mount) and len(mount.parts) >= best:
            best, kind = len(mount.parts), after.split(" ", 1)[0]
    return kind


Identity: TypeAlias = tuple[int, int] | None


def identity(path: Path) -> Identity:
    """Return the identity of the file at a path (device and number); None if there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def make_folder(folder: Path) -> None:
    """Create a folder and its parents such that they survive a power cut."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    for place in reversed(missing):
        place.mkdir(exist_ok=True, mode=0o700)
        sync_folder(place.parent)


def connect(path: Path, options: Options, *, create: bool) -> apsw.Connection:
    """Open one connection for writing, in WAL mode, with every commit synced."""
    flags = _FOR_WRITING if create else apsw.SQLITE_OPEN_READWRITE
    connection = opened(path, flags=flags, vfs=options.vfs)
    try:
        connection.set_busy_handler(patience(options.busy_seconds))
        # Before anything is changed: a file of somebody else stays as it is.
        schema_version(connection, path)
        if not options.in_memory:
            _settle_in_wal(connection, path, options)
        connection.pragma("synchronous", "FULL")
        connection.pragma("foreign_keys", 1)
        connection.pragma("cache_size", -options.cache_kib)
        connection.pragma("temp_store", "MEMORY")
        # Otherwise a statement is compiled again whenever it is run with other values.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        # Without these a Mac's disk may acknowledge what it has not written.
        connection.pragma("fullfsync", 1)
        connection.pragma("checkpoint_fullfsync", 1)
        connection.create_scalar_function("index_terms", cast("Any", index_terms), 4, deterministic=True)
        connection.create_scalar_function("row_checksum", cast("Any", row_checksum), deterministic=True)
    except BaseException:
        # Otherwise SQLite removes the write-ahead log with the last connection, though it could not read the database.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.close()
        raise
    return connection


def connect_reader(path: Path, options: Options) -> apsw.Connection:
    """Open one connection that cannot change anything."""
    connection = connect(path, options, create=False)
    connection.pragma("query_only", 1)
    # Only the writer copies the write-ahead log back: it knows whether that is still the right one.
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    return connection


def index_terms(owner: int, thread: int, shared: int, text: str) -> str:
    """Return what the keyword index holds for a message. Raises CorruptError for values that no message has."""
    if not all(map(isinstance, (text, owner, thread), (str, int, int))):
        raise apsw.CorruptError("a row of the log or of the notes holds values of the wrong types")
    return prefixed_terms(owner, thread if shared else None, " ".join(terms(text)))


def prefixed_terms(owner: int, shared_thread: int | None, words: str) -> str:
    """Write each term once for its owner and, in a thread that others read, once for the thread."""
    if not words:
        return ""
    mine = owner_prefix(owner)
    content = mine + words.replace(" ", f" {mine}")
    if shared_thread is not None:
        ours = thread_prefix(shared_thread)
        content += f" {ours}" + words.replace(" ", f" {ours}")
    return content


def owner_prefix(owner: int) -> str:
    return f"u{owner}."


def thread_prefix(thread: int) -> str:
    return f"t{thread}."


@contextmanager
def translated(path: Path, doing: str) -> Iterator[None]:
    """Turn SQLite's errors into ours, saying what was being done to which file."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise StoreDamaged(
            f"{path} holds text that is not valid Unicode; run: aforesaid verify --store {path}"
        ) from error
    except (apsw.Error, OSError) as error:
        raise _translation(error, path, doing) from error
    except RuntimeError as error:
        # What pathlib says of homes that do not exist and of links that lead to themselves.
        raise StoreRefused(f"{path} cannot be found: {error}") from error


def _shared_memory_is_full(error: BaseException) -> bool:
    """Tell whether the file of shared memory could not grow, which SQLite reports as an I/O error."""
    return isinstance(error, apsw.IOError) and getattr(error, "extendedresult", None) == apsw.SQLITE_IOERR_SHMSIZE


def index_is_damaged(error: BaseException) -> bool:
    """Tell whether an error says that the keyword index alone is damaged, which is made again from the messages."""
    cause = error.__cause__
    return isinstance(cause, apsw.CorruptError) and getattr(cause, "extendedresult", 0) == apsw.SQLITE_CORRUPT_VTAB


RULES: Final = (
    Rule("SQLITE_FULL", of(apsw.FullError), StoreFull, "free some space and try again"),
    Rule("SQLITE_IOERR_SHMSIZE", _shared_memory_is_full, StoreFull, "free some space and try again"),
    Rule("SQLITE_IOERR", of(apsw.IOError), StoreFailed, "the disk failed"),
    Rule(
        "SQLITE_BUSY, SQLITE_LOCKED",
        of(apsw.BusyError, apsw.LockedError),
        StoreBusy,
        "another process uses it; try again",
    ),
    Rule("SQLITE_NOMEM, SQLITE_INTERRUPT", of(apsw.NoMemError, apsw.InterruptError), StoreBusy, "try again"),
    Rule("SQLITE_NOTADB", of(apsw.NotADBError), StoreRefused, ""),
    Rule("SQLITE_CORRUPT", of(apsw.CorruptError), StoreDamaged, "restore a backup, or run: aforesaid verify --repair"),
    Rule(
        "SQLITE_CANTOPEN, SQLITE_READONLY, SQLITE_PERM, SQLITE_AUTH",
        of(apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError, apsw.AuthError),
        StoreUnavailable,
        "check the folder and its rights",
    ),
    Rule("every other error of SQLite, such as SQLITE_ERROR (a missing table)", of(apsw.Error), StoreRefused, ""),
)
"""What errors of SQLite mean."""


def _translation(error: apsw.Error | OSError, path: Path, doing: str) -> AforesaidError:
    if isinstance(error, apsw.NotADBError):
        return StoreRefused(unreadable(path))
    if isinstance(error, apsw.CantOpenError) and path.is_dir():
        return StoreRefused(f"{path} is a folder; name a file, or use files:{path}")
    rule = rule_for(error, FILE_RULES if isinstance(error, OSError) else RULES)
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error) or type(error).__name__
    return rule.becomes(f"{doing} {path} failed: {said}{rule.advice and f'; {rule.advice}'}")


def _settle_in_wal(connection: apsw.Connection, path: Path, options: Options) -> None:
    # Changing the journal mode does not always ask the busy handler, so two processes that create
    # the same file at the same moment have to take turns here.
    deadline = time.monotonic() + options.busy_seconds
    while True:
        try:
            mode = connection.pragma("journal_mode", "wal")
            break
        except (apsw.BusyError, apsw.LockedError):
            if time.monotonic() > deadline:
                raise
            time.sleep(random.uniform(0.001, 0.02))  # noqa: S311 - spreads processes, guards nothing
    if mode != "wal":
        raise StoreRefused(f"{path} is on a file system that does not support SQLite's WAL mode; use a local disk")


def patience(seconds: float) -> Callable[[int], bool]:
    """Make a busy handler that waits for other processes, in short uneven naps, up to a limit."""
    deadline = 0.0

    def nap(attempt: int) -> bool:
        nonlocal deadline
        now = time.monotonic()
        if attempt == 0:
            deadline = now + seconds
        if now > deadline:
            return False
        time.sleep(random.uniform(0.0002, 0.002 * min(attempt + 1, 10)))  # noqa: S311 - spreads processes, guards nothing
        return True

    return nap


T = TypeVar("T")


def every(cursor: apsw.Cursor) -> list[Row]:
    """Return all rows. What their columns hold is said by the query, not by a type."""
    return cursor.fetchall()


def one(cursor: apsw.Cursor) -> Row:
    """Return the row that the query is certain to have."""
    row: Row | None = cursor.fetchone()
    if row is None:
        raise StoreDamaged("a row that must be there is missing; run: aforesaid verify")
    return row


def answered(connection: apsw.Connection, answer: Answer[T]) -> T:
    execute = connection.execute
    try:
        statements = next(answer)
        while True:
            found = [execute(for_sqlite(text), bound(values)).fetchall() for text, values in statements]
            statements = answer.send(found)
    except StopIteration as end:
        result: T = end.value
        return result


_as_json: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def bound(values: Iterable[Any]) -> list[Any]:
    """Return values as SQLite takes them: lists as JSON."""
    return [_as_json(value) if isinstance(value, list) else value for value in values]
