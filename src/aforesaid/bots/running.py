"""Runs a bot: its heartbeat, reminders and notices about storage."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import signal
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from aforesaid.background import BackgroundLoop, BackgroundLoops, end
from aforesaid.bots.bot_session import BotSession
from aforesaid.bots.contract import Platform
from aforesaid.domain.report import Component
from aforesaid.errors import PlatformUnavailable
from aforesaid.memory import Memory
from aforesaid.settings.layers import usual_place
from aforesaid.store import locate
from aforesaid.store.locations import file_name

HEARTBEAT_SECONDS: Final = 15.0
"""Seconds between two writes of the file."""
_SILENT: Final = timedelta(seconds=60)
"""A bot is reported as failing when its file is older than this."""
_SUFFIX: Final = ".bot.json"
_ELSEWHERE: Final = ("json:", "files:")


def folder_and_name(location: str | None) -> tuple[Path, str] | None:
    """Return the folder and the name prefix of the heartbeat files of a store; None for a store in memory."""
    where = location or ""
    if where.startswith(("postgresql:", "postgres:")):
        return usual_place(os.environ).parent, "postgresql"
    for scheme in _ELSEWHERE:
        where = where.removeprefix(scheme)
    _, file, address = locate(where or None)
    if address:
        return usual_place(os.environ).parent, file_name(address)
    return None if file is None else (file.expanduser().parent, file.name)


class Heartbeat:
    """Writes the file of one bot every few seconds, and deletes it when the bot stops.

    There is no file for a store without a location, or in memory.
    """

    def __init__(
        self, location: str | None, platform: str, health: Callable[[], Component], loops: BackgroundLoops
    ) -> None:
        place = None if location is None else folder_and_name(location)
        self._path = None if place is None else place[0] / f"{place[1]}.{platform}{_SUFFIX}"
        self._health = health
        self._loop = loops.add(
            BackgroundLoop(f"{platform} heartbeat", self._beat, retry_seconds=HEARTBEAT_SECONDS, log=_log)
        )

    async def __aenter__(self) -> None:
        if self._path is not None:
            self._loop.start()

    async def __aexit__(self, *error: object) -> None:
        await self._loop.stop()
        if self._path is not None:
            await asyncio.to_thread(self._path.unlink, missing_ok=True)

    async def _beat(self) -> float:
        if self._path is not None:
            await asyncio.to_thread(write, self._path, self._health())
        return HEARTBEAT_SECONDS


def write(path: Path, component: Component) -> None:
    note = {
        "name": component.name,
        "status": component.status,
        "process": os.getpid(),
        "written_at": datetime.now(UTC).isoformat(),
        "last_update": None if component.last_update is None else component.last_update.isoformat(),
        "issues": component.issues,
        "facts": component.facts,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(note, ensure_ascii=False), encoding="utf-8")
    draft.replace(path)


def bots_of(location: str | None, now: datetime) -> list[Component]:
    """Return the health of the bots of a store: those that run, and those that were killed."""
    found: list[Component] = []
    folder, name = folder_and_name(location) or (None, "")
    for path in sorted(folder.glob(f"{name}.*{_SUFFIX}")) if folder is not None and folder.is_dir() else ():
        try:
            note = json.loads(path.read_text(encoding="utf-8"))
            written = datetime.fromisoformat(note["written_at"])
            last = None if note["last_update"] is None else datetime.fromisoformat(note["last_update"])
            facts = (("process", str(note["process"])), *((str(what), str(value)) for what, value in note["facts"]))
            issues, status = tuple(map(str, note["issues"])), note["status"]
            if now - written > _SILENT:
                status = "failing"
                issues = (f"no heartbeat since {written:%Y-%m-%d %H:%M} UTC: the bot was killed, or hangs",)
            found.append(Component(str(note["name"]), status, last, issues, facts))
        except (OSError, ValueError, KeyError, TypeError) as error:
            unread = (f"its heartbeat file cannot be read: {error}",)
            found.append(Component(path.name, "failing", None, unread, ()))
    return found


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
            listen = _listen(platform, taking, ready, first_pause)
            listening = asyncio.create_task(listen, name="aforesaid-listening")
            loop, handled = asyncio.get_running_loop(), []
            for each in (signal.SIGINT, signal.SIGTERM):
                # Works in the main thread only, and not on every system; elsewhere the caller cancels.
                with suppress(NotImplementedError, RuntimeError, ValueError):
                    loop.add_signal_handler(each, listening.cancel)
                    handled.append(each)
            try:
                await listening
            except asyncio.CancelledError:
                current = asyncio.current_task()
                if current is not None and current.cancelling():
                    raise
                _log.info("stopping after the answers in progress")
            finally:
                for each in handled:
                    loop.remove_signal_handler(each)
                if not listening.done():
                    await end(listening)
    finally:
        await platform.close()


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
            raise PlatformUnavailable(f"{name} stopped listening")
        except PlatformUnavailable as error:
            session.stats.connected = False
            session.stats.reconnections += 1
            session.stats.failed(str(error))
            usual = min(first_pause * 2**failures, LONGEST_PAUSE) * random.uniform(0.5, 1)  # noqa: S311 - no secret
            pause = usual if error.retry_after is None else error.retry_after
            failures += 1
            _log.warning("%s; the next try is in %.0f s", error, pause)
            await asyncio.sleep(pause)
