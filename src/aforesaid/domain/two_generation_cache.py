"""A bounded cache of recently used values."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class TwoGenerationCache(Generic[Key, Value]):
    """Values by their keys: at least the last `most` that were asked for, at most twice as many.

    Without a lock: each step is one on a dictionary, and what two threads lose to one another is made again.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._new: dict[Key, Value] = {}
        self._old: dict[Key, Value] = {}

    def get(self, key: Key) -> Value | None:
        """Return the cached value, or None."""
        known = self._new.get(key)
        if known is None and (known := self._old.get(key)) is not None:
            self.put(key, known)
        return known

    def put(self, key: Key, value: Value) -> None:
        """Cache a value. When the cache is full, the values that were not used recently are dropped."""
        self._new[key] = value
        if len(self._new) > self._most:
            self._old, self._new = self._new, {}

    def clear(self) -> None:
        """Remove all values."""
        self._old, self._new = {}, {}
