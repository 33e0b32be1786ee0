"""What every read of the store in memory is given."""

from __future__ import annotations

from aforesaid.store.ephemeral.index import Index
from aforesaid.store.ephemeral.names import DisplayNames
from aforesaid.store.ephemeral.numbers import Name
from aforesaid.store.ephemeral.state import State
from aforesaid.store.ephemeral.time_order import TimeOrder


class Reader:
    """A state, and what makes the next answer about it quick."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.indexes: dict[tuple[bool, Name], Index] = {}
        self.names = DisplayNames()
        self.time_order = TimeOrder()
