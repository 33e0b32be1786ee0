"""Sends answers: splits them to the platform's maximum length, retries when it is busy, and reports failures."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from aforesaid.assistant import Answer, Button
from aforesaid.bots.contract import Address, Platform
from aforesaid.bots.splitting import split
from aforesaid.bots.stats import BotStats
from aforesaid.errors import PlatformError, PlatformUnavailable

_log: Final = logging.getLogger("aforesaid.bots")

TRIES: Final = 12
"""Maximum number of attempts per message: with their pauses about five minutes."""
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 60.0


class Sender:
    """Sends answers through a platform."""

    def __init__(self, platform: Platform, stats: BotStats) -> None:
        self._platform = platform
        self._stats = stats

    async def send(
        self,
        to: Address,
        answer: Answer,
        answers: str | None = None,
        *,
        once: str | None = None,
        skip: int = 0,
        sent: Callable[[int], Awaitable[None]] | None = None,
    ) -> bool:
        """Send an answer in as many messages as needed. Return False if the platform could not be reached.

        A message that the platform refuses is logged and not sent again. `once` and `skip` are as in `deliver`;
        `sent` is called after each part but the last, with the number of parts sent.
        """
        place = to._replace(thread=None) if answer.private else to
        try:
            await self.deliver(place, answer, answers if place == to else None, once=once, skip=skip, sent=sent)
        except PlatformError as error:
            _log.error("an answer to %s could not be sent: %s", to.user, error)
            self._stats.failed(f"an answer could not be sent: {error}")
            if isinstance(error, PlatformUnavailable):
                return False
            if answer.private and to.thread is not None:
                alone = Answer("That is for you alone. Write to me in private first, then ask again.")
                return await self.send(to, alone)
            return True
        if place != to:
            await self.send(to, Answer("That is for you alone: I sent it to you in private."), answers)
        return True

    async def deliver(
        self,
        to: Address,
        answer: Answer,
        answers: str | None = None,
        *,
        once: str | None = None,
        skip: int = 0,
        sent: Callable[[int], Awaitable[None]] | None = None,
        tries: int = TRIES,
    ) -> None:
        """Send an answer, or raise PlatformError.

        `once` is an idempotency key for platforms that detect duplicates. The first `skip` parts were sent before.
        """
        parts = split(answer.text, self._platform.longest)
        for number, part in enumerate(parts, 1):
            if number <= skip:
                continue
            last = number == len(parts)
            message = _Message(
                to,
                part,
                answer.buttons if last else (),
                answers if number == 1 else None,
                None if once is None else f"{once}/{number}",
            )
            await self._patiently(message, tries)
            self._stats.sent += 1
            if sent is not None and not last:
                await sent(number)
        if answer.file is not None:
            await self._platform.send_file(to, answer.file)
        self._stats.mark_ok()

    async def _patiently(self, message: _Message, tries: int) -> None:
        to, text, buttons, answers, once = message
        for attempt in range(tries):
            try:
                await self._platform.send(to, text, buttons, answers=answers, once=once)
            except PlatformUnavailable as error:
                if attempt == tries - 1:
                    raise
                wanted = error.retry_after
                pause = min(_FIRST_PAUSE * 2**attempt, _LONGEST_PAUSE) * random.uniform(0.5, 1)  # noqa: S311 - no secret
                _log.warning("sending to %s is retried: %s", self._platform.name, error)
                await asyncio.sleep(pause if wanted is None else wanted)
            else:
                return


class _Message(NamedTuple):
    to: Address
    text: str
    buttons: tuple[Button, ...]
    answers: str | None
    once: str | None
