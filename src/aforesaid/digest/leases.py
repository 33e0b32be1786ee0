"""Leases in the store: at most one process at a time makes the same summary.

A lease is a mark of the store with an owner and an end. Taking one is a compare-and-set, so of two processes that try
at the same moment one gets it. While a process holds a lease, a heartbeat moves its end ahead, however long the work
takes. A process that was killed renews nothing, so its leases end within `LEASE_SECONDS`.
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

from aforesaid.domain.change import PutMark
from aforesaid.domain.checks import now
from aforesaid.errors import SourcesChanged, StoreError
from aforesaid.store import questions

if TYPE_CHECKING:
    from aforesaid.store import Store

_log: Final = logging.getLogger("aforesaid.digest")

LEASE_SECONDS: Final = 30
"""Duration of a lease after its last heartbeat: how long a killed process delays the others.

Clocks of several machines may differ by less than this. If they differ by more, a summary may be made twice; the store
still accepts only one of the two.
"""
_BEATS_PER_LEASE: Final = 3
"""Heartbeats in the duration of a lease, so that one that fails or comes late does not end it."""
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
        lease = _Lease(self._store, _name(subject), self._owner)
        if not await lease.take():
            yield False
            return
        done = asyncio.Event()
        heartbeat = asyncio.create_task(lease.renew_until(done), name="aforesaid-lease")
        try:
            yield True
        finally:
            # The heartbeat is not cancelled: a renewal that is under way must not come after the release.
            done.set()
            await heartbeat
            await lease.release()

    async def wait_until_free(self, *subject: str, seconds: float) -> bool:
        """Wait until nobody holds the lease on a subject, at most for `seconds`. Return whether it is free."""
        name = _name(subject)
        for _ in range(max(1, round(seconds / _POLL_SECONDS))):
            if _free((await self._store.read(questions.Marks())).get(name)):
                return True
            await asyncio.sleep(_POLL_SECONDS)
        return False


class _Lease:
    """One lease that this process takes, renews and releases."""

    def __init__(self, store: Store, name: str, owner: str) -> None:
        self._store = store
        self._name = name
        self._owner = owner
        self._value = ""
        """The mark as this process wrote it last."""

    async def take(self) -> bool:
        """Take the lease; return False where another process has it."""
        before = (await self._store.read(questions.Marks())).get(self._name)
        if not _free(before):
            return False
        try:
            await self._put(self._until(), only_if=before)
        except SourcesChanged:
            return False
        return True

    async def renew_until(self, done: asyncio.Event) -> None:
        """Move the end of the lease ahead, several times during its duration, until `done` is set or it was lost."""
        while True:
            try:
                async with asyncio.timeout(LEASE_SECONDS / _BEATS_PER_LEASE):
                    await done.wait()
            except TimeoutError:
                pass
            else:
                return
            try:
                await self._put(self._until(), only_if=self._value)
            except SourcesChanged:
                # This process stood still for longer than its lease, and another one took it.
                return
            except StoreError as error:
                _log.warning("a lease could not be renewed; it is tried again: %s", error)

    async def release(self) -> None:
        """End the lease. A failure is logged: the lease then ends by itself."""
        try:
            await self._put(None, only_if=self._value)
        except SourcesChanged:
            _log.warning(
                "a lease of %g s ended before the summary was made; another process may have made it too", LEASE_SECONDS
            )
        except StoreError as error:
            _log.warning("a lease could not be released and ends by itself within %g s: %s", LEASE_SECONDS, error)

    async def _put(self, value: str | None, *, only_if: str | None) -> None:
        await self._store.apply([PutMark(self._name, value, only_if=only_if)])
        self._value = value or ""

    def _until(self) -> str:
        return json.dumps({"owner": self._owner, "until": now() + round(LEASE_SECONDS * _MICROSECONDS)})


def _name(subject: tuple[str, ...]) -> str:
    return f"lease {blake2b(chr(10).join(subject).encode(), digest_size=16).hexdigest()}"


def _free(value: str | None) -> bool:
    return value is None or json.loads(value)["until"] <= now()
