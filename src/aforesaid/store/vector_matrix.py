"""Vectors as they are stored, and many of them compared with one: all, or a shortlist by their signs."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from aforesaid.domain.hit import BYTES, Similar
from aforesaid.extras import np
from aforesaid.store.columns import Growing, places_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bits = NDArray[np.uint64]
    Floats = NDArray[np.float32]
    Numbers = NDArray[np.int64]
    Reader = Callable[[Numbers], Floats]
    """Reads the vectors of sequence numbers, a row for each."""


_HEADER: Final = len(BYTES) + 2
_MOST_STEPS: Final = 127


def packed(vectors: Floats) -> list[bytes]:
    """Return each row as it is stored: the largest of its numbers in half precision, and all as 127ths of that."""
    largest = np.abs(vectors).max(axis=1, keepdims=True).astype(np.float16)
    steps = vectors * (_MOST_STEPS / np.maximum(largest, np.finfo(np.float16).tiny).astype(np.float32))
    made = np.empty((len(vectors), _HEADER + vectors.shape[1]), dtype=np.uint8)
    made[:, : len(BYTES)] = np.frombuffer(BYTES, dtype=np.uint8)
    made[:, len(BYTES) : _HEADER] = largest.view(np.uint8)
    made[:, _HEADER:] = np.rint(steps).astype(np.int8).view(np.uint8)
    return [row.tobytes() for row in made]


def unpacked(values: Sequence[bytes]) -> Floats:
    """Return stored vectors, a row for each: those that `packed` made, and those of earlier versions."""
    if not values:
        return np.empty((0, 0), dtype=np.float32)
    earlier = [value for value in values if not value.startswith(BYTES)]
    if len(earlier) == len(values):
        return np.frombuffer(b"".join(earlier), dtype=np.float16).reshape(len(earlier), -1).astype(np.float32)
    if earlier:
        made: Floats = np.empty((len(values), dimensions_of(earlier[0])), dtype=np.float32)
        new = np.array([value.startswith(BYTES) for value in values])
        made[new], made[~new] = unpacked([value for value in values if value.startswith(BYTES)]), unpacked(earlier)
        return made
    rows = np.frombuffer(b"".join(values), dtype=np.uint8).reshape(len(values), -1)
    largest = np.ascontiguousarray(rows[:, len(BYTES) : _HEADER]).view(np.float16).astype(np.float32)
    scaled: Floats = np.multiply(rows[:, _HEADER:].view(np.int8), largest / _MOST_STEPS, dtype=np.float32)
    return scaled


def widened(values: NDArray[np.float16]) -> Floats:
    """Return finite numbers of half precision in single precision, in less than half of the time that numpy takes."""
    bits = values.view(np.int16).astype(np.int32)
    bits <<= 13
    bits &= ~0x70001FFF  # the sign came into four places
    wide: Floats = bits.view(np.float32)
    wide *= 2.0**112  # what the exponents of both differ by
    return wide


def dimensions_of(value: bytes) -> int:
    """Return how many numbers a stored vector has."""
    return len(value) - _HEADER if value.startswith(BYTES) else len(value) // 2


def repacked(value: bytes) -> bytes:
    return value if value.startswith(BYTES) else packed(unpacked([value]))[0]


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
        return len(self._columns[0]) if self._columns else 0

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self._columns)

    @property
    def rows(self) -> Bits:
        """All of them, a row for each vector, as `extend` takes them."""
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
    # Half-precision numbers have the order of the integers with the same bits, which numpy compares 25 times as fast.
    positive = values.view(np.int16) > 0 if values.dtype == np.float16 else values > 0
    return in_words(np.packbits(positive, axis=1))


def in_words(packed: NDArray[np.uint8]) -> Bits:
    """Return rows of packed bits as rows of numbers with 64 bits."""
    padded: Bits = np.ascontiguousarray(np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8)))).view(np.uint64)
    return padded


EXACT: Final = 4_000
"""Maximum vectors that are all compared with a question."""
SAMPLE: Final = 1_000
"""Vectors in the sample that tells how similar vectors usually are."""


@dataclass(frozen=True, slots=True)
class Few:
    """So few vectors that all of them are compared. They do not change when others come."""

    seqs: Numbers
    values: Floats

    def similar(self, vector: Floats) -> Similar | None:
        """Return all of them, best first, and how similar they are on the whole."""
        if not len(self.seqs):
            return None
        scores: Floats = self.values @ vector
        # Ties go to the newer message, so that the answer is always the same: rows are in order, seen from the end.
        best = len(scores) - 1 - np.argsort(-scores[::-1], kind="stable")
        return Similar(self.seqs[best], scores[best], float(scores.mean()), float(scores.std()))


class Matrix:
    """Vectors of one scope and one embedder, in the order of the log. A row that comes twice counts once."""

    def __init__(self, expected: int = 0, held: int = sys.maxsize) -> None:
        """Make room for as many vectors as are expected, so that adding them copies nothing.

        If there are more than `held`, only their signs are held, and whoever compares them brings a reader.
        """
        self._expected = expected
        self._held = max(held, EXACT)
        self._seqs: Growing | None = None
        self._values: Growing | None = None
        self._signs = Signs()
        self._exact: Floats | None = None
        self._sample: Floats | None = None
        """Some of the vectors, from the first to the last, as long as no others come in."""

    def __len__(self) -> int:
        return 0 if self._seqs is None else len(self._seqs)

    @property
    def size(self) -> int:
        held = (self._seqs, self._values, self._signs, self._exact, self._sample)
        return sum(array.nbytes for array in held if array is not None)

    def extend(self, rows: Sequence[tuple[int, bytes]]) -> None:
        if not rows:
            return
        seqs = np.array([seq for seq, _ in rows], dtype=np.int64)
        values: NDArray[np.floating] = unpacked([value for _, value in rows])
        if self._seqs is None:
            self._seqs = Growing(seqs[:0])
            self._seqs.reserve(self._expected)
            if self._expected <= self._held:
                self._values = Growing(values[:0].astype(np.float16))
                self._values.reserve(self._expected)
        if self._values is not None:
            values = values.astype(np.float16)
        if (len(self) and seqs[0] <= self._seqs.rows[-1]) or (np.diff(seqs) <= 0).any():
            self._merge(self._seqs.rows, seqs, values)
        else:
            self._seqs.extend(seqs)
            if self._values is None:
                self._signs.extend(signs_of(values))
            else:
                self._values.extend(values)
        if self._values is not None and len(self) > self._held:
            self._signs_of_all()
            self._values = None
        self._exact = self._sample = None

    def few(self, only: Numbers | None = None, read: Reader | None = None) -> Few | None:
        """Return all vectors, or those of these sequence numbers, which are in order; None where they are too many."""
        if self._seqs is None:
            return Few(np.empty(0, dtype=np.int64), np.empty((0, 0), dtype=np.float32))
        seqs = self._seqs.rows
        if only is not None:
            inside = np.flatnonzero(np.isin(seqs, only, assume_unique=True))
            return Few(seqs[inside], self._vectors(inside, read)) if len(inside) <= EXACT else None
        if len(seqs) > EXACT or self._values is None:
            return None
        if self._exact is None or len(self._exact) != len(seqs):
            self._exact = widened(self._values.rows)
        return Few(seqs, self._exact)

    def similar(
        self,
        vector: Floats,
        limit: int,
        also: Sequence[int] = (),
        only: Numbers | None = None,
        read: Reader | None = None,
    ) -> Similar | None:
        """Return what was compared, best first, then those asked for by name, and how similar all are on the whole.

        The first `limit` are the most similar ones. `only` limits all of it to these sequence numbers, in order.
        """
        few = self.few(only, read)
        if few is not None:
            return few.similar(vector)
        if self._seqs is None:
            return None
        seqs = self._seqs.rows
        inside = np.arange(len(seqs)) if only is None else np.flatnonzero(np.isin(seqs, only, assume_unique=True))
        places = self._signs_of_all().nearest(vector, limit, inside)
        scores, whole = self._vectors(places, read) @ vector, self._usual(inside, read) @ vector
        best = len(scores) - 1 - np.argsort(-scores[::-1], kind="stable")
        chosen, given = places[best], scores[best]
        named = places_of(np.array(also, dtype=np.int64), seqs)
        named = named[~np.isin(named, chosen)]
        if only is not None:
            named = np.intersect1d(named, inside, assume_unique=True)
        if len(named):
            chosen = np.concatenate([chosen, named])
            given = np.concatenate([given, self._vectors(named, read) @ vector])
        return Similar(seqs[chosen], given, float(whole.mean()), float(whole.std()))

    def _vectors(self, places: NDArray[np.intp], read: Reader | None) -> Floats:
        if self._values is not None:
            return widened(self._values.rows[places])
        if self._seqs is None or read is None:
            raise ValueError("the vectors are not in memory")
        return read(self._seqs.rows[places])

    def _usual(self, inside: NDArray[np.intp], read: Reader | None) -> Floats:
        """Return some vectors out of all that are inside."""
        places = inside[:: max(len(inside) // SAMPLE, 1)]
        if len(inside) < len(self):
            return self._vectors(places, read)
        if self._sample is None:
            self._sample = self._vectors(places, read)
        return self._sample

    def _signs_of_all(self) -> Signs:
        if self._values is not None and len(self._signs) < len(self._values):
            self._signs.extend(signs_of(self._values.rows[len(self._signs) :]))
        return self._signs

    def _merge(self, known: Numbers, seqs: Numbers, values: NDArray[np.floating]) -> None:
        """Put late vectors where they belong; of two for one message, the first stays."""
        every, first = np.unique(np.concatenate([known, seqs]), return_index=True)
        signs, self._seqs, self._signs = self._signs, Growing(every), Signs()
        if self._values is None:
            new = signs_of(values)
            self._signs.extend((np.concatenate([signs.rows, new]) if len(signs) else new)[first])
        else:
            self._values = Growing(np.concatenate([self._values.rows, values])[first])


CACHE_BYTES: Final = 256 * 1024 * 1024
"""Maximum bytes that one store keeps in memory of what was searched lately (256 MiB)."""


class Sized(Protocol):
    """An entry. It may grow and shrink while it is in the cache."""

    @property
    def size(self) -> int:
        """Bytes."""


Key = TypeVar("Key", bound=Hashable)
Entry = TypeVar("Entry", bound=Sized)


class SizedCache(Generic[Key, Entry]):
    """Entries by key, with a running total of their sizes: a call costs the same however many entries there are."""

    def __init__(self, most_bytes: int = CACHE_BYTES) -> None:
        self._most = most_bytes
        self._lock = threading.Lock()
        self._entries: OrderedDict[Key, Entry] = OrderedDict()
        self._sizes: dict[Key, int] = {}
        self.size = 0
        """Bytes of all entries, as of their last `resized`."""

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def get(self, key: Key, make: Callable[[], Entry]) -> Entry:
        """Return the entry of a key as the most recently used one, made if it is not there."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = make()
            self._entries.move_to_end(key)
            return entry

    def resized(self, key: Key) -> None:
        """Count an entry anew after it changed, and drop old entries while all of them take too much."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return
            self._count(key, entry.size)
            while self.size > self._most and len(self._entries) > 1:
                oldest, _ = self._entries.popitem(last=False)
                self._count(oldest, 0)

    def drop(self, key: Key) -> None:
        with self._lock:
            if self._entries.pop(key, None) is not None:
                self._count(key, 0)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self._sizes.clear()
            self.size = 0

    def _count(self, key: Key, size: int) -> None:
        self.size += size - self._sizes.pop(key, 0)
        if size:
            self._sizes[key] = size
