"""Opening files, encrypted where a key is configured.

SQLite itself does not encrypt. `apsw-sqlite3mc` is the same library built with SQLite3 Multiple Ciphers; it has the
same name when imported, and takes the place of `apsw`.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

import apsw

from aforesaid.errors import InvalidInput, StoreRefused
from aforesaid.settings import Secret
from aforesaid.settings.basic_values import open_to_others, read_password

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


def opened(path: Path, *, flags: int | None = None, vfs: str | None = None) -> apsw.Connection:
    """Open a file with the configured key, if there is one. Nothing is read yet."""
    key = configured_key()
    if key is not None and not hasattr(apsw, "mc_version"):
        raise StoreRefused(
            f"a key is configured ({KEY} or {KEY_FILE}), but the SQLite library that is installed cannot encrypt, and "
            f"{path} was not touched. Install the one that can, in the place of apsw: "
            "pip uninstall apsw, then pip install 'apsw-sqlite3mc'"
        )
    if flags is None:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    if flags & apsw.SQLITE_OPEN_CREATE and vfs is None:
        _make_private(path)
    connection = apsw.Connection(str(path), flags=flags, vfs=vfs)
    if key is not None:
        try:
            connection.pragma("key", str(key))
        except BaseException:
            connection.close()
            raise
    return connection


def _make_private(path: Path) -> None:
    """Make an empty file that its owner alone can read. What SQLite puts beside it has the same permissions."""
    # Where no file can be made, SQLite is about to say so, and why; one that is there keeps its permissions.
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


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
