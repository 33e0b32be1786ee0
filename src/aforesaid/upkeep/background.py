"""Work that goes on in the background: a moment after it is asked for, and again later when it failed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from aforesaid.errors import AforesaidError
from aforesaid.tasks import end
from aforesaid.upkeep.part import Done

_LOG: Final = logging.getLogger("aforesaid.upkeep")
_LONGEST_PAUSE_SECONDS: Final = 60.0


class Background:
    """Runs one piece of work whenever it is woken. What is due is derived from what is stored, so nothing is queued."""

    def __init__(
        self,
        what: str,
        run: Callable[[], Awaitable[Done]],
        debounce_seconds: float,
        log: logging.Logger = _LOG,
    ) -> None:
        self._what = what
        self._log = log
        self._run = run
        self._debounce = debounce_seconds
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.error: str | None = None
        """Why the last run stopped before its end."""

    def wake(self) -> None:
        """Say that there is something to do. It is done in a moment, without anybody waiting for it."""
        self._woken.set()
        if self._task is None:
            self._task = asyncio.create_task(self._work(), name=f"aforesaid-{self._what}")

    async def stop(self) -> None:
        """Stop. What is not done yet is done by whoever opens the store next."""
        await end(self._task)
        self._task = None

    async def _work(self) -> None:
        pause = self._debounce
        while True:
            await self._woken.wait()
            await asyncio.sleep(pause)
            self._woken.clear()
            try:
                self.error = (await self._run()).error
            except AforesaidError as error:
                self.error = str(error)
            if self.error is None:
                pause = self._debounce
            else:
                # The messages wait in the log; asking a model that is down again and again would help nobody.
                self._log.warning("%s failed and is tried again later: %s", self._what, self.error)
                pause = min(max(pause * 4, 1.0), _LONGEST_PAUSE_SECONDS)
                self._woken.set()
