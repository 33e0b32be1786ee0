"""Which file has the keys of a store."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from aforesaid.errors import InvalidInput
from aforesaid.server.auth.keys import Keys
from aforesaid.settings import Settings
from aforesaid.settings.layers import usual_place
from aforesaid.store import sqlite_path
from aforesaid.store.database_identity import file_name
from aforesaid.store.locations import address_of, postgres_dsn


def keys_path(settings: Settings, location: str | os.PathLike[str] | None) -> Path | None:
    """Return where the keys for a store are kept: where the settings say, or beside it. None for a store in memory.

    A database or a store of another package has a file of its own in the folder of the user's configuration.
    """
    if settings.server.keys is not None:
        return Path(settings.server.keys).expanduser()
    where = settings.store if location is None else os.fspath(location)
    if (address := address_of(where)) is not None:
        return _folder() / f"{file_name(address)}.keys.json"
    path = sqlite_path(where)
    return None if path is None else path.expanduser().with_name(f"{path.name}.keys.json")


def check_shared_keys(settings: Settings, location: str | os.PathLike[str] | None) -> None:
    """Raise InvalidInput if a database has no key file yet, and older versions left one for all databases.

    To read that file would let its keys into every database. To ignore it would lock out all clients without a word.
    """
    path, shared = keys_path(settings, location), shared_keys(settings, location)
    if path is None or shared is None or path.exists() or not Keys(shared).all():
        return
    away = shared.with_name("keys.json.old")
    raise InvalidInput(
        f"the keys in {shared} opened every PostgreSQL database; now each database has a key file of its own. If these "
        f"keys are for this database, run: {copy_command(shared, path)}. When each database has the keys that are "
        f"meant for it, run: {_command('move' if sys.platform == 'win32' else 'mv', shared, away)}"
    )


def shared_keys(settings: Settings, location: str | os.PathLike[str] | None) -> Path | None:
    """Return the file that older versions had for all databases; None for stores that it was not for."""
    where = settings.store if location is None else os.fspath(location)
    if settings.server.keys is not None or postgres_dsn(where) is None:
        return None
    return _folder() / "keys.json"


def copy_command(source: Path, target: Path) -> str:
    """Return the command that copies a file, for a person to run."""
    return _command("copy" if sys.platform == "win32" else "cp", source, target)


def _folder() -> Path:
    return usual_place(os.environ).parent


def _command(name: str, source: Path, target: Path) -> str:
    return f"{name} {shlex.quote(str(source))} {shlex.quote(str(target))}"
