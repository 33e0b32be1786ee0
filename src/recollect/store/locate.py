"""From a location, as people write it, to an open store."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Final

from recollect.domain import checks
from recollect.errors import InvalidInput
from recollect.store.contract import Store

_SCHEME: Final = re.compile(r"([a-z][a-z0-9+]+):", re.IGNORECASE)
_SQLITE: Final = "sqlite:"
MEMORY: Final = ":memory:"


def default_location() -> str | Path:
    """Return where memory is kept when nobody says: RECOLLECT_STORE, or the platform's folder for application data."""
    chosen = os.environ.get("RECOLLECT_STORE")
    if chosen:
        return chosen
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return base / "recollect" / "memory.db"


def sqlite_path(location: str | os.PathLike[str] | None) -> Path | None:
    """Return the file that a location names, or None for a store in memory.

    A path or `sqlite:PATH` is a SQLite file, `:memory:` a store that is forgotten at the end.
    """
    if location is None:
        location = default_location()
    if not isinstance(location, str | Path):
        raise InvalidInput(f"the location must be a path or a string, not {type(location).__name__}")
    checks.storable(str(location), "the location")
    if isinstance(location, Path):
        return location
    if not location:
        raise InvalidInput("the location is empty")
    if location in (MEMORY, f"{_SQLITE}{MEMORY}"):
        return None
    scheme = _SCHEME.match(location)
    if location.startswith(_SQLITE):
        path = location.removeprefix(_SQLITE)
        # sqlite:///abs/path as other tools write it
        return Path(path.removeprefix("//") if path.startswith("///") else path)
    if scheme is not None and not Path(location).exists():
        raise InvalidInput(
            f"unknown kind of location {scheme[0]!r} in {location!r}; use a path, sqlite:PATH or {MEMORY}"
        )
    return Path(location)


async def open_store(location: str | os.PathLike[str] | None) -> Store:
    """Open the store that a location names. Only the code of that kind of store is loaded."""
    path = sqlite_path(location)
    if path is None:
        from recollect.store.ephemeral import EphemeralStore  # noqa: PLC0415 - loaded only when asked for

        return EphemeralStore()
    from recollect.store.sqlite import SqliteStore  # noqa: PLC0415

    return await SqliteStore.open(path)


def restore_store(backup: Path, location: str | os.PathLike[str] | None, *, replace: bool) -> Path | None:
    """Put a backup in the place of a store. What was there is set aside; its new name is returned."""
    path = sqlite_path(location)
    if path is None:
        raise InvalidInput("a backup cannot be restored into memory; name a file")
    from recollect.store.sqlite.backup import restore  # noqa: PLC0415

    return restore(backup, path, replace=replace)
