"""The messages of a scope, one array for each thing that ranking wants to know of them.

Ranking looks at hundreds of candidates, their neighbours and their sessions. Arrays make that a matter of microseconds;
they hold no text, and are made again from the log at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from aforesaid.extras import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.intp]


_SPARE: Final = 1.25
"""Factor by which an array grows when it is full."""


class Growing:
    """Rows of one type. What `rows` gave out stays as it was: growing writes behind it, or elsewhere."""

    def __init__(self, first: NDArray[Any]) -> None:
        self._held = first
        self._count = len(first)

    def __len__(self) -> int:
        return self._count

    @property
    def rows(self) -> NDArray[Any]:
        return self._held[: self._count]

    @property
    def nbytes(self) -> int:
        return self._held.nbytes

    def reserve(self, count: int) -> None:
        if count > len(self._held):
            larger = np.empty((count, *self._held.shape[1:]), dtype=self._held.dtype)
            larger[: self._count] = self._held[: self._count]
            self._held = larger

    def extend(self, more: NDArray[Any]) -> None:
        total = self._count + len(more)
        if total > len(self._held):
            self.reserve(max(int(total * _SPARE), 16))
        self._held[self._count : total] = more
        self._count = total


Value = TypeVar("Value")

_ARRAYS: Final = ("seq", "at", "thread", "session", "speaker", "assistant", "length")


@dataclass(frozen=True, slots=True)
class Columns:
    """Messages in the order of the log. A message's row is its place in these arrays."""

    seq: NDArray[np.int64]
    at: NDArray[np.int64]
    thread: NDArray[np.int64]
    session: NDArray[np.int32]
    """Its place in `sessions`."""
    speaker: NDArray[np.int32]
    """Its place in `speakers`."""
    assistant: NDArray[np.bool_]
    """Whether the assistant said it."""
    length: NDArray[np.int32]
    speakers: Sequence[str]
    sessions: Sequence[int]
    """What the store calls them."""

    def __len__(self) -> int:
        return len(self.seq)

    def locate(self, seqs: NDArray[np.int64]) -> tuple[Rows, NDArray[np.bool_]]:
        """Return the rows of those sequence numbers that are here, in their order, and which of them are."""
        if not len(self.seq):
            return np.empty(0, dtype=np.intp), np.zeros(len(seqs), dtype=np.bool_)
        places = np.minimum(np.searchsorted(self.seq, seqs), len(self.seq) - 1)
        known: NDArray[np.bool_] = self.seq[places] == seqs
        return places[known], known


class Roll:
    """Columns that grow as messages are added."""

    def __init__(self) -> None:
        types = {"session": np.int32, "length": np.int32, "speaker": np.int32, "assistant": np.bool_}
        self._columns = {name: Growing(np.empty(0, dtype=types.get(name, np.int64))) for name in _ARRAYS}
        self._speakers: dict[str, int] = {}
        self._sessions: dict[int, int] = {}

    @property
    def size(self) -> int:
        return sum(column.nbytes for column in self._columns.values())

    @property
    def last(self) -> int:
        """The newest sequence number; zero when there is none."""
        seqs = self._columns["seq"].rows
        return int(seqs[-1]) if len(seqs) else 0

    def extend(
        self,
        seq: NDArray[np.int64],
        at: NDArray[np.int64],
        thread: NDArray[np.int64],
        assistant: NDArray[np.bool_ | np.int64],
        length: NDArray[np.int64],
        *,
        sessions: Iterable[int],
        speakers: Iterable[str],
    ) -> None:
        """Add messages, oldest first, given as columns of the same length."""
        added: dict[str, NDArray[Any]] = {
            "seq": seq,
            "at": at,
            "thread": thread,
            "session": np.array(_numbered(sessions, self._sessions), dtype=np.int32),
            "speaker": np.array(_numbered(speakers, self._speakers), dtype=np.int32),
            "assistant": assistant,
            "length": length,
        }
        for name, values in added.items():
            self._columns[name].extend(values)

    def columns(self) -> Columns:
        """Return what is there now. It does not change when more is added."""
        return Columns(
            **{name: column.rows for name, column in self._columns.items()},
            speakers=tuple(self._speakers),
            sessions=tuple(self._sessions),
        )


def _numbered(values: Iterable[Value], known: dict[Value, int]) -> list[int]:
    """Return the number of each value, and give new ones the next number."""
    return [known.setdefault(value, len(known)) for value in values]


def sorted_unique(values: NDArray[Any]) -> NDArray[Any]:
    """Return the different values in order. numpy's own function loads the module of masked arrays, in 0.1 s."""
    ordered = np.sort(values)
    different = np.ones(len(ordered), dtype=np.bool_)
    different[1:] = ordered[1:] != ordered[:-1]
    return ordered[different]


def places_of(wanted: NDArray[np.int64], seqs: NDArray[np.int64]) -> Rows:
    """Return the places of those wanted sequence numbers that are among these, which are in order."""
    places = np.minimum(np.searchsorted(seqs, wanted), len(seqs) - 1)
    return sorted_unique(places[seqs[places] == wanted])
