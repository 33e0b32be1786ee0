"""Pending replies: messages that a bot has received and not answered yet.

A mark in the store is written before the message itself, and removed when the answer was sent. A bot that was killed
or stopped early finds there what it still has to answer. Marks contain no text; the texts are in the log.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections import deque
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from cachetools import LRUCache

from aforesaid.assistant import CALLED
from aforesaid.bots.contract import Address
from aforesaid.domain.change import PutMark
from aforesaid.errors import StoreError
from aforesaid.store import questions

if TYPE_CHECKING:
    from aforesaid.memory import Memory

_log: Final = logging.getLogger("aforesaid.bots")

_LONGEST: Final = timedelta(days=1)
"""Older messages are not answered any more. Telegram keeps its updates for the same time."""
_KEPT: Final = 200
"""Number of finished commands remembered, to recognise repeats: platforms deliver up to a hundred updates again."""
_SETTLED_CACHE_SIZE: Final = 10_000
"""Maximum number of settled replies remembered in this process."""
_DONE: Final = "done"
_PROBE: Final = "probe"
"""The mark written to check whether the store works. It is read as a finished command."""


@dataclass(frozen=True, slots=True)
class PendingReply:
    """A message, command or pressed button that still needs an answer."""

    address: Address
    id: str
    """The platform's id of the message or of the pressed button."""
    since: float
    """When it arrived, as a Unix time in seconds."""
    command: str | None = None
    """The name of the command; None for a message, which is in the log."""
    called: tuple[str, ...] = CALLED
    sent: int = 0
    """Number of parts of the answer that were sent."""

    @property
    def key(self) -> str:
        """An id that is the same whenever the platform delivers it again."""
        whole = json.dumps([self.address.space, self.address.thread or f"direct:{self.address.user}", self.id])
        return hashlib.sha256(whole.encode()).hexdigest()[:32]


class PendingReplies:
    """The pending replies of one platform."""

    def __init__(self, memory: Memory, platform: str) -> None:
        self._memory = memory
        self._prefix = f"bot {platform} "
        self._done: deque[str] = deque()
        self._commands: set[str] = set()
        """Keys of received commands, answered or not."""
        self._settled: LRUCache[str, bool] = LRUCache(_SETTLED_CACHE_SIZE)
        """Replies settled by this process: a read that began earlier may still return their marks."""

    def knows(self, pending: PendingReply) -> bool:
        """Return whether a command was received before."""
        return pending.key in self._commands

    async def note(self, pending: PendingReply) -> None:
        """Store that an answer is pending."""
        if pending.command is not None:
            self._commands.add(pending.key)
        # It was settled before if its message could not be stored, and is delivered again.
        self._settled.pop(pending.key, None)
        await self._put([PutMark(self._prefix + pending.key, json.dumps(asdict(pending)))])

    async def sent(self, pending: PendingReply, parts: int) -> None:
        """Store how many parts of a long answer were sent."""
        await self.note(replace(pending, sent=parts))

    async def settle(self, pending: PendingReply) -> None:
        """Remove the mark. A finished command is remembered for a while, so that it does not run twice."""
        self._settled[pending.key] = True
        if pending.command is None:
            await self._put([PutMark(self._prefix + pending.key, None)])
            return
        self._done.append(pending.key)
        marks = [PutMark(self._prefix + pending.key, json.dumps({_DONE: pending.since}))]
        while len(self._done) > _KEPT:
            oldest = self._done.popleft()
            self._commands.discard(oldest)
            marks.append(PutMark(self._prefix + oldest, None))
        await self._put(marks)

    async def left(self) -> list[PendingReply]:
        """Return every unanswered reply, oldest first, of this run and of earlier ones."""
        found: list[PendingReply] = []
        done: list[tuple[float, str]] = []
        for name, value in (await self._memory.store.read(questions.Marks())).items():
            if not name.startswith(self._prefix):
                continue
            key, read = name.removeprefix(self._prefix), json.loads(value)
            if _DONE in read:
                done.append((read[_DONE], key))
            else:
                pending = PendingReply(
                    **{**read, "address": Address(*read["address"]), "called": tuple(read["called"])}
                )
                found.append(pending)
                if pending.command is not None:
                    self._commands.add(key)
        known = set(self._done)
        self._done.extend(key for _, key in sorted(done) if key not in known)
        self._commands.update(self._done)
        found = [pending for pending in found if pending.key not in self._settled]
        return await self._without_old(sorted(found, key=lambda pending: pending.since))

    async def _without_old(self, found: list[PendingReply]) -> list[PendingReply]:
        first = (datetime.now(UTC) - _LONGEST).timestamp()
        for pending in found:
            if pending.since < first:
                _log.warning("a message of %s is older than a day, so it is not answered", pending.address.user)
                await self.settle(pending)
        return [pending for pending in found if pending.since >= first]

    async def can_write(self) -> bool:
        """Return whether the store accepts writes."""
        return await self._put([PutMark(f"{self._prefix}{_PROBE}", json.dumps({_DONE: datetime.now(UTC).timestamp()}))])

    async def _put(self, marks: list[PutMark]) -> bool:
        try:
            await self._memory.store.apply(marks)
        except StoreError as error:
            # Storing the message itself reports a broken store. Without the mark, only a kill loses the answer.
            _log.warning("a pending reply could not be stored: %s", error)
            return False
        return True
