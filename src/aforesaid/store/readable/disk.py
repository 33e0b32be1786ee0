"""Every call of the operating system that changes or locks a file. Tests put a disk that fails in its place."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from aforesaid.errors import StoreBusy
from aforesaid.store.unfinished import sync_folder

_PRIVATE: Final = 0o600
_BUFFER: Final = 1 << 20


class Disk:
    """The real one."""

    def open(self, path: Path, flags: int) -> int:
        """Open a file, or make one that only its owner can read."""
        return os.open(path, flags | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0), _PRIVATE)

    def write(self, handle: int, data: bytes) -> int:
        return os.write(handle, data)

    def sync(self, handle: int) -> None:
        """Have everything that was written to a file on the disk."""
        if sys.platform == "darwin":
            import fcntl  # noqa: PLC0415

            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
        else:
            os.fsync(handle)

    def keep_rights(self, handle: int, like: os.stat_result) -> None:
        """Give a file the mode and, where that is allowed, the owner of another."""
        if sys.platform != "win32":
            made = os.fstat(handle)
            if (made.st_uid, made.st_gid) != (like.st_uid, like.st_gid):
                with suppress(PermissionError):
                    os.fchown(handle, like.st_uid, like.st_gid)
            os.fchmod(handle, like.st_mode & 0o7777)

    def close(self, handle: int) -> None:
        os.close(handle)

    def replace(self, source: Path, target: Path) -> None:
        """Give a file the name of another, which is gone with that."""
        os.replace(source, target)  # noqa: PTH105 - one call of the system each

    def unlink(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def make_folder(self, path: Path) -> None:
        path.mkdir(mode=0o700, exist_ok=True)

    def sync_folder(self, folder: Path) -> None:
        sync_folder(folder)


def make_folders(disk: Disk, folder: Path) -> None:
    """Make a folder and those above it such that they survive a power cut."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    for place in reversed(missing):
        disk.make_folder(place)
        disk.sync_folder(place.parent)


def replace_file(disk: Disk, target: Path, pieces: Iterable[bytes]) -> None:
    """Put a new file in the place of another, so that there is always the old or the new one.

    `target` is no link. Its mode and owner are kept.
    """
    arriving = target.with_name(f"{target.name}.tmp")
    handle = disk.open(arriving, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        try:
            if target.exists():
                disk.keep_rights(handle, target.stat())
            rest = memoryview(b"".join(pieces))
            while rest:
                rest = rest[disk.write(handle, bytes(rest[:_BUFFER])) :]
            disk.sync(handle)
        finally:
            disk.close(handle)
        disk.replace(arriving, target)
    except BaseException:
        with suppress(OSError):
            disk.unlink(arriving)
        raise
    disk.sync_folder(target.parent)


class Lock:
    """Held until it is let go of, or until the process ends, in whatever way."""

    def __init__(self, path: Path, place: Path) -> None:
        """Take it, or raise StoreBusy."""
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            _take(self._handle)
        except OSError:
            holder = os.read(self._handle, 32).decode(errors="replace").strip()
            os.close(self._handle)
            who = f"process {holder}" if holder.isdecimal() else "another process"
            if holder == str(os.getpid()):
                who = "this process already"
            raise StoreBusy(
                f"{place} is in use by {who}; files can be used by one at a time. Close it there, or use SQLite or "
                "PostgreSQL to share a memory"
            ) from None
        try:
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, str(os.getpid()).encode(), 0)
        except OSError:  # as on a full disk
            self.release()
            raise

    def release(self) -> None:
        """Let go of it. The file stays: removing it could take it away from the next one."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


if sys.platform == "win32":
    import msvcrt

    def _take(handle: int) -> None:
        # Far behind the number of the process, which others may read.
        os.lseek(handle, 1 << 20, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        os.lseek(handle, 0, os.SEEK_SET)
else:
    import fcntl

    def _take(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
