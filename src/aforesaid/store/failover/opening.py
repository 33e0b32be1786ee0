"""Opening a store with another behind it."""

from __future__ import annotations

import os
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Final, cast

from aforesaid.errors import InvalidInput, StoreError, StoreUnavailable, quoted
from aforesaid.store.contract import Store
from aforesaid.store.database_identity import file_name
from aforesaid.store.failover.failover import Failover
from aforesaid.store.failover.fallback import FIRST, Fallback
from aforesaid.store.locations import Location, data_folder, locate, open_layout, open_store, postgres_dsn

AUTO: Final = "auto"
NONE: Final = "none"
MEMORY: Final = "memory"


async def open_with_failover(location: str | os.PathLike[str] | None, fallback: str) -> Store:
    """Open a store. What takes over when it fails: `none`, `memory`, `files:PATH`, `json:PATH`, or `auto`.

    `auto` is a folder beside the file of the store (for a database: where memory is kept by default), then memory; a
    store that is in memory itself needs none. With anything but `auto` also a store that cannot be opened is taken over
    from, until it can be.
    """
    dsn = postgres_dsn(location)
    place = _place_of_database(dsn) if dsn is not None else locate(location).path
    if fallback == NONE or place is None:
        return await open_store(location)
    behind = _behind(place, fallback)
    opening = None if behind is None else partial(open_layout, behind, first=FIRST)
    behind_it = Fallback(opening, behind.path if behind is not None and fallback == AUTO else None)
    failure: StoreError | None = None
    store: Store | None = None
    try:
        store = await open_store(location)
    except StoreError as error:
        # With `auto`, a store that cannot be reached is most likely a mistaken location.
        if error.consequence != "fail over" or (fallback == AUTO and isinstance(error, StoreUnavailable)):
            raise
        failure = error
    failover = Failover(store, partial(open_store, location), behind_it)
    if failure is not None or (behind is not None and behind.path is not None and behind.path.expanduser().exists()):
        await failover.start(failure)
    return cast("Store", failover)


def _place_of_database(dsn: str) -> Path:
    """Return a path that stands for a database, whatever the password: what waits must be found after it changed.

    Earlier versions made the name from the whole address. Where messages wait under that name, it stays in use.
    """
    earlier = data_folder() / f"database-{blake2b(dsn.encode(), digest_size=6).hexdigest()}"
    return earlier if _waiting(earlier).exists() else data_folder() / file_name(dsn)


def _waiting(place: Path) -> Path:
    return place.with_name(f"{place.name}.waiting")


def _behind(place: Path, fallback: str) -> Location | None:
    """Return where messages wait on a disk; None for memory alone."""
    if fallback == MEMORY:
        return None
    if fallback == AUTO:
        return Location("files", _waiting(place))
    found = locate(fallback)
    if found.path is None or found.kind not in ("files", "json"):
        raise InvalidInput(
            f"the fallback {quoted(fallback)} cannot take over; use {AUTO}, {MEMORY}, {NONE}, files:PATH or json:PATH"
        )
    if found.path.expanduser().absolute() == place.expanduser().absolute():
        raise InvalidInput(f"the fallback {quoted(fallback)} is the store itself")
    return found
