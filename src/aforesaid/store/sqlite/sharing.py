"""One engine per file and process, whoever asks for it."""

from __future__ import annotations

import atexit
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from aforesaid.errors import StoreRefused
from aforesaid.store.sqlite.connection import Identity, Options, identity, make_folder, refuse_unsafe_places, translated
from aforesaid.store.sqlite.engine import Engine
from aforesaid.store.sqlite.log_check import refuse_damaged_log

Key: TypeAlias = tuple[Path, str | None]


@dataclass(slots=True)
class _Slot:
    """The engine of one file, and the lock of those who open and close it. Other files do not wait for them."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    engine: Engine | None = None


_slots: Final[dict[Key, _Slot]] = {}
_orphans: Final[list[Engine]] = []
_inherited: Final[set[Identity]] = set()
"""Files that were open when this process was forked."""


def acquire(path: Path, options: Options) -> Engine:
    """Return the engine of a file, shared by everybody in this process who has it open."""
    with translated(path, "opening"):
        path = path.expanduser().absolute().resolve()
        refuse_unsafe_places(path)
        make_folder(path.parent)
    if identity(path) in _inherited:
        raise StoreRefused(
            f"{path} was open when this process was forked, and SQLite cannot tell the two apart; open it only after "
            "forking, or start processes with multiprocessing's 'spawn' method"
        )
    slot = _slots.setdefault((path, options.vfs), _Slot())
    with slot.lock:
        engine = slot.engine
        # An engine whose file was removed or replaced is left to those who still hold it.
        if engine is None or not engine.holds_its_file:
            with translated(path, "opening"):
                refuse_damaged_log(path)
            engine = slot.engine = Engine(path, options)
        else:
            engine.users += 1
        return engine


def release(engine: Engine) -> None:
    """Give an engine back; the last one to do so stops it. Blocks until it has finished."""
    if engine.is_orphan:
        return
    slot = _slots[engine.path, engine.options.vfs]
    with slot.lock:
        engine.users -= 1
        if engine.users == 0:
            if slot.engine is engine:
                slot.engine = None
            # Within the lock: whoever opens the file again meets it closed, never closing.
            engine.stop()


def _after_fork_in_child() -> None:
    # The parent's threads are not here, and its connections must not be closed from here: they are kept, unused.
    for slot in _slots.values():
        if slot.engine is not None:
            slot.engine.is_orphan = True
            _orphans.append(slot.engine)
            _inherited.add(slot.engine.identity)
    _slots.clear()


def _at_exit() -> None:
    for slot in list(_slots.values()):
        if slot.engine is not None:
            slot.engine.stop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
atexit.register(_at_exit)
