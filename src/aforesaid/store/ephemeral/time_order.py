"""The messages of users and threads by when they were said, sorted when somebody reads them, and kept."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field

from aforesaid.domain.message import Position
from aforesaid.store.ephemeral.numbers import Name
from aforesaid.store.ephemeral.state import State


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
