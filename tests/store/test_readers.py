"""The threads that read: what is asked for together is read together, and nobody waits for a neighbour's trouble."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from aforesaid.domain.message import draft
from aforesaid.domain.scope import Scope
from aforesaid.errors import InvalidInput, StoreClosed, StoreError
from aforesaid.store.messages import AddMessage, Messages
from aforesaid.store.searches import MatchText
from aforesaid.store.sqlite import Options, SqliteStore
from aforesaid.store.sqlite import engine as readers

ANN = Scope.of("ann")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(tmp_path / "memory.db", Options(readers=2))
    await store.apply([AddMessage(draft(ANN, "user", "tea"))])
    yield store
    await store.close()


def where(connection: apsw.Connection) -> tuple[str, int]:
    """Return the thread, and how many messages it sees."""
    return threading.current_thread().name, connection.execute("SELECT count(*) FROM log").get


async def test_short_reads_of_one_turn_share_a_thread_and_see_the_same(store: SqliteStore) -> None:
    engine = store._engine
    writer = apsw.Connection(str(store.path))

    def write(connection: apsw.Connection) -> tuple[str, int]:
        before = where(connection)
        writer.execute("UPDATE log SET text = 'milk'")
        return before

    first, wrote, last = await asyncio.gather(
        engine.read(where, short=True),
        engine.read(write, short=True),
        engine.read(lambda it: it.execute("SELECT text FROM log").get, short=True),
    )
    assert first == wrote
    assert last == "tea", "one transaction for all of them"
    assert (await store.read(Messages(ANN)))[0].text == "milk"


async def test_what_may_take_long_comes_last_and_one_at_a_time(store: SqliteStore) -> None:
    engine, going, order = store._engine, threading.Event(), []

    def long(_: apsw.Connection) -> None:
        assert going.wait(60)
        order.append("long")

    def other(_: apsw.Connection) -> None:
        order.append("other")
        going.set()

    await asyncio.gather(
        engine.read(long), engine.read(lambda _: order.append("short"), short=True), engine.read(other)
    )
    assert order[-1] == "long", "the two long ones had a thread each, and the short one did not wait for them"
    assert sorted(order) == ["long", "other", "short"]


async def test_one_that_fails_fails_alone(store: SqliteStore) -> None:
    engine = store._engine

    def wrong(_: apsw.Connection) -> None:
        raise InvalidInput("no")

    def broken(connection: apsw.Connection) -> None:
        connection.execute("ROLLBACK")
        connection.execute("SELECT nothing FROM nowhere")

    one, two, three = await asyncio.gather(
        engine.read(wrong, short=True),
        engine.read(broken, short=True),
        engine.read(where, short=True),
        return_exceptions=True,
    )
    assert isinstance(one, InvalidInput)
    assert isinstance(two, StoreError)
    assert not isinstance(three, BaseException)
    assert three[1] == 1


async def test_whoever_gives_up_keeps_nobody_waiting(store: SqliteStore) -> None:
    engine, ran = store._engine, []
    given_up = asyncio.ensure_future(engine.read(lambda _: ran.append("given up"), short=True))
    await asyncio.sleep(0)
    given_up.cancel()
    assert await asyncio.gather(*(engine.read(where, short=True) for _ in range(100)))
    with pytest.raises(asyncio.CancelledError):
        await given_up


async def test_many_turns_at_once_are_all_answered(store: SqliteStore) -> None:
    async def ask(number: int) -> int:
        await asyncio.sleep(number % 7 / 1000)
        return await store._engine.read(lambda it: it.execute("SELECT ?", (number,)).get, short=number % 5 != 0)

    assert await asyncio.gather(*map(ask, range(500))) == list(range(500))
    assert len(store._engine._readers._threads) == store._engine.options.readers


async def test_a_closed_store_reads_nothing_and_finishes_what_was_asked(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "memory.db")
    engine = store._engine
    asked = [asyncio.ensure_future(engine.read(lambda it: it.execute("SELECT 1").get, short=True)) for _ in range(20)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await store.close()
    assert await asyncio.gather(*asked) == [1] * 20
    with pytest.raises(StoreClosed):
        await engine.read(where, short=True)


async def test_the_gate_waits_for_those_inside_and_keeps_others_out(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Longer than anybody here waits: whoever leaves must say so.
    monkeypatch.setattr(readers, "_DRAIN_SECONDS", 30)
    engine, gate = store._engine, store._engine._readers.gate
    inside, leave, order = threading.Event(), threading.Event(), []

    def slow(_: apsw.Connection) -> None:
        inside.set()
        assert leave.wait(60)
        order.append("left")

    def shut() -> None:
        with gate.closed():
            order.append("shut")
            shut_now.set()
            assert open_again.wait(60)
            order.append("open again")

    shut_now, open_again = threading.Event(), threading.Event()
    reading = asyncio.ensure_future(engine.read(slow))
    assert await asyncio.to_thread(inside.wait, 60)
    shutting = asyncio.ensure_future(asyncio.to_thread(shut))
    await asyncio.sleep(0.05)
    assert order == [], "somebody is inside"
    leave.set()
    assert await asyncio.to_thread(shut_now.wait, 10)
    late = asyncio.ensure_future(engine.read(lambda _: order.append("late"), short=True))
    await asyncio.sleep(0.05)
    assert order == ["left", "shut"]
    open_again.set()
    await asyncio.gather(reading, shutting, late)
    assert order == ["left", "shut", "open again", "late"]


async def test_the_gate_does_not_wait_for_ever(store: SqliteStore) -> None:
    inside, leave = threading.Event(), threading.Event()

    def stuck(_: apsw.Connection) -> bool:
        inside.set()
        return leave.wait(60)

    reading = asyncio.ensure_future(store._engine.read(stuck))
    assert await asyncio.to_thread(inside.wait, 60)

    def shut() -> None:
        with store._engine._readers.gate.closed():
            leave.set()

    await asyncio.to_thread(shut)
    assert await reading, "the gate was shut while somebody was inside"


async def test_what_goes_before_its_turn_does_not_keep_the_next_from_going(store: SqliteStore) -> None:
    for number in range(20):
        first = asyncio.ensure_future(store.apply([AddMessage(draft(ANN, "user", f"one {number}"))]))
        await asyncio.sleep(0)
        store._engine.hand_over()
        await asyncio.wait_for(first, 60)
        await asyncio.sleep(0.01)
        await asyncio.wait_for(store.apply([AddMessage(draft(ANN, "user", f"two {number}"))]), 60)


async def test_what_was_searched_lately_is_a_short_read(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: list[bool] = []
    original = readers.Readers.read

    def watch(self: readers.Readers, work: Any, *, short: bool) -> asyncio.Future[Any]:  # noqa: ANN401 - a read
        kinds.append(short)
        return original(self, work, short=short)

    monkeypatch.setattr(readers.Readers, "read", watch)
    await store.read(MatchText(Scope.of("nobody"), "tea"))
    for _ in range(2):
        await store.read(MatchText(ANN, "tea"))
    await store.read(MatchText(ANN, "tea", within="thread"))
    assert kinds == [False, False, True, False], "unknown; read for the first time; at hand; another scope"
    await store.purge(ANN, "test")
    kinds.clear()
    await store.read(MatchText(ANN, "tea"))
    assert kinds == [False]
