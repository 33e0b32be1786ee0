"""One engine per file and process, whoever asks for it."""

from __future__ import annotations

import atexit
import os
import threading
from pathlib import Path
from typing import Final

import apsw

from recollect.store.sqlite.connection import Options, make_folder, refuse_unsafe_places, translated
from recollect.store.sqlite.engine import Engine

_engines: Final[dict[tuple[Path, str | None], Engine]] = {}
_orphans: Final[list[Engine]] = []
_registry = threading.Lock()


def acquire(path: Path, options: Options) -> Engine:
    """Return the engine of a file, shared by everybody in this process who has it open."""
    path = path.expanduser().absolute()
    refuse_unsafe_places(path.parent.resolve() / path.name)
    with translated(path, "opening"):
        try:
            make_folder(path.parent)
        except OSError as error:
            raise apsw.CantOpenError(str(error)) from error
    path = path.resolve()
    with _registry:
        engine = _engines.get((path, options.vfs))
        if engine is None:
            engine = _engines[path, options.vfs] = Engine(path, options)
        else:
            engine.users += 1
        return engine


def release(engine: Engine) -> None:
    """Give an engine back; the last one to do so stops it. Blocks until it has finished."""
    with _registry:
        engine.users -= 1
        last = engine.users == 0
        if last:
            _engines.pop((engine.path, engine.options.vfs), None)
            if not engine.is_orphan:
                # Within the lock: whoever opens the file again meets it closed, never closing.
                engine.stop()


def _after_fork_in_child() -> None:
    global _registry  # noqa: PLW0603 - whoever held the old lock does not exist here
    _registry = threading.Lock()
    # The parent's threads are not here, and its connections must not be closed from here: they are kept, unused.
    for engine in _engines.values():
        engine.is_orphan = True
        _orphans.append(engine)
    _engines.clear()


def _at_exit() -> None:
    for engine in list(_engines.values()):
        engine.stop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
atexit.register(_at_exit)
