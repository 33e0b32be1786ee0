"""The order in which the requests and replies of people are stored."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias
from weakref import WeakValueDictionary

Person: TypeAlias = tuple[str, str]
"""A space and a user."""


class StoreOrder:
    """Makes requests and replies wait for those that must be stored before them.

    Those of one conversation are stored one after the other. A request also waits for all replies that its person got
    before it: the app may go on from any of them. Requests of different conversations are stored side by side, so that
    one commit serves many of them.
    """

    def __init__(self) -> None:
        self._conversations: WeakValueDictionary[tuple[Person, str], asyncio.Lock] = WeakValueDictionary()
        self._replies: dict[Person, set[asyncio.Event]] = {}
        """One event for each reply that is being stored, set when it is stored or could not be."""

    def conversation(self, person: Person, begin: str) -> asyncio.Lock:
        """Return the lock of a conversation, by its thread, the reply that it goes on from, or its first message."""
        lock = self._conversations.get((person, begin))
        if lock is None:
            lock = self._conversations[person, begin] = asyncio.Lock()
        return lock

    @contextmanager
    def reply(self, person: Person) -> Iterator[None]:
        """Announce a reply that is stored in the block: later requests of the person wait for the end of the block."""
        ended = asyncio.Event()
        waited_for = self._replies.setdefault(person, set())
        waited_for.add(ended)
        try:
            yield
        finally:
            ended.set()
            waited_for.discard(ended)
            if not waited_for and self._replies.get(person) is waited_for:
                del self._replies[person]

    async def replies_before(self, person: Person) -> None:
        """Return when the replies that are being stored now are stored, or could not be."""
        for ended in list(self._replies.get(person, ())):
            await ended.wait()
