"""A cache that is bounded by the bytes its entries take, and drops the least recently used ones first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, Protocol, TypeVar

CACHE_BYTES: Final = 256 * 1024 * 1024
"""Maximum bytes that one store keeps in memory of what was searched lately (256 MiB)."""


class Sized(Protocol):
    """An entry. It may grow and shrink while it is in the cache."""

    @property
    def size(self) -> int:
        """Bytes."""


Key = TypeVar("Key", bound=Hashable)
Entry = TypeVar("Entry", bound=Sized)


class SizedCache(Generic[Key, Entry]):
    """Entries by key, with a running total of their sizes: a call costs the same however many entries there are."""

    def __init__(self, most_bytes: int = CACHE_BYTES) -> None:
        self._most = most_bytes
        self._lock = threading.Lock()
        self._entries: OrderedDict[Key, Entry] = OrderedDict()
        self._sizes: dict[Key, int] = {}
        self.size = 0
        """Bytes of all entries, as of their last `resized`."""

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def get(self, key: Key, make: Callable[[], Entry]) -> Entry:
        """Return the entry of a key as the most recently used one, made if it is not there."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = make()
            self._entries.move_to_end(key)
            return entry

    def resized(self, key: Key) -> None:
        """Count an entry anew after it changed, and drop old entries while all of them take too much."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return
            self._count(key, entry.size)
            while self.size > self._most and len(self._entries) > 1:
                oldest, _ = self._entries.popitem(last=False)
                self._count(oldest, 0)

    def drop(self, key: Key) -> None:
        """Drop one entry, if it is there."""
        with self._lock:
            if self._entries.pop(key, None) is not None:
                self._count(key, 0)

    def clear(self) -> None:
        """Drop all entries."""
        with self._lock:
            self._entries.clear()
            self._sizes.clear()
            self.size = 0

    def _count(self, key: Key, size: int) -> None:
        self.size += size - self._sizes.pop(key, 0)
        if size:
            self._sizes[key] = size
