"""Bringing a copy back, without overwriting anything."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from aforesaid.errors import InvalidInput, NotFound
from aforesaid.store.ephemeral.state import State
from aforesaid.store.journalled import loading
from aforesaid.store.journalled.disk import Disk, translated
from aforesaid.store.journalled.journal import journals_of
from aforesaid.store.journalled.layout import Header, Layout, Snapshot
from aforesaid.store.journalled.lock import Lock


def restore(backup: Layout, target: Layout, *, replace: bool) -> Path | None:
    """Put a copy in the place of a store. What was there is set aside; its new name is returned."""
    disk = Disk()
    if not backup.path.expanduser().exists():
        raise NotFound(f"there is no backup {backup.path}")
    state = State()
    with translated(backup.path, "reading"):
        header = backup.load(lambda name, record: loading.put(state, name, record))
    if header is None:
        raise InvalidInput(f"{backup.path} is no copy of a store")
    there = target.path.expanduser().exists() or bool(journals_of(target.beside))
    if there and not replace:
        raise InvalidInput(f"{target.path} exists already; with --replace it is set aside under another name")
    with translated(target.path, "replacing"):
        target.prepare(disk)
        lock = Lock(target.beside.with_name(target.beside.name + ".lock"), target.path)
        try:
            aside = target.move_aside(disk, label("before-restore")) if there else None
            target.write(disk, Snapshot(loading.finish(state), Header(header.store, 1), None))
        finally:
            lock.release()
    return aside


def label(why: str) -> str:
    """Return what is added to the names of what is set aside."""
    return f"{why}-{datetime.now(UTC).strftime('%Y%m%dT%H%M%S%fZ')}"
