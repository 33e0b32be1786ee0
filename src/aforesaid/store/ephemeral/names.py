"""The display names of people, collected when somebody asks, and kept."""

from __future__ import annotations

from datetime import datetime

from aforesaid.store.ephemeral.numbers import Name
from aforesaid.store.ephemeral.state import State


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
