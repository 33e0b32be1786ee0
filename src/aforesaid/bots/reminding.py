"""Delivers each due reminder once, to its person, in the chat where they can be reached."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from aforesaid.assistant import Answer
from aforesaid.assistant.phrases import ChatLanguages
from aforesaid.background import BackgroundLoop
from aforesaid.bots.contract import Address, BotStats, MessageTimes, Platform, is_reachable, owns
from aforesaid.bots.sending import Sender
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.scope import is_direct
from aforesaid.errors import NotFound, PlatformRefused, StoreError
from aforesaid.facts import claims_of
from aforesaid.memory import Memory, UserMemory

_log: Final = logging.getLogger("aforesaid.bots")

EVERY: Final = 5.0
"""Seconds between two checks for due reminders."""
LEASE: Final = timedelta(minutes=2)
"""How long a process that took a reminder has to deliver it. Discord recognises duplicates for some minutes."""
_SENDING: Final = 90.0
"""Timeout in seconds for sending one reminder: less than the lease, so that nobody else starts before it ends."""
_TRIES: Final = 3
_SOON: Final = 10
"""Number of retries as soon as the lease ends; later ones come less often."""
_LATER: Final = timedelta(hours=1)


class Reminding:
    """Looks for due reminders and delivers them.

    One process claims a reminder with a lease, sends it, stores that it was sent, and marks it as delivered. If that
    process ends in between, the reminder is due again when the lease ends; if it was stored by then, it is not sent
    again. Only a kill between sending and storing can deliver it twice, on platforms that do not detect duplicates.
    """

    def __init__(
        self,
        memory: Memory,
        platform: Platform,
        sender: Sender,
        stats: BotStats,
        times: MessageTimes,
        clock: Callable[[], datetime],
        languages: ChatLanguages,
    ) -> None:
        self._languages = languages
        self._memory = memory
        self._platform = platform
        self._sender = sender
        self._stats = stats
        self._times = times
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()
        self._loop: BackgroundLoop | None = None

    def start(self) -> None:
        if self._loop is None:
            name = f"{self._platform.name} reminders"
            self._loop = self._memory.loops.add(BackgroundLoop(name, self._run, retry_seconds=EVERY, log=_log))
            self._loop.start()

    async def stop(self) -> None:
        """Stop after the reminder that is being delivered."""
        loop, self._loop = self._loop, None
        if loop is not None:
            async with self._one_at_a_time:
                await loop.stop()

    async def deliver(self) -> int:
        done = 0
        async with self._one_at_a_time:
            for memory in await self._memory.reminders(at=self._clock()):
                address = Address(memory.space, memory.user)
                if owns(self._platform.name, memory.space) and is_reachable(self._platform, address):
                    done += await self._deliver(memory)
        return done

    async def _run(self) -> float:
        await self.deliver()
        return EVERY

    async def _deliver(self, memory: MemoryRecord) -> bool:
        user = self._memory.user(memory.user, space=memory.space, actor=f"{self._platform.name} bot")
        versions = await user.memory_history(memory.id)
        lease = LEASE if len(claims_of(versions)) < _SOON else _LATER
        now = self._clock()
        if not await user.claim(memory.id, until=now + lease, at=now):
            return False
        # A reminder that was delivered and then reactivated by hand gets a new message id.
        before = sum(version.action == "deliver" for version in versions)
        name = f"reminder:{memory.id}" if not before else f"reminder:{memory.id}:{before + 1}"
        if not await self._was_sent(user, name):
            say = await self._languages.of(self._memory.user(memory.user, space=memory.space))
            text = say("reminder.due", what=memory.text)
            try:
                async with asyncio.timeout(_SENDING):
                    thread = await self._reach(Address(memory.space, memory.user), text, name)
            except StoreError:
                raise
            except Exception as error:
                # Errors of the platform's library too: one failed reminder must not delay those of others. It is due
                # again when the lease ends.
                self._stats.failed(f"a reminder could not be delivered: {error}")
                _log.exception("the reminder %d of %s could not be delivered", memory.id, memory.user)
                return False
            there = self._memory.user(memory.user, space=memory.space, thread=thread)
            at = self._times.sent(Address(memory.space, memory.user, thread).thread_key)
            await there.add("assistant", text, id=name, at=at)
        await user.delivered(memory.id)
        self._stats.reminders += 1
        return True

    @staticmethod
    async def _was_sent(user: UserMemory, name: str) -> bool:
        """Return whether an earlier run sent it and was killed before it marked it as delivered."""
        try:
            await user.message(name, versions=True)
        except NotFound:
            return False
        return True

    async def _reach(self, to: Address, text: str, name: str) -> str | None:
        """Send it to the person's direct chat, or else to the thread where they last wrote. Return the thread."""
        try:
            await self._sender.deliver(to, Answer(text), once=name, tries=_TRIES)
        except PlatformRefused:
            newest = await self._memory.user(to.user, space=to.space).history(1)
            if not newest or is_direct(newest[-1].thread):
                raise
            there = to._replace(thread=newest[-1].thread)
            await self._sender.deliver(there, Answer(text), once=name, tries=_TRIES)
            return newest[-1].thread
        return None
