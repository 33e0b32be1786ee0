"""What every read of the store in memory is given: the state, and what makes the next answer about it quick."""

from __future__ import annotations

from array import array
from bisect import insort
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from aforesaid.domain.message import Position
from aforesaid.store.columns import ColumnRow, Columns, Roll
from aforesaid.store.ephemeral.state import Entry, Name, State, as_microseconds, not_searched
from aforesaid.text.languages import terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from aforesaid.store.columns import Rows


class DisplayNames:
    """The latest display name of each author. It grows with the log; erased messages make it start again."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._state: State | None = None
        self._regrouped = 0
        self._last_seq = 0
        self._latest: dict[Name, tuple[datetime, str]] = {}

    def of(self, state: State) -> dict[Name, str]:
        """Return the names of a state, by space and author."""
        if self._state is not state or self._regrouped != state.regrouped:
            self._state, self._regrouped, self._last_seq = state, state.regrouped, 0
            self._latest.clear()
        for entry in state.after(self._last_seq):
            message = entry.message
            self._last_seq = message.seq
            if message.name is not None:
                author = message.space, message.author
                earlier = self._latest.get(author)
                if earlier is None or earlier[0] <= message.at:
                    self._latest[author] = message.at, message.name
        return {author: name for author, (_, name) in self._latest.items()}


@dataclass(slots=True)
class _Sorted:
    """The positions of one user or thread, and how many messages of the log are among them."""

    positions: list[Position] = field(default_factory=list)
    count: int = 0


class TimeOrder:
    """Positions of messages in order. They grow with the log; erased messages make it start again."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._state: State | None = None
        self._regrouped = 0
        self._sorted: dict[tuple[bool, Name], _Sorted] = {}

    def of(self, state: State, name: Name, is_thread: bool) -> Sequence[Position]:  # noqa: FBT001 - which of two tables
        """Return the positions of a user's messages, or of a thread's, oldest first."""
        if self._state is not state or self._regrouped != state.regrouped:
            self._state, self._regrouped = state, state.regrouped
            self._sorted.clear()
        known = self._sorted.setdefault((is_thread, name), _Sorted())
        seqs = state.numbers.said(name) if is_thread else state.numbers.owned(name)
        fresh = [state.log[seq].message.position for seq in seqs[known.count :]]
        known.count = len(seqs)
        if not known.positions:
            known.positions = sorted(fresh)
        else:
            for position in fresh:
                insort(known.positions, position)  # nearly always at the end
        return known.positions


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
        gone = not_searched(entry.message for entry in fresh)
        self.length += sum(len(terms(entry.message.text)) for entry in fresh if entry.message.seq in gone)
        newest = [entry for entry in fresh if entry.message.seq not in gone]
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


class Reader:
    """A state, and what makes the next answer about it quick."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.indexes: dict[tuple[bool, Name], Index] = {}
        self.names = DisplayNames()
        self.time_order = TimeOrder()
