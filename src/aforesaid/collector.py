"""Python's collector of cyclic garbage."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

_paused = False


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the collector of cyclic garbage, for the whole process, while many objects are made that stay.

    It would look at all of them again and again, which takes a quarter of the time of storing a batch, and find nothing
    to free. What runs inside must be bounded and wait for nothing. Pauses are not added up: where the collector is
    paused already, the one who paused it resumes it.
    """
    global _paused  # noqa: PLW0603 - there is one collector
    if not gc.isenabled():
        yield
        return
    gc.disable()
    _paused = True
    try:
        yield
    finally:
        _paused = False
        gc.enable()


def _resume_in_child() -> None:
    if _paused:
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_resume_in_child)
