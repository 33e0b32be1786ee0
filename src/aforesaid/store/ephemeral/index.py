"""The words of a user's or of a thread's messages, worked out when somebody searches, and kept."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from aforesaid.store.columns import ColumnRow, Columns, Roll
from aforesaid.store.ephemeral.state import Entry, State, as_microseconds
from aforesaid.text.terms import terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from aforesaid.store.columns import Rows


class Index:
    """Columns and posting lists that grow with the messages."""

    def __init__(self, state: State) -> None:
        """Start with nothing."""
        self._state = state
        self._regrouped = state.regrouped
        self._roll = Roll()
        self._postings: dict[str, tuple[array[int], array[int]]] = {}
        self._threads: dict[tuple[str, str], int] = {}
        self._rows = 0
        self.count = 0
        """How many messages there are, with older versions."""
        self.length = 0
        """How many terms these have in all."""

    def is_of(self, state: State) -> bool:
        """Tell whether it can go on: the state is the same, and nothing was regrouped or erased."""
        return self._state is state and self._regrouped == state.regrouped

    def grow(self, seqs: Sequence[int]) -> None:
        """Take in the messages that came since."""
        fresh = [self._state.log[seq] for seq in seqs[self.count :]]
        self.count += len(fresh)
        self.length += sum(len(terms(entry.message.text)) for entry in fresh if entry.message.replaced)
        newest = [entry for entry in fresh if not entry.message.replaced]
        self._roll.extend([self._row(entry, place) for place, entry in enumerate(newest, self._rows)])
        self._rows += len(newest)

    def columns(self) -> Columns:
        """Return the messages as columns."""
        return self._roll.columns()

    def having(self, wanted: Iterable[str]) -> tuple[Rows, NDArray[np.int64]]:
        """Return the messages that have any of the terms, in order, and how often each has them."""
        import numpy as np  # noqa: PLC0415 - loaded with the first search

        lists = [self._postings[term] for term in dict.fromkeys(wanted) if term in self._postings]
        if not lists:
            return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.int64)
        rows = np.concatenate([np.array(places, dtype=np.intp) for places, _ in lists])
        counts = np.concatenate([np.array(numbers, dtype=np.int64) for _, numbers in lists])
        found, where = np.unique(rows, return_inverse=True)
        return found, np.bincount(where, weights=counts).astype(np.int64)

    def _row(self, entry: Entry, place: int) -> ColumnRow:
        message = entry.message
        here = message.space, message.thread
        length = 0
        for term, count in Counter(terms(message.text)).items():
            places, counts = self._postings.setdefault(term, (array("q"), array("q")))
            places.append(place)
            counts.append(count)
            length += count
        self.length += length
        return ColumnRow(
            message.seq,
            as_microseconds(message.at),
            self._threads.setdefault(here, len(self._threads)),
            self._state.session_names[here, message.session],
            message.name or message.author,
            message.role,
            length,
        )
