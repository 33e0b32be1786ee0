"""Fault-injecting disks for file stores: one counts, one fails at a call, one kills the process at a call."""

from __future__ import annotations

import errno
import os
import signal
from collections import Counter
from pathlib import Path

from aforesaid.store.readable.disk import Disk


class CountingDisk(Disk):
    """Decides before every system call what happens to it."""

    def __init__(self) -> None:
        self.calls = 0
        self.kinds: Counter[str] = Counter()
        self.bytes = 0

    def before(self, kind: str) -> None:
        self.calls += 1
        self.kinds[kind] += 1

    def open(self, path: Path, flags: int) -> int:
        self.before("open")
        return super().open(path, flags)

    def write(self, handle: int, data: bytes) -> int:
        self.before("write")
        self.bytes += len(data)
        return super().write(handle, data)

    def sync(self, handle: int) -> None:
        self.before("sync")
        super().sync(handle)

    def keep_rights(self, handle: int, like: os.stat_result) -> None:
        self.before("rights")
        super().keep_rights(handle, like)

    def close(self, handle: int) -> None:
        super().close(handle)  # a failing close would leave the test with an open file
        self.before("close")

    def replace(self, source: Path, target: Path) -> None:
        self.before("replace")
        super().replace(source, target)

    def unlink(self, path: Path) -> None:
        self.before("unlink")
        super().unlink(path)

    def make_folder(self, path: Path) -> None:
        self.before("folder")
        super().make_folder(path)

    def sync_folder(self, folder: Path) -> None:
        self.before("sync folder")
        super().sync_folder(folder)


class FailingDisk(CountingDisk):
    """Fails at the n-th call, and perhaps at the next few. Of a write, some bytes may get through before."""

    def __init__(self, first: int, number: int = errno.EIO, in_a_row: int = 1) -> None:
        super().__init__()
        self._wanted = range(first, first + in_a_row)
        self._number = number
        self.raised = 0

    def before(self, kind: str) -> None:
        super().before(kind)
        if self.calls in self._wanted:
            self.raised += 1
            raise OSError(self._number, os.strerror(self._number))

    def write(self, handle: int, data: bytes) -> int:
        try:
            return super().write(handle, data)
        except OSError:
            os.write(handle, data[: len(data) // 2])
            raise


class DeadlyDisk(CountingDisk):
    """Kills the process at the n-th call. Of a write, some bytes may get through before."""

    def __init__(self, fatal: int) -> None:
        super().__init__()
        self._fatal = fatal

    def before(self, kind: str) -> None:
        super().before(kind)
        if self.calls == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def write(self, handle: int, data: bytes) -> int:
        if self.calls + 1 == self._fatal:
            os.write(handle, data[: len(data) // 2])
        return super().write(handle, data)
