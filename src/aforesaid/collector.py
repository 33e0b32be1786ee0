"""Python's collector of cyclic garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the collector of cyclic garbage, for the whole process, while many objects are made that stay.

    It would look at all of them again and again, which takes a quarter of the time of storing a batch, and find nothing
    to free. What runs inside must be bounded and wait for nothing. Pauses are not added up: where the collector is
    paused already, the one who paused it resumes it.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
