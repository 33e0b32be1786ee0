"""Calls, failures, cache hits and latencies of every operation."""

from __future__ import annotations

import asyncio
import inspect
import logging
from pathlib import Path

import pytest

import aforesaid
from aforesaid.domain.receipt import Receipt
from aforesaid.errors import InvalidInput, NotFound, StoreFull
from aforesaid.memory import Memory, UserMemory
from aforesaid.models.embed import DeterministicEmbedder
from aforesaid.store.operations import Change
from aforesaid.store.people import Users
from aforesaid.telemetry import OWN, SECONDS, Key, Metrics, OperationMetrics, ThrottledLog, between, unmeasured
from intercepting import intercept

DELEGATES = {"ingest_message", "get_memories", "close", "health"}
"""These are made of operations that are counted, or are asked about them."""


@pytest.mark.req("B16")
@pytest.mark.parametrize("owner", [Memory, UserMemory])
def test_every_operation_is_counted_under_its_name(owner: type) -> None:
    operations = [
        (name, member)
        for name, member in inspect.getmembers(owner, inspect.iscoroutinefunction)
        if not name.startswith("_") and name not in DELEGATES
    ]
    assert operations
    for name, member in operations:
        assert hasattr(member, "__wrapped__"), f"{name} is not counted"
        assert inspect.getclosurevars(member).nonlocals["operation"] in {name, f"list_{name}"}


@pytest.mark.req("B16")
async def test_calls_failures_and_latencies_are_counted(location: str) -> None:
    async with aforesaid.connect(location, profile="session") as memory:
        ann = memory.user("ann")
        for number in range(3):
            await ann.add("user", f"hello {number}")
        await ann.search("hello")
        await ann.context("hello?")
        with pytest.raises(InvalidInput):
            await ann.add("nobody", "hello")  # type: ignore[arg-type]
        with pytest.raises(NotFound):
            await ann.summary_messages(17)
        counted = memory.metrics.snapshot()
    added = counted[Key("add", OWN)]
    assert (added.calls, dict(added.failures)) == (4, {"invalid": 1})
    assert sum(added.latencies) == 4
    assert added.seconds > 0
    assert added.error_rate == 0.0, "what a caller does wrong says nothing about the memory"
    assert counted[Key("search", OWN)].calls == 1
    assert counted[Key("context", OWN)].calls == 1
    assert dict(counted[Key("summary_messages", OWN)].failures) == {"invalid": 1}


@pytest.mark.req("B16")
async def test_the_embedders_calls_are_counted_and_what_it_knew_already(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db", profile="session", embedder="deterministic") as memory:
        ann = memory.user("ann")
        await ann.add("user", "the same words")
        await memory.upkeep()
        await ann.add("user", "the same words")
        await memory.upkeep()
        counted = memory.metrics.snapshot()[Key("embed", DeterministicEmbedder().name)]
        assert counted.calls > 0
        assert counted.cache_hits == 1
        assert memory.metrics.snapshot()[Key("embedding", OWN)].calls >= 2


def test_counts_since_an_earlier_look() -> None:
    metrics = Metrics()
    metrics.called("search", OWN, 0.002)
    before = metrics.snapshot()
    metrics.called("search", OWN, 0.2, failure="store")
    metrics.called("search", OWN, 90)
    metrics.cache_hit("portrait")
    later = between(before, metrics.snapshot())
    search = later[Key("search", OWN)]
    assert (search.calls, search.failed, search.error_rate) == (2, 1, 0.5)
    assert search.within(0.5) == 0.25
    assert search.within(0.95) == float("inf")
    assert search.mean == pytest.approx(45.1)
    assert later[Key("portrait", OWN)].cache_hits == 1
    assert between(metrics.snapshot(), metrics.snapshot()) == {}
    assert OperationMetrics().within(0.95) == 0.0
    assert list(SECONDS) == sorted(SECONDS)


async def test_what_fails_is_written_down_once_in_a_while(location: str, caplog: pytest.LogCaptureFixture) -> None:
    async with aforesaid.connect(location) as memory:
        ann = memory.user("ann")

        async def full(changes: list[Change], *_: object) -> Receipt:
            del changes
            raise StoreFull("no room is left on the device")

        memory.store.apply = full  # type: ignore[method-assign, assignment]
        with caplog.at_level(logging.WARNING, "aforesaid.errors"):
            for _ in range(5):
                with pytest.raises(StoreFull):
                    await ann.add("user", "a secret")
        counted = memory.metrics.snapshot()[Key("add", OWN)]
    assert dict(counted.failures) == {"store": 5}
    assert counted.error_rate == 1.0
    told = [record.getMessage() for record in caplog.records if record.name == "aforesaid.errors"]
    assert told == ["add failed: StoreFull: no room is left on the device"]


def test_the_next_line_says_how_many_were_left_out(caplog: pytest.LogCaptureFixture) -> None:
    time = 0.0
    quiet = ThrottledLog(10, lambda: time)
    log = logging.getLogger("aforesaid.errors")
    for time in (0.0, 1.0, 9.0, 10.0, 21.0):  # noqa: B007 - the clock reads it
        quiet.warn(log, "add", "add failed")
    assert [record.getMessage() for record in caplog.records] == [
        "add failed",
        "add failed (2 similar warnings were skipped)",
        "add failed",
    ]


async def test_slow_operations_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with aforesaid.connect(tmp_path / "memory.db") as memory:
        memory.metrics.slow_seconds = 0.0
        with caplog.at_level(logging.WARNING, "aforesaid.performance"):
            await memory.stats()
        memory.metrics.slow_seconds = float("inf")
        await memory.stats()
    told = [record.getMessage() for record in caplog.records if record.name == "aforesaid.performance"]
    assert len(told) == 1
    assert told[0].startswith("stats took ")


async def test_what_nobody_asked_for_is_not_measured(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with aforesaid.connect(tmp_path / "memory.db") as memory:
        memory.metrics.slow_seconds = 0.0
        go_on = asyncio.Event()

        async def later() -> None:
            await go_on.wait()
            await memory.activity()

        with caplog.at_level(logging.WARNING, "aforesaid.performance"):
            with unmeasured():
                await memory.stats()
                memory.metrics.cache_hit("search")
                task = asyncio.create_task(later())
            before = memory.metrics.snapshot()
            go_on.set()
            await task
        assert before == {}
        assert set(memory.metrics.snapshot()) == {Key("activity", OWN)}, "a task that outlives the block counts again"
    assert [record.getMessage().split()[0] for record in caplog.records] == ["activity"]


async def test_a_caller_that_gives_up_is_counted_as_such(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db") as memory:
        started = asyncio.Event()

        async def never(*_: object) -> None:
            started.set()
            await asyncio.Event().wait()

        intercept(memory.store, Users, never)
        asking = asyncio.create_task(memory.users())
        await started.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert dict(memory.metrics.snapshot()[Key("users", OWN)].failures) == {"abandoned": 1}
