"""An array that grows at its end without being copied each time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SPARE: Final = 1.25
"""A full array is copied into one that has room for so many times as much."""


class Growing:
    """Rows of one type. What `rows` gave out stays as it was: growing writes behind it, or elsewhere."""

    def __init__(self, first: NDArray[Any]) -> None:
        self._held = first
        self._count = len(first)

    def __len__(self) -> int:
        """Return how many rows there are."""
        return self._count

    @property
    def rows(self) -> NDArray[Any]:
        """All rows."""
        return self._held[: self._count]

    @property
    def nbytes(self) -> int:
        """How much memory is held."""
        return self._held.nbytes

    def extend(self, more: NDArray[Any]) -> None:
        """Add rows."""
        import numpy as np  # noqa: PLC0415 - whoever has an array has loaded it

        total = self._count + len(more)
        if total > len(self._held):
            larger = np.empty((max(int(total * _SPARE), 16), *self._held.shape[1:]), dtype=self._held.dtype)
            larger[: self._count] = self._held[: self._count]
            self._held = larger
        self._held[self._count : total] = more
        self._count = total
