"""Pending replies: messages that a bot has received and not answered yet.

It is written down in the store before a message is, and crossed out when the answer was sent. A bot that was killed,
or stopped before it had said everything, reads there what it still has to say. No words are kept here: they are in the
log.
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
from aforesaid.domain.retention import PutMark
from aforesaid.errors import StoreError

if TYPE_CHECKING:
    from aforesaid.memory import Memory

_log: Final = logging.getLogger("aforesaid.bots")

_LONGEST: Final = timedelta(days=1)
"""Nobody waits longer for an answer. Telegram keeps its updates for as long."""
_KEPT: Final = 200
"""Number of finished commands remembered, to recognise repeats: platforms deliver up to a hundred updates again."""
_LATELY: Final = 10_000
_DONE: Final = "done"
_PROBE: Final = "probe"
"""The mark that is written to find out whether the store works. It reads like a command that was carried out."""


@dataclass(frozen=True, slots=True)
class PendingReply:
    """Something that is to be answered."""

    address: Address
    id: str
    """The platform's id of the message, or of what was pressed."""
    since: float
    """When it came in, in seconds."""
    command: str | None = None
    """The name of the command; None for a message, which is in the log."""
    called: tuple[str, ...] = CALLED
    sent: int = 0
    """Number of parts of the answer that were sent."""

    @property
    def key(self) -> str:
        """What it is known by, whenever it comes in again."""
        whole = json.dumps([self.address.space, self.address.thread or f"direct:{self.address.user}", self.id])
        return hashlib.sha256(whole.encode()).hexdigest()[:32]


class PendingReplies:
    """What is pending on one platform."""

    def __init__(self, memory: Memory, platform: str) -> None:
        self._memory = memory
        self._prefix = f"bot {platform} "
        self._done: deque[str] = deque()
        self._commands: set[str] = set()
        """Commands that were taken in, answered or not."""
        self._settled: LRUCache[str, bool] = LRUCache(_LATELY)
        """What was crossed out in this run: whoever reads at the same moment may still find it."""

    def knows(self, pending: PendingReply) -> bool:
        """Tell whether a command was taken in before."""
        return pending.key in self._commands

    async def note(self, pending: PendingReply) -> None:
        """Write down that an answer is pending."""
        if pending.command is not None:
            self._commands.add(pending.key)
        await self._put([PutMark(self._prefix + pending.key, json.dumps(asdict(pending)))])

    async def sent(self, pending: PendingReply, parts: int) -> None:
        """Write down how much of a long answer was sent."""
        await self.note(replace(pending, sent=parts))

    async def settle(self, pending: PendingReply) -> None:
        """Cross it out. That a command was carried out is known for a while: it must not happen twice."""
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
        """Return what is not answered yet, oldest first: what this run is at, and what an earlier one left."""
        found: list[PendingReply] = []
        done: list[tuple[float, str]] = []
        for name, value in (await self._memory.store.marks()).items():
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
                _log.warning("a message of %s is too old to be answered now", pending.address.user)
                await self.settle(pending)
        return [pending for pending in found if pending.since >= first]

    async def can_write(self) -> bool:
        """Tell whether the store takes what is written to it."""
        return await self._put([PutMark(f"{self._prefix}{_PROBE}", json.dumps({_DONE: datetime.now(UTC).timestamp()}))])

    async def _put(self, marks: list[PutMark]) -> bool:
        try:
            await self._memory.store.apply(marks)
        except StoreError as error:
            # The message itself tells whether the store works. Without this, only a kill right now would be noticed.
            _log.warning("it could not be written down what is to be answered: %s", error)
            return False
        return True
