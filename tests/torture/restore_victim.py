"""A process that makes or restores a backup, and kills itself before one of its calls that change a file."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any, Final

import apsw

from aforesaid.store import Store, open_store, restore_store
from aforesaid.store.attachments import Attachments, attaching, folder_of
from torture.zygote import Tell

CHANGING: Final = frozenset({
    "open", "write", "pwrite", "close", "fsync", "ftruncate", "truncate", "fchmod", "fchown", "chmod", "chown", "utime",
    "link", "symlink", "rename", "replace", "unlink", "remove", "mkdir", "rmdir", "fcntl", "flock",
})  # fmt: skip
"""Functions of the operating system that may change a file. Being killed before any other call makes no difference."""
_NAME: Final = "deadly"


class Countdown:
    """Counts calls, and kills the process before the one with the number `fatal`; 0 kills nobody."""

    def __init__(self, fatal: int) -> None:
        self.fatal = fatal
        self.calls = 0

    def tick(self) -> None:
        """Count a call that is about to be made."""
        self.calls += 1
        if self.calls == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch_python(self, _frame: FrameType, event: str, called: Any) -> None:  # noqa: ANN401 - as profilers are called
        """Count calls of Python code to the operating system. For `sys.setprofile`."""
        if event == "c_call" and called.__module__ in {"posix", "fcntl"} and called.__name__ in CHANGING:
            self.tick()


class DeadlyDisk(apsw.VFS):
    """The file system as SQLite sees it. SQLite makes its calls in C, where no profiler sees them."""

    def __init__(self, countdown: Countdown) -> None:
        super().__init__(_NAME, "unix", makedefault=True)
        self._countdown = countdown

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        self._countdown.tick()
        return _DeadlyFile(self._countdown, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: FBT001, N802 - SQLite's signature
        self._countdown.tick()
        super().xDelete(filename, syncdir)


class _DeadlyFile(apsw.VFSFile):
    def __init__(self, countdown: Countdown, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        self._countdown = countdown

    def xWrite(self, data: object, offset: int) -> None:  # noqa: N802
        self._countdown.tick()
        super().xWrite(bytes(data), offset)  # type: ignore[call-overload]

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._countdown.tick()
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._countdown.tick()
        super().xSync(flags)

    def xClose(self) -> None:  # noqa: N802
        self._countdown.tick()
        super().xClose()


def restore_until_killed(tell: Tell, options: dict[str, Any]) -> None:
    """Restore a backup over a store. The process is killed before its call with the number `fatal`."""
    countdown = Countdown(options["fatal"])
    disk = DeadlyDisk(countdown)
    threading.setprofile(countdown.watch_python)
    sys.setprofile(countdown.watch_python)
    try:
        restore_store(Path(options["backup"]), options["place"], replace=True)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        disk.unregister()
    tell(["restored", countdown.calls])


async def with_attachments(place: str) -> Store:
    """Open a store together with the attachments beside it."""
    return attaching(await open_store(place), Attachments(folder_of(Path(place.partition(":")[2]))))


def back_up_until_killed(tell: Tell, options: dict[str, Any]) -> None:
    """Back a store up. The process is killed before its call with the number `fatal`."""

    async def back_up() -> None:
        store = await with_attachments(options["place"])
        countdown.calls, countdown.fatal = 0, options["fatal"]
        await store.backup(Path(options["backup"]))
        countdown.fatal = 0
        tell(["backed up", countdown.calls])
        await store.close()

    countdown = Countdown(0)
    disk = DeadlyDisk(countdown)
    threading.setprofile(countdown.watch_python)
    try:
        asyncio.run(back_up())
    finally:
        threading.setprofile(None)
        disk.unregister()
