"""Caches of the whole process that hold texts of people. They are emptied when somebody is erased."""

from __future__ import annotations

from typing import Any, Final, TypeVar
from weakref import WeakSet

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
