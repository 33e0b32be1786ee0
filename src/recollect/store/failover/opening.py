"""Opening a store with another behind it."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Final, cast

from recollect.errors import InvalidInput, StoreClosed, StoreDamaged, StoreError, StoreTooNew, StoreUnavailable
from recollect.store.contract import Store
from recollect.store.failover.failover import Failover
from recollect.store.failover.meanwhile import FIRST, Meanwhile
from recollect.store.locate import Location, locate, open_layout, open_store

AUTO: Final = "auto"
NONE: Final = "none"
MEMORY: Final = "memory"


async def open_with_failover(location: str | os.PathLike[str] | None, fallback: str) -> Store:
    """Open a store. What takes over when it fails: `none`, `memory`, `files:PATH`, `json:PATH`, or `auto`.

    `auto` is a folder beside the file of the store, then memory; a store that is in memory itself needs none. With
    anything but `auto` also a store that cannot be opened is taken over from, until it can be.
    """
    where = locate(location)
    if fallback == NONE or where.kind == "memory":
        return await open_store(location)
    behind = _behind(where, fallback)
    opening = None if behind is None else partial(open_layout, behind, first=FIRST)
    meanwhile = Meanwhile(opening, behind.path if behind is not None and fallback == AUTO else None)
    failure: StoreError | None = None
    store: Store | None = None
    try:
        store = await open_store(location)
    except (StoreTooNew, StoreClosed, StoreDamaged):
        raise
    except StoreUnavailable as error:
        if fallback == AUTO:
            raise  # most likely the location is mistaken
        failure = error
    except StoreError as error:
        failure = error
    failover = Failover(store, partial(open_store, location), meanwhile)
    if failure is not None or (behind is not None and behind.path is not None and behind.path.expanduser().exists()):
        await failover.start(failure)
    return cast("Store", failover)


def _behind(where: Location, fallback: str) -> Location | None:
    """Return where messages wait on a disk; None for memory alone."""
    if fallback == MEMORY:
        return None
    if fallback == AUTO:
        if where.path is None:
            return None
        return Location("files", where.path.with_name(f"{where.path.name}.waiting"))
    found = locate(fallback)
    if found.kind not in ("files", "json"):
        raise InvalidInput(
            f"the fallback {fallback!r} cannot take over; use {AUTO}, {MEMORY}, {NONE}, files:PATH or json:PATH"
        )
    if found.path is not None and where.path is not None and _same(found.path, where.path):
        raise InvalidInput(f"the fallback {fallback!r} is the store itself")
    return found


def _same(one: Path, other: Path) -> bool:
    return one.expanduser().absolute() == other.expanduser().absolute()
