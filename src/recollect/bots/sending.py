"""Sending, with patience: cut to what the platform takes, tried again when it is busy, told when it does not work."""

from __future__ import annotations

import asyncio
import logging
import random
from typing import Final

from recollect.assistant import Answer, Button
from recollect.bots.contract import Address, Platform
from recollect.bots.splitting import split
from recollect.bots.tally import Tally
from recollect.errors import PlatformError, PlatformRefused, PlatformUnavailable

_log: Final = logging.getLogger("recollect.bots")

TRIES: Final = 6
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 60.0


class Sender:
    """Sends answers through a platform."""

    def __init__(self, platform: Platform, tally: Tally) -> None:
        self._platform = platform
        self._tally = tally

    async def send(self, to: Address, answer: Answer, answers: str | None = None) -> bool:
        """Send an answer in as many messages as it takes. False, and told to the operator, if it did not work."""
        place = to._replace(thread=None) if answer.private else to
        try:
            await self.deliver(place, answer, answers if place == to else None)
        except PlatformError as error:
            _log.error("an answer to %s could not be sent: %s", to.user, error)
            self._tally.failed(f"an answer could not be sent: {error}")
            if answer.private and to.thread is not None:
                return await self.send(
                    to, Answer("That is for you alone. Write to me in private first, then ask again.")
                )
            return False
        if place != to:
            await self.send(to, Answer("That is for you alone: I sent it to you in private."), answers)
        return True

    async def deliver(self, to: Address, answer: Answer, answers: str | None = None) -> None:
        """Send an answer, or raise PlatformError."""
        parts = split(answer.text, self._platform.longest)
        for number, part in enumerate(parts, 1):
            buttons = answer.buttons if number == len(parts) else ()
            await self._patiently(to, part, buttons, answers if number == 1 else None)
            self._tally.sent += 1
        if answer.file is not None:
            await self._platform.send_file(to, answer.file)
        self._tally.well()

    async def _patiently(self, to: Address, text: str, buttons: tuple[Button, ...], answers: str | None) -> None:
        for attempt in range(TRIES):
            try:
                await self._platform.send(to, text, buttons, answers=answers)
            except PlatformUnavailable as error:
                if attempt == TRIES - 1:
                    raise
                wanted = error.retry_after
                pause = min(_FIRST_PAUSE * 2**attempt, _LONGEST_PAUSE) * random.uniform(0.5, 1)  # noqa: S311 - no secret
                _log.warning("%s is asked again in a moment: %s", self._platform.name, error)
                await asyncio.sleep(pause if wanted is None else wanted)
            else:
                return
        raise PlatformRefused("never reached")
