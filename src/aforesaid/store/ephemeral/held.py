"""What every read of the store in memory needs: the state, and the lock around it."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

from aforesaid.errors import StoreClosed
from aforesaid.store.ephemeral.state import State

P = ParamSpec("P")
S = TypeVar("S", bound="Held")
T = TypeVar("T")


class Held:
    """A state in memory."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._state = State()
        self._lock = threading.RLock()
        self._closed = False

    @property
    def _open(self) -> State:
        if self._closed:
            raise StoreClosed("this store in memory has been closed")
        return self._state


def locked(
    read: Callable[Concatenate[S, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Keep other threads from changing what is being read. Reads never wait for anything while they hold the lock."""

    @functools.wraps(read)
    async def reading(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._lock:
            return await read(self, *args, **kwargs)

    return reading
