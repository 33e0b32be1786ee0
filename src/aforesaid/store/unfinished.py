"""Files and folders that are being written: copies of what people said, under a name that says so until they are whole.

A process that is killed cannot remove what it was writing. So whoever writes holds a lock on it, which ends with the
process, and whoever writes to the same folder next removes what is not locked.
"""

from __future__ import annotations

import glob
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Literal
from uuid import uuid4

from aforesaid.extras import re

if sys.platform != "win32":
    import fcntl

Purpose = Literal["part", "restore"]
_UNFINISHED: Final = re.compile(r".+\.(part|restore)-[0-9a-f]{32}")


@contextmanager
def unfinished(target: Path, purpose: Purpose = "part", *, folder: bool = False) -> Iterator[Path]:
    """Yield the path of a new, empty file or folder beside `target`, for its owner alone, to be filled and renamed.

    What is still there under that name at the end is removed.
    """
    remove_abandoned(target.parent)
    while True:
        path = target.with_name(f"{target.name}.{purpose}-{uuid4().hex}")
        if folder:
            path.mkdir(mode=0o700)
        else:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with _locked(path) as held:
            if held:
                try:
                    yield path
                finally:
                    _remove(path)
                return


def remove_abandoned(folder: Path, name: str = "") -> None:
    """Remove what killed processes were writing in a folder: all of it, or what was to become the file `name`."""
    if sys.platform == "win32":
        return  # it has no such locks; what a killed process was writing stays
    for path in folder.glob(f"{glob.escape(name)}*"):
        if _UNFINISHED.fullmatch(path.name):
            with suppress(OSError), _locked(path) as held:  # another user's, or gone by now
                if held:
                    _remove(path)


@contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Hold the lock of a file or folder; yield False if somebody else does, or if it was removed before it was held."""
    if sys.platform == "win32":
        yield True
        return
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        # Another writer found it abandoned between its creation and its lock.
        yield False
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = os.path.samestat(os.fstat(handle), path.stat())
        except (BlockingIOError, FileNotFoundError):
            held = False
        yield held
    finally:
        os.close(handle)


def write_new(path: Path, data: bytes) -> None:
    """Write a file that has its name only when it is complete and on the disk."""
    with unfinished(path) as arriving:
        with arriving.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        arriving.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable. Windows has no such call and needs none."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
