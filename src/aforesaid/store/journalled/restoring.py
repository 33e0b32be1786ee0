"""Restoring a backup so that a crash at any moment leaves the old store or the new one.

The old files get a second name first (they are "set aside"). Then a marker is written, the new files are written in
place, and the marker is removed. Whoever finds the marker when opening the store puts the old files back.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from aforesaid.errors import InvalidInput
from aforesaid.store.ephemeral.state import State
from aforesaid.store.journalled import loading
from aforesaid.store.journalled.disk import NO_LINKS, Disk, Lock, make_folders, replace_file, translated
from aforesaid.store.journalled.journal import journals_of
from aforesaid.store.journalled.layout import Header, Layout, Snapshot

_MARKER: Final = ".restoring"


def restore(backup: Layout, target: Layout, *, replace: bool) -> Path | None:
    """Replace a store with a backup. Return where the old store is set aside, or None where there was none."""
    disk = Disk()
    if not backup.path.expanduser().exists():
        raise InvalidInput(f"there is no backup at {backup.path}; nothing was changed")
    state = State()
    with translated(backup.path, "reading"):
        header = backup.load(lambda name, record: loading.put(state, name, record))
    if header is None:
        raise InvalidInput(f"{backup.path} is not a backup of a store")
    if not replace and (target.path.expanduser().exists() or journals_of(target.beside)):
        raise InvalidInput(f"{target.path} exists already; with --replace it is set aside under another name")
    snapshot = Snapshot(loading.finish(state), Header(header.store, 1), None)
    with translated(target.path, "replacing"):
        target.prepare(disk)
        lock = Lock(target.beside.with_name(target.beside.name + ".lock"), target.path)
        try:
            undo_interrupted_restore(disk, target)
            return _replace(disk, target, snapshot)
        finally:
            lock.release()


def undo_interrupted_restore(disk: Disk, layout: Layout) -> None:
    """Put the old files back if a restore was interrupted. The caller holds the lock of the store."""
    marker = _marker(layout)
    if not marker.exists():
        return
    names = [tuple(pair) for pair in json.loads(marker.read_text(encoding="utf-8"))]
    base = layout.beside.parent
    for path in _files(layout):
        disk.unlink(path)
    for name, aside in names:
        make_folders(disk, (base / name).parent)
        _give_second_name(disk, base / aside, base / name)
    for folder in {(base / name).parent for name, _ in names}:
        disk.sync_folder(folder)
    disk.unlink(marker)
    disk.sync_folder(base)
    with suppress(OSError):  # leftovers of the attempt; the store itself is whole again
        for _, aside in names:
            disk.unlink(base / aside)


def label(why: str) -> str:
    """Return what is added to the names of files that are set aside: the reason and the time."""
    return f"{why}-{datetime.now(UTC).strftime('%Y%m%dT%H%M%S%fZ')}"


def _replace(disk: Disk, target: Layout, snapshot: Snapshot) -> Path | None:
    stamp = label("before-restore")
    old = _files(target)
    base = target.beside.parent
    names = []
    for path in old:
        aside = target.aside(path, stamp)
        make_folders(disk, aside.parent)
        _give_second_name(disk, path, aside)
        names.append((path.relative_to(base).as_posix(), aside.relative_to(base).as_posix()))
    for folder in {(base / aside).parent for _, aside in names}:
        disk.sync_folder(folder)
    marker = _marker(target)
    replace_file(disk, marker, [json.dumps(names).encode()])
    try:
        for path in old:
            disk.unlink(path)
        target.write(disk, snapshot)
        disk.unlink(marker)
    except BaseException:
        with suppress(OSError):  # the marker is still there, and the next open tries again
            undo_interrupted_restore(disk, target)
        raise
    disk.sync_folder(base)
    return target.aside(target.main, stamp) if old else None


def _files(layout: Layout) -> list[Path]:
    return [path for path in (*journals_of(layout.beside).values(), *layout.files()) if path.exists()]


def _marker(layout: Layout) -> Path:
    return layout.beside.with_name(layout.beside.name + _MARKER)


def _give_second_name(disk: Disk, path: Path, name: Path) -> None:
    """Link a file under another name, or copy it where the file system has no links."""
    disk.unlink(name)
    try:
        disk.link(path, name)
    except (OSError, NotImplementedError) as error:
        if isinstance(error, OSError) and error.errno not in NO_LINKS:
            raise
        replace_file(disk, name, [path.read_bytes()])
        os.utime(name, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
