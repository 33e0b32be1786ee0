"""Vectors reduced to the signs of their numbers: one bit for each, which are enough for a shortlist of similar ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aforesaid.store.columns import Growing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bits = NDArray[np.uint64]

SHORTLIST: Final = 1_500
"""Minimum size of a shortlist, of which every vector is compared as a whole."""
_MOST: Final = 4_000
_ONE_IN: Final = 100
"""Share of all vectors that is in the shortlist, up to the maximum."""


class Signs:
    """The signs of many vectors. A vector's place is its row."""

    def __init__(self) -> None:
        self._columns: list[Growing] = []
        """One for every 64 numbers of a vector."""

    def __len__(self) -> int:
        """Return how many vectors there are."""
        return len(self._columns[0]) if self._columns else 0

    @property
    def nbytes(self) -> int:
        """How much memory they take."""
        return sum(column.nbytes for column in self._columns)

    @property
    def rows(self) -> Bits:
        """All of them, a row for each vector, as `extend` takes them."""
        import numpy as np  # noqa: PLC0415

        return np.stack([column.rows for column in self._columns], axis=1)

    def extend(self, rows: Bits) -> None:
        """Add vectors, as `signs_of` or `in_words` returned them."""
        if not self._columns:
            self._columns = [Growing(column[:0].copy()) for column in rows.T]
        for column, more in zip(self._columns, rows.T, strict=True):
            column.extend(more)

    def nearest(
        self, vector: NDArray[np.float32], limit: int, inside: NDArray[np.intp] | None = None
    ) -> NDArray[np.intp]:
        """Return the places whose signs agree most with the vector's, in order, and all that agree as much.

        They are enough for the `limit` most similar ones to be among them, nearly always. `inside` are the places to
        choose from, in order; without it all.
        """
        import numpy as np  # noqa: PLC0415

        if inside is None:
            inside = np.arange(len(self))
        size = max(SHORTLIST, 4 * limit, min(len(inside) // _ONE_IN, _MOST))
        if size >= len(inside):
            return inside
        differing = np.zeros(len(inside), dtype=np.uint16)
        for column, bits in zip(self._columns, signs_of(vector[np.newaxis, :])[0], strict=True):
            rows = column.rows if len(inside) == len(column) else column.rows[inside]
            differing += np.bitwise_count(rows ^ bits)
        # There are few different numbers, so counting them is quicker than sorting.
        most = np.searchsorted(np.cumsum(np.bincount(differing)), size)
        return inside[differing <= most]


def signs_of(values: NDArray[np.floating]) -> Bits:
    """Return which numbers of each vector are positive, as bits."""
    import numpy as np  # noqa: PLC0415

    # Half-precision numbers have the order of the integers with the same bits, which numpy compares 25 times as fast.
    positive = values.view(np.int16) > 0 if values.dtype == np.float16 else values > 0
    return in_words(np.packbits(positive, axis=1))


def in_words(packed: NDArray[np.uint8]) -> Bits:
    """Return rows of packed bits as rows of numbers with 64 bits."""
    import numpy as np  # noqa: PLC0415

    padded: Bits = np.ascontiguousarray(np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8)))).view(np.uint64)
    return padded
