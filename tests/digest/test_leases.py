"""Leases of processes that live, and of processes that were killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from aforesaid.digest.executor import Leases
from aforesaid.domain.checks import now
from aforesaid.settings import Settings
from aforesaid.store import Store, open_store
from aforesaid.store.people import Marks
from digesting import MovingClock, remembering

pytestmark = pytest.mark.req("G7")
DAY = ("day", "guild", "2026-03-01")
HOLDS_A_LEASE = """
import asyncio, sys
from aforesaid.digest import executor
from aforesaid.store import open_store
executor.LEASE_SECONDS = 3
async def main():
    async with executor.Leases(await open_store(sys.argv[1])).hold(*sys.argv[2:]) as taken:
        print(taken, flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""


@asynccontextmanager
async def another_process(path: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process that holds the lease on a day until it is killed."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLDS_A_LEASE, str(path), *DAY, stdout=asyncio.subprocess.PIPE, env=dict(os.environ)
    )
    try:
        assert child.stdout is not None
        assert await child.stdout.readline() == b"True\n"
        yield child
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


async def end_of(store: Store) -> int:
    """Return when the only lease ends."""
    (value,) = (await store.read(Marks())).values()
    return int(json.loads(value)["until"])


async def test_a_lease_is_renewed_while_its_process_lives_and_ends_soon_after_it_was_killed(tmp_path: Path) -> None:
    store = await open_store(tmp_path / "memory.db")
    async with another_process(tmp_path / "memory.db") as child:
        first = await end_of(store)
        while await end_of(store) <= first:
            await asyncio.sleep(0.02)
        async with Leases(store).hold(*DAY) as taken:
            assert not taken
        child.send_signal(signal.SIGKILL)
        await child.wait()
        assert await Leases(store).wait_until_free(*DAY, seconds=60)
        async with Leases(store).hold(*DAY) as taken:
            assert taken
    assert await store.read(Marks()) == {}
    await store.close()


async def test_a_day_is_summarised_although_the_process_that_began_it_was_killed(tmp_path: Path) -> None:
    clock = MovingClock()
    clock.time = datetime(2026, 3, 1, 9, tzinfo=UTC)
    where, settings = str(tmp_path / "memory.db"), Settings(background=False)
    async with remembering(where, "community", clock=clock, settings=settings) as memory:
        ann = memory.user("ann", space="guild", thread="general")
        await ann.add("user", "I planted three apple trees in my garden in Potsdam.", at=clock.time)
        async with another_process(tmp_path / "memory.db") as child:
            child.send_signal(signal.SIGKILL)
            await child.wait()
            summary = await ann.day()
    assert summary is not None


async def test_a_lease_lasts_less_than_a_minute_without_a_heartbeat(store: Store) -> None:
    async with Leases(store).hold(*DAY) as taken:
        assert taken
        assert await end_of(store) - now() <= 60_000_000
