"""Caches in memory, and constructors without checks for values that a store has checked before."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import fields, make_dataclass
from functools import partial
from typing import Any, Final, Generic, TypeVar
from weakref import WeakSet

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


Cache = TypeVar("Cache")

_caches: Final[WeakSet[Any]] = WeakSet()


def holds_texts(cache: Cache) -> Cache:
    """Register a cache for `clear_text_caches`, and return it. Also a decorator, above that of `functools`."""
    _caches.add(cache)
    return cache


def clear_text_caches() -> None:
    """Empty all registered caches. What is asked for again is computed again."""
    for cache in list(_caches):
        if hasattr(cache, "cache_clear"):
            cache.cache_clear()
        else:
            cache.clear()
    # Patterns are made of words, too: of names, and of what is known.
    re.purge()


Row = TypeVar("Row", bound=tuple[Any, ...])


def named_tuples(kind: type[Row], rows: Iterable[tuple[Any, ...]]) -> Iterator[Row]:
    """Return named tuples of rows that have all their fields, in order. The length of a row is not checked."""
    return map(partial(tuple.__new__, kind), rows)


def fast_constructor(kind: type[Value]) -> Callable[..., Value]:
    """Return a faster constructor of a frozen dataclass with slots. It takes all fields, in order."""
    # A class with the same slots that is not frozen: an instance is filled, then its class is switched to `kind`.
    unguarded = make_dataclass(kind.__name__, [field.name for field in fields(kind)], slots=True)  # type: ignore[arg-type]

    def make(*values: Any) -> Value:  # noqa: ANN401 - whatever the fields hold
        made: Any = unguarded(*values)
        made.__class__ = kind
        return made  # type: ignore[no-any-return]

    return make
