"""Calls of a memory from sync and from async code, for memories opened with `open` and with `connect`.

Frameworks have sync and async methods side by side, and some start event loops of their own. A memory opened with
`aforesaid.open` has its own event loop, so it can be called from everywhere. One opened with `aforesaid.connect` lives
on the event loop that opened it, and can only be awaited there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from aforesaid.blocking import unwrapped
from aforesaid.errors import InvalidInput
from aforesaid.memory import Memory, UserMemory

if TYPE_CHECKING:
    from aforesaid import _sync_types as types

T = TypeVar("T")
Target = TypeVar("Target", Memory, UserMemory)

AnyMemory: TypeAlias = "Memory | types.SyncMemory"
"""A memory from `aforesaid.open` or `aforesaid.connect`."""
AnyUser: TypeAlias = "UserMemory | types.SyncUserMemory"
"""The memory of one user: `memory.user(…)` of either."""


class MustBeAwaited(InvalidInput, asyncio.InvalidStateError):
    """A sync method was called for a memory from `aforesaid.connect`.

    It is an InvalidStateError too: LangGraph's async stores raise that for sync calls on their event loop.
    """


class Calls(Generic[Target]):
    """Calls methods of one memory. `target` is its async form."""

    def __init__(self, memory: object, kind: type[Target]) -> None:
        """Raise InvalidInput if it is neither the sync nor the async form of `kind`."""
        target, self._loop = unwrapped(memory)
        if not isinstance(target, kind):
            wanted = {"UserMemory": "memory.user(…)", "Memory": "the memory from aforesaid.open or aforesaid.connect"}
            raise InvalidInput(f"pass {wanted[kind.__name__]}, not {type(memory).__name__}", "memory")
        self.target: Target = target
        self._home: asyncio.AbstractEventLoop | None = None

    def run(self, call: Callable[[Target], Awaitable[T]]) -> T:
        """Call from sync code. Raises MustBeAwaited for a memory that was opened with `connect`."""
        if self._loop is None:
            raise MustBeAwaited(
                "this memory was opened with aforesaid.connect and can only be awaited; for sync calls, open it with "
                "aforesaid.open",
                "memory",
            )
        return self._loop.run(lambda: call(self.target))

    async def wait(self, call: Callable[[Target], Awaitable[T]]) -> T:
        """Call from async code. Raises InvalidInput if the memory lives on another event loop."""
        if self._loop is not None:
            return await self._loop.wait(lambda: call(self.target))
        here = asyncio.get_running_loop()
        self._home = self._home or here
        if self._home is not here:
            raise InvalidInput(
                "this memory was opened with aforesaid.connect on another event loop; to use it from several, open it "
                "with aforesaid.open",
                "memory",
            )
        return await call(self.target)
