"""A small file beside the store with the health of a bot, for `aforesaid status` in another process."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from aforesaid.background import BackgroundLoop, BackgroundLoops
from aforesaid.domain.report import Component
from aforesaid.settings.layers import usual_place
from aforesaid.store import sqlite_path
from aforesaid.store.database_identity import file_name
from aforesaid.store.locations import address_of

_log: Final = logging.getLogger("aforesaid.bots")

EVERY: Final = 15.0
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
    if (address := address_of(where or None)) is not None:
        return usual_place(os.environ).parent, file_name(address)
    file = sqlite_path(where or None)
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
        self._loop = loops.add(BackgroundLoop(f"{platform} heartbeat", self._beat, retry_seconds=EVERY, log=_log))

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
        return EVERY


def write(path: Path, component: Component) -> None:
    """Write a heartbeat file atomically."""
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
    place = folder_and_name(location)
    return [] if place is None else list(_read(*place, now))


def _read(folder: Path, name: str, now: datetime) -> Iterator[Component]:
    for path in sorted(folder.glob(f"{name}.*{_SUFFIX}")) if folder.is_dir() else ():
        try:
            note = json.loads(path.read_text(encoding="utf-8"))
            written = datetime.fromisoformat(note["written_at"])
            last = None if note["last_update"] is None else datetime.fromisoformat(note["last_update"])
            facts = (("process", str(note["process"])), *((str(what), str(value)) for what, value in note["facts"]))
            issues, status = tuple(map(str, note["issues"])), note["status"]
            if now - written > _SILENT:
                status = "failing"
                issues = (f"no heartbeat since {written:%Y-%m-%d %H:%M} UTC: the bot was killed, or hangs",)
            yield Component(str(note["name"]), status, last, issues, facts)
        except (OSError, ValueError, KeyError, TypeError) as error:
            yield Component(path.name, "failing", None, (f"its heartbeat file cannot be read: {error}",), ())
