"""Wakes event streams when there are changes for them, and ends them with their key.

Changes of this process are announced as they are made. For those of other processes, one look per second at the state
of the store serves all streams, and only while there are some.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from aforesaid.domain.scope import Scope
from aforesaid.errors import StoreError
from aforesaid.memory import Memory
from aforesaid.store import questions
from aforesaid.store.announcing import Owner

_log: Final = logging.getLogger("aforesaid.server")
_LOOK_SECONDS: Final = 1.0
"""Seconds between checks for changes of other processes and of keys."""


@dataclass(eq=False, slots=True)
class Subscription:
    """One stream that follows a user, or all users of a space."""

    space: str
    user: str | None
    """None for all users of the space."""
    is_valid: Callable[[], bool]
    """Returns whether the credential of the stream is still valid."""
    accesses: bool = True
    """Whether it is woken when somebody only viewed something."""
    ended: bool = False
    certain: bool = False
    """Whether a change of this process woke it. Otherwise another process changed something, perhaps elsewhere."""
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self, seconds: float) -> bool:
        """Return True when there may be news or the stream has ended; False after the timeout."""
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return False
        self._news.clear()
        return True

    def wake(self, *, certain: bool = True) -> None:
        """Wake the stream."""
        self.certain |= certain
        self._news.set()

    def is_about(self, owners: frozenset[Owner] | None) -> bool:
        """Return whether it follows one of these users; None stands for everybody."""
        if owners is None:
            return True
        return any(space == self.space and self.user in (None, user) for space, user in owners)

    def end(self) -> None:
        """End the stream."""
        self.ended = True
        self._news.set()


class ChangeFeed:
    """All streams of one server."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._streams: set[Subscription] = set()
        self._looking: asyncio.Task[None] | None = None
        self._stop_listening: list[Callable[[], None]] = []

    @contextmanager
    def follow(self, scope: Scope, is_valid: Callable[[], bool]) -> Iterator[Subscription]:
        """Subscribe to the changes of a user, and to who views their memory."""
        with self._added(Subscription(scope.space, scope.user, is_valid)) as stream:
            yield stream

    @contextmanager
    def watch(self, space: str, user: str | None, is_valid: Callable[[], bool]) -> Iterator[Subscription]:
        """Subscribe to the changes of a space, or of one user in it."""
        with self._added(Subscription(space, user, is_valid, accesses=False)) as stream:
            yield stream

    @contextmanager
    def _added(self, stream: Subscription) -> Iterator[Subscription]:
        self._streams.add(stream)
        if self._looking is None:
            listen = self._memory.changes.listen
            self._stop_listening = [listen(self._announced), listen(self._changed, accesses=False)]
            self._looking = asyncio.create_task(self._look())
        try:
            yield stream
        finally:
            self._streams.discard(stream)
            if not self._streams:
                self._rest()

    def check_credentials(self) -> None:
        """End the streams whose key was revoked or has expired, or whose browser was signed out."""
        for stream in tuple(self._streams):
            if not stream.is_valid():
                stream.end()

    def close(self) -> None:
        """End all streams."""
        for stream in tuple(self._streams):
            stream.end()

    def _announced(self, owners: frozenset[Owner] | None) -> None:
        """Wake the streams that also follow who views something."""
        for stream in self._streams:
            if stream.accesses and stream.is_about(owners):
                stream.wake()

    def _changed(self, owners: frozenset[Owner] | None) -> None:
        for stream in self._streams:
            if not stream.accesses and stream.is_about(owners):
                stream.wake()

    async def _look(self) -> None:
        """Check for changes of other processes and of keys, until there are no streams."""
        seen = await self._token()
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            self.check_credentials()
            token = await self._token()
            if token != seen:
                seen = token
                for stream in self._streams:
                    stream.wake(certain=False)

    async def _token(self) -> str:
        try:
            return await self._memory.store.read(questions.ChangeToken())
        except StoreError as error:
            # Health reports it; streams continue once the store works again.
            _log.debug("changes of other processes cannot be followed: %s", error)
            return f"failing: {error}"

    def _rest(self) -> None:
        for stop in self._stop_listening:
            stop()
        self._stop_listening = []
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
