"""Stores of other packages, which a location names by the word before its colon. See docs/how-to/add-a-store.md."""

from __future__ import annotations

import inspect
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from aforesaid.errors import StoreRefused, quoted
from aforesaid.store.contract import Store

GROUP: Final = "aforesaid.stores"
"""The group of entry points in which packages register their stores."""


def outside_stores() -> dict[str, EntryPoint]:
    """Return the registered stores by name."""
    return {each.name: each for each in entry_points(group=GROUP)}


async def open_outside(name: str, rest: str) -> Store:
    """Open a registered store. It is called with what follows the colon of the location, and may be a coroutine.

    Raises StoreRefused if the package does not give a store.
    """
    entry = outside_stores()[name]
    try:
        opening = entry.load()
    except (ImportError, AttributeError) as error:
        raise StoreRefused(f"the store {quoted(name)} of {entry.value} cannot be loaded: {error}") from error
    made = opening(rest)
    store = await made if inspect.isawaitable(made) else made
    if not isinstance(store, Store):
        raise StoreRefused(f"{entry.value} gave {type(store).__name__} for {quoted(name)}, which is not a store")
    return store
