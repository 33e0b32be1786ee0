"""Index terms as numbers, for stores that look them up in memory: eight bytes each, whatever the word."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from aforesaid.domain.caches import holds_texts
from aforesaid.store.columns import Growing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from aforesaid.store.columns import Rows

_REMEMBERED: Final = 200_000
"""People use the same words again and again."""
_TAIL: Final = 4_096
"""Number of new terms that are scanned one by one before they are merged into the sorted ones."""
_BYTES: Final = 8


def hashed(terms: Sequence[str]) -> bytes:
    """Return terms as numbers in a row, in order and with repetitions."""
    return b"".join([_hash(term) for term in terms])


def number_of(term: str) -> int:
    """Return the number that stands for a term."""
    return int.from_bytes(_hash(term), "little", signed=True)


def content_hash(text: str) -> int:
    """Return a number by which equal texts are found."""
    return int.from_bytes(blake2b(text.encode(), digest_size=_BYTES).digest(), "big", signed=True)


@holds_texts
@lru_cache(_REMEMBERED)
def _hash(term: str) -> bytes:
    # Two of a person's words that have the same 64 bits are not to be expected in the lifetime of the universe.
    return blake2b(term.encode(), digest_size=_BYTES).digest()


class Inverted:
    """Which rows have which terms. Rows are added at the end; what is new is sorted in when it has become much."""

    def __init__(self) -> None:
        import numpy as np  # noqa: PLC0415 - loaded with the first search

        self._terms = np.empty(0, dtype=np.int64)
        self._rows = np.empty(0, dtype=np.int32)
        self._new_terms = Growing(np.empty(0, dtype=np.int64))
        self._new_rows = Growing(np.empty(0, dtype=np.int32))
        self._count = 0

    @property
    def size(self) -> int:
        """How much memory it takes."""
        return self._terms.nbytes + self._rows.nbytes + self._new_terms.nbytes + self._new_rows.nbytes

    def extend(self, terms: Sequence[bytes]) -> None:
        """Add rows by their terms."""
        import numpy as np  # noqa: PLC0415

        lengths = [len(each) // _BYTES for each in terms]
        numbers = np.arange(self._count, self._count + len(terms), dtype=np.int32)
        self._new_terms.extend(np.frombuffer(b"".join(terms), dtype="<i8"))
        self._new_rows.extend(np.repeat(numbers, lengths))
        self._count += len(terms)
        if len(self._new_terms) > max(_TAIL, len(self._terms) // 8):
            self._sort_in()

    def having(self, terms: Sequence[str]) -> tuple[Rows, NDArray[np.int64]]:
        """Return the rows that have any of the terms, in order, and how often."""
        import numpy as np  # noqa: PLC0415

        new = self._new_terms.rows
        found = []
        for number in map(number_of, terms):
            first, last = np.searchsorted(self._terms, [number, number + 1])
            found += [self._rows[first:last], self._new_rows.rows[new == number]]
        rows, counts = np.unique(np.concatenate(found), return_counts=True)
        return rows.astype(np.intp), counts

    def _sort_in(self) -> None:
        import numpy as np  # noqa: PLC0415

        terms = np.concatenate([self._terms, self._new_terms.rows])
        order = np.argsort(terms, kind="stable")
        self._rows = np.concatenate([self._rows, self._new_rows.rows])[order]
        self._terms = terms[order]
        self._new_terms = Growing(np.empty(0, dtype=np.int64))
        self._new_rows = Growing(np.empty(0, dtype=np.int32))
