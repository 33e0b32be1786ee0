"""Leases in the store: at most one process at a time makes the same summary.

A lease is a mark of the store with an owner and an end. Taking one is a compare-and-set, so of two processes that try
at the same moment one gets it. A process that dies leaves its lease behind; it counts until its end.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from aforesaid.domain.clock import now
from aforesaid.domain.retention import PutMark
from aforesaid.errors import SourcesChanged, StoreError

if TYPE_CHECKING:
    from aforesaid.store import Store

_log: Final = logging.getLogger("aforesaid.digest")

LEASE_SECONDS: Final = 300
"""Longer than a model may take for one day; a process that died delays the others by no more."""
_POLL_SECONDS: Final = 0.25
_MICROSECONDS: Final = 1_000_000


class Leases:
    """The leases of one process on one store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._owner = uuid4().hex

    @asynccontextmanager
    async def hold(self, *subject: str) -> AsyncIterator[bool]:
        """Hold the lease on a subject during the block. Yields False, without waiting, where another process has it."""
        name = _name(subject)
        value = json.dumps({"owner": self._owner, "until": now() + LEASE_SECONDS * _MICROSECONDS})
        taken = await self._take(name, value)
        try:
            yield taken
        finally:
            if taken:
                await self._release(name, value)

    async def wait_until_free(self, *subject: str, seconds: float) -> None:
        """Return when nobody holds the lease on a subject, or after so many seconds."""
        name = _name(subject)
        for _ in range(max(1, round(seconds / _POLL_SECONDS))):
            if _free((await self._store.marks()).get(name)):
                return
            await asyncio.sleep(_POLL_SECONDS)

    async def _take(self, name: str, value: str) -> bool:
        before = (await self._store.marks()).get(name)
        if not _free(before):
            return False
        try:
            await self._store.apply([PutMark(name, value, only_if=before)])
        except SourcesChanged:
            return False
        return True

    async def _release(self, name: str, value: str) -> None:
        try:
            await self._store.apply([PutMark(name, None, only_if=value)])
        except SourcesChanged:
            _log.warning(
                "a summary took longer than its lease of %d s; another process may have made it too", LEASE_SECONDS
            )
        except StoreError as error:
            _log.warning("a lease could not be released and ends by itself within %d s: %s", LEASE_SECONDS, error)


def _name(subject: tuple[str, ...]) -> str:
    return f"lease {blake2b(chr(10).join(subject).encode(), digest_size=16).hexdigest()}"


def _free(value: str | None) -> bool:
    return value is None or json.loads(value)["until"] <= now()
