"""One process at a time: a file that says who uses the others."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from aforesaid.errors import StoreBusy


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
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, str(os.getpid()).encode(), 0)

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
