"""Where the log and what is derived from it are kept."""

from aforesaid.store.contract import Progress, Store
from aforesaid.store.locations import (
    Location,
    default_location,
    hides_damage,
    locate,
    open_store,
    restore_store,
    salvage_store,
)

__all__ = [
    "Location",
    "Progress",
    "Store",
    "default_location",
    "hides_damage",
    "locate",
    "open_store",
    "restore_store",
    "salvage_store",
]
