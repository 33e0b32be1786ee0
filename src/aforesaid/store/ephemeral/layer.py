"""Changes on top of a table: what is below stays as it is until they are taken over."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, MutableMapping
from typing import TypeAlias, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Layer(MutableMapping[K, V]):
    """A table with changes. A key that is put for the first time comes last, as in a dictionary."""

    __slots__ = ("below", "gone", "put")

    def __init__(self, below: Rows[K, V]) -> None:
        """Start without changes."""
        self.below = below
        self.put: dict[K, V] = {}
        self.gone: set[K] = set()

    def __getitem__(self, key: K) -> V:
        if key in self.put:
            return self.put[key]
        if key in self.gone:
            raise KeyError(key)
        return self.below[key]

    def __setitem__(self, key: K, value: V) -> None:
        self.put[key] = value
        self.gone.discard(key)

    def __delitem__(self, key: K) -> None:
        if key not in self:
            raise KeyError(key)
        self.put.pop(key, None)
        if key in self.below:
            self.gone.add(key)

    def __contains__(self, key: object) -> bool:
        return key in self.put or (key not in self.gone and key in self.below)

    def __iter__(self) -> Iterator[K]:
        for key in self.below:
            if key not in self.gone:
                yield key
        yield from self.fresh()

    def __reversed__(self) -> Iterator[K]:
        for key in reversed(self.put):
            if key not in self.below:
                yield key
        for key in reversed(self.below):
            if key not in self.gone:
                yield key

    def __len__(self) -> int:
        return len(self.below) - len(self.gone) + sum(1 for _ in self.fresh())

    def fresh(self) -> Iterator[K]:
        """Return the keys that are not below."""
        return (key for key in self.put if key not in self.below)

    @property
    def changed(self) -> bool:
        """Whether there are changes."""
        return bool(self.put or self.gone)


Rows: TypeAlias = dict[K, V] | Layer[K, V]


def take_over(rows: Rows[K, V], layer: Layer[K, V]) -> None:
    """Make the changes of a layer changes of the table below it."""
    for key in layer.gone:
        del rows[key]
    if isinstance(rows, dict):
        rows.update(layer.put)
        return
    rows.put.update(layer.put)
    rows.gone.difference_update(layer.put)
