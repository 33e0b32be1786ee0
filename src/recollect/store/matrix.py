"""Many vectors in memory, compared with one: all of them where there are few, a shortlist where there are many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from recollect.domain.vector import Similar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

EXACT: Final = 4_000
"""Up to so many vectors, all are compared."""
_SHORTLIST: Final = 1_500
"""Beyond, the signs of the numbers pick so many that are compared."""
_SAMPLE: Final = 1_000
"""How similar vectors are on the whole is judged by so many."""


class Matrix:
    """Vectors of one scope and one embedder. Grows at its end; a row that comes twice counts once."""

    def __init__(self) -> None:
        self._rows: NDArray[np.float16] | None = None
        self._seqs: NDArray[np.int64] | None = None
        self._signs: NDArray[np.uint64] | None = None
        self._places: dict[int, int] = {}
        self._exact: Floats | None = None

    def __len__(self) -> int:
        """Return how many vectors there are."""
        return len(self._places)

    @property
    def size(self) -> int:
        """How much memory they take."""
        held = (self._rows, self._seqs, self._signs, self._exact)
        return sum(array.nbytes for array in held if array is not None) + 100 * len(self._places)

    def extend(self, rows: Iterable[tuple[int, bytes]]) -> None:
        """Add vectors by sequence number."""
        import numpy as np  # noqa: PLC0415 - loaded with the first vector

        new = [(seq, value) for seq, value in rows if seq not in self._places]
        if not new:
            return
        values = np.frombuffer(b"".join(value for _, value in new), dtype=np.float16).reshape(len(new), -1)
        seqs = np.array([seq for seq, _ in new], dtype=np.int64)
        for number, (seq, _) in enumerate(new, len(self._places)):
            self._places[seq] = number
        self._rows = values if self._rows is None else np.concatenate([self._rows, values])
        self._seqs = seqs if self._seqs is None else np.concatenate([self._seqs, seqs])
        self._exact = self._signs = None

    def similar(self, vector: Floats, limit: int, also: Sequence[int]) -> Similar | None:
        """Return the most similar, those asked for by name, and how similar all are on the whole."""
        import numpy as np  # noqa: PLC0415

        if self._rows is None or self._seqs is None:
            return None
        count = len(self._rows)
        if count <= EXACT:
            if self._exact is None:
                self._exact = self._rows.astype(np.float32)
            places = np.arange(count)
            scores = self._exact @ vector
            whole = scores
        else:
            places = self._shortlist(vector, max(_SHORTLIST, 4 * limit))
            scores = self._rows[places].astype(np.float32) @ vector
            sample = self._rows[:: max(count // _SAMPLE, 1)].astype(np.float32)
            whole = sample @ vector
        # Ties go to the newer message, so that the answer is always the same.
        best = np.lexsort((-self._seqs[places], -scores))[:limit]
        found = {int(self._seqs[places[at]]): float(scores[at]) for at in best}
        named = [seq for seq in also if seq in self._places and seq not in found]
        if named:
            rows = self._rows[[self._places[seq] for seq in named]].astype(np.float32)
            found.update(zip(named, (float(score) for score in rows @ vector), strict=True))
        return Similar(found, float(whole.mean()), float(whole.std()))

    def _shortlist(self, vector: Floats, size: int) -> NDArray[np.intp]:
        """Return the rows whose signs agree most with the vector's."""
        import numpy as np  # noqa: PLC0415

        if self._rows is None:
            raise ValueError("there is nothing to choose from")
        if self._signs is None:
            packed = np.packbits(self._rows > 0, axis=1)
            width = -packed.shape[1] % 8
            self._signs = np.ascontiguousarray(np.pad(packed, ((0, 0), (0, width)))).view(np.uint64)
        mine = np.packbits(vector > 0)
        mine = np.pad(mine, (0, -len(mine) % 8)).view(np.uint64)
        differing = np.bitwise_count(self._signs ^ mine).sum(axis=1, dtype=np.int32)
        size = min(size, len(differing) - 1)
        return np.sort(np.argpartition(differing, size)[:size])
