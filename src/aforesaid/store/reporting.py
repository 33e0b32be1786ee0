"""Reporting how far a long list of changes has come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

from aforesaid.store.contract import Progress

T = TypeVar("T")

MANY: Final = 200
"""From this number of changes on they are prepared in another thread, so that the event loop goes on."""
EVERY: Final = 1_000
"""Changes between two reports."""


def reporting(items: Sequence[T], what: str, progress: Progress | None) -> Iterable[T]:
    """Return the items, and report after every thousandth of them, and after the last, how many were dealt with."""
    return items if progress is None else _reporting(items, what, progress)


def _reporting(items: Sequence[T], what: str, progress: Progress) -> Iterator[T]:
    for place, item in enumerate(items, 1):
        yield item
        if place % EVERY == 0 or place == len(items):
            progress(what, place, len(items))
