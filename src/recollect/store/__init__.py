"""Where the log and what is derived from it are kept."""

from recollect.store.contract import Progress, Store
from recollect.store.locate import Location, default_location, locate, open_store, restore_store, sqlite_path

__all__ = ["Location", "Progress", "Store", "default_location", "locate", "open_store", "restore_store", "sqlite_path"]
