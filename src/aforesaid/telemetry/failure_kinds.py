"""Classify exceptions, to count failures by kind."""

from __future__ import annotations

from asyncio import CancelledError
from typing import Final

from aforesaid.errors import (
    InvalidInput,
    ModelError,
    ModelGarbled,
    ModelRefused,
    ModelUnavailable,
    NotFound,
    SourcesChanged,
    SpendingLimit,
    StoreError,
)

_KINDS: Final[tuple[tuple[type[BaseException], str], ...]] = (
    (ModelUnavailable, "unavailable"),
    (ModelRefused, "refused"),
    (ModelGarbled, "garbled"),
    (SpendingLimit, "limit"),
    (ModelError, "other"),
    (InvalidInput, "invalid"),
    (NotFound, "invalid"),
    (SourcesChanged, "changed"),
    (StoreError, "store"),
    (CancelledError, "abandoned"),
    (TimeoutError, "timeout"),
)

CALLERS: Final = frozenset({"invalid", "abandoned"})
"""Kinds of failures that the caller caused. They do not count as errors of the memory."""


def kind_of(error: BaseException) -> str:
    """Return the kind of an exception; `other` if no rule applies."""
    return next((kind for cls, kind in _KINDS if isinstance(error, cls)), "other")
