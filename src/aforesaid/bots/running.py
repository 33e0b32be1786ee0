"""Runs a bot: checks the login at the start, reconnects after failures, and stops without losing messages."""

from __future__ import annotations

import asyncio
import logging
import random
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from aforesaid.background import end
from aforesaid.bots.bot_session import BotSession
from aforesaid.bots.contract import Platform
from aforesaid.bots.heartbeat import Heartbeat
from aforesaid.errors import PlatformUnavailable

if TYPE_CHECKING:
    from aforesaid.memory import Memory

_log: Final = logging.getLogger("aforesaid.bots")

FIRST_PAUSE: Final = 1.0
"""Seconds before the first reconnection; the pause doubles with every failure."""
LONGEST_PAUSE: Final = 60.0
"""Maximum seconds between two reconnections."""


async def run(
    memory: Memory,
    platform: Platform,
    *,
    ready: Callable[[str], None] = lambda name: None,  # noqa: ARG005 - for callers that want to know
    session: BotSession | None = None,
    first_pause: float = FIRST_PAUSE,
) -> None:
    """Run a bot until this is cancelled, or until the process receives SIGINT or SIGTERM.

    While it runs, its health is in a file beside the store, which `aforesaid status` reads.

    Raises PlatformRefused when the platform rejects the bot, for example because of a wrong token. While the platform
    cannot be reached, the bot retries with exponential backoff. `ready` is called with the bot's name after each login.
    """
    taking = session or BotSession(memory, platform)
    try:
        async with taking, Heartbeat(memory.location, platform.name, taking.health, memory.loops):
            await _listen_until_stopped(_listen(platform, taking, ready, first_pause))
    finally:
        await platform.close()


async def _listen_until_stopped(listen: Coroutine[None, None, None]) -> None:
    listening = asyncio.create_task(listen, name="aforesaid-listening")
    undo = _stop_on_signals(listening)
    try:
        await listening
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if current is not None and current.cancelling():
            raise
        _log.info("stopping after the answers in progress")
    finally:
        undo()
        if not listening.done():
            await end(listening)


async def _listen(platform: Platform, session: BotSession, ready: Callable[[str], None], first_pause: float) -> None:
    failures = 0
    while True:
        try:
            name = await platform.check()
            session.stats.mark_ok()
            ready(name)
            failures = 0
            # Before new messages are read: these were asked earlier.
            await session.resume()
            await platform.listen(session)
            raise PlatformUnavailable(f"{name} stopped listening")  # noqa: TRY301 - handled like a lost connection
        except PlatformUnavailable as error:
            session.stats.connected = False
            session.stats.reconnections += 1
            session.stats.failed(str(error))
            usual = min(first_pause * 2**failures, LONGEST_PAUSE) * random.uniform(0.5, 1)  # noqa: S311 - no secret
            pause = usual if error.retry_after is None else error.retry_after
            failures += 1
            _log.warning("%s; the next try is in %.0f s", error, pause)
            await asyncio.sleep(pause)


def _stop_on_signals(task: asyncio.Task[None]) -> Callable[[], None]:
    """Cancel a task on SIGINT or SIGTERM. Return a function that removes the handlers."""
    loop = asyncio.get_running_loop()
    set_up: list[signal.Signals] = []
    for each in (signal.SIGINT, signal.SIGTERM):
        # Works in the main thread only, and not on every system; elsewhere the caller cancels.
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(each, task.cancel)
            set_up.append(each)

    def undo() -> None:
        for each in set_up:
            loop.remove_signal_handler(each)

    return undo
