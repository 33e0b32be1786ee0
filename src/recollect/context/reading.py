"""Reads that one context is made of: each is made when it is first asked for, and once."""

from __future__ import annotations

import asyncio
from functools import cached_property
from typing import NamedTuple

from recollect.domain.memory import Memory
from recollect.domain.message import Message
from recollect.domain.scope import Scope
from recollect.domain.summary import Summary
from recollect.store import Store


class Near(NamedTuple):
    """What is at hand without a search."""

    summaries: list[Summary]
    recent: list[Message]
    current: list[Message]
    """The message that is to be answered, if it is stored."""

    @property
    def shown(self) -> frozenset[int]:
        """The messages that need not be found, by sequence number."""
        return frozenset(message.seq for message in (*self.recent, *self.current))


class Reading:
    """What several parts of a context need. Whoever awaits it waits for the same read."""

    def __init__(self, store: Store, scope: Scope) -> None:
        self._store = store
        self._scope = scope
        self._begun: list[asyncio.Future[list[Memory]] | asyncio.Future[list[Summary]]] = []

    @cached_property
    def memories(self) -> asyncio.Future[list[Memory]]:
        """All that the user has active."""
        found = asyncio.ensure_future(self._store.memories(self._scope))
        self._begun.append(found)
        return found

    @cached_property
    def summaries(self) -> asyncio.Future[list[Summary]]:
        """The same of the summaries."""
        found = asyncio.ensure_future(self._store.summaries(self._scope))
        self._begun.append(found)
        return found

    def close(self) -> None:
        """Give up what nobody waits for any more."""
        for each in self._begun:
            each.cancel()
