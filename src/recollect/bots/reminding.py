"""Delivering reminders: once, to the right person, wherever they can be reached."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Final

from recollect.assistant import Answer
from recollect.bots.contract import Address, Attended, Platform, owns
from recollect.bots.sending import Sender
from recollect.bots.tally import Tally
from recollect.domain.memory import Memory as Remembered
from recollect.domain.scope import is_direct
from recollect.errors import PlatformError, PlatformRefused, RecollectError

if TYPE_CHECKING:
    from recollect.memory import Memory

_log: Final = logging.getLogger("recollect.bots")

EVERY: Final = 5.0
"""So many seconds lie between two looks at what is due."""


class Reminding:
    """Looks for reminders whose time has come.

    One process alone takes a reminder; it is given back when it could not be sent, and tried again. A bot that is
    killed between taking one and sending it has not sent it: `recollect memories --state expired` shows it.
    """

    def __init__(
        self, memory: Memory, platform: Platform, sender: Sender, tally: Tally, clock: Callable[[], datetime]
    ) -> None:
        self._memory = memory
        self._platform = platform
        self._sender = sender
        self._tally = tally
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look from now on."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="recollect-reminders")

    async def stop(self) -> None:
        """Stop, but finish the one that is being delivered."""
        task, self._task = self._task, None
        if task is not None:
            async with self._one_at_a_time:
                task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def deliver(self) -> int:
        """Deliver what is due; return how many were."""
        done = 0
        async with self._one_at_a_time:
            for memory in await self._memory.reminders(at=self._clock()):
                if owns(self._platform.name, memory.space) and self._is_there(memory):
                    done += await self._deliver(memory)
        return done

    def _is_there(self, memory: Remembered) -> bool:
        platform = self._platform
        return not isinstance(platform, Attended) or platform.reachable(Address(memory.space, memory.user))

    async def _run(self) -> None:
        while True:
            try:
                await self.deliver()
            except RecollectError as error:
                _log.warning("reminders are looked for again in a moment: %s", error)
            await asyncio.sleep(EVERY)

    async def _deliver(self, memory: Remembered) -> bool:
        user = self._memory.user(memory.user, space=memory.space, actor=f"{self._platform.name} bot")
        if not await user.delivered(memory.id):
            return False
        text = f"⏰ Reminder: {memory.text}"
        try:
            thread = await self._reach(Address(memory.space, memory.user), text)
        except PlatformError as error:
            # It is not lost: whoever looks next finds it again.
            await user.undo(memory.id)
            self._tally.failed(f"a reminder could not be delivered: {error}")
            _log.error("the reminder %d of %s could not be delivered: %s", memory.id, memory.user, error)
            return False
        there = self._memory.user(memory.user, space=memory.space, thread=thread)
        await there.add("assistant", text, id=f"reminder:{memory.id}")
        self._tally.reminders += 1
        return True

    async def _reach(self, to: Address, text: str) -> str | None:
        """Send it to the person alone, or where they last spoke if that cannot be done. Return the thread."""
        try:
            await self._sender.deliver(to, Answer(text))
        except PlatformRefused:
            newest = await self._memory.user(to.user, space=to.space).history(1)
            if not newest or is_direct(newest[-1].thread):
                raise
            await self._sender.deliver(to._replace(thread=newest[-1].thread), Answer(text))
            return newest[-1].thread
        return None
