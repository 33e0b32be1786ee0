"""Searches and contexts run a few at a time, in the order in which they came."""

from __future__ import annotations

import asyncio

import pytest

import aforesaid
from aforesaid.recall import QueueTimeout, RecallQueue, Turn, queue
from aforesaid.telemetry import OWN, RECALL_WAIT, Key, Metrics


class Searches:
    """Searches that run until they are told to end."""

    def __init__(self, queue: RecallQueue) -> None:
        self.queue = queue
        self.running: list[int] = []
        self.begun: list[int] = []
        self._ends: dict[int, asyncio.Event] = {}
        self.tasks: dict[int, asyncio.Task[None]] = {}

    async def begin(self, *numbers: int) -> None:
        for number in numbers:
            self._ends[number] = asyncio.Event()
            self.tasks[number] = asyncio.create_task(self._search(number))
        await self.settled()

    async def end(self, number: int) -> None:
        self._ends[number].set()
        await self.tasks[number]
        await self.settled()

    @staticmethod
    async def settled() -> None:
        for _ in range(10):
            await asyncio.sleep(0)

    async def _search(self, number: int) -> None:
        async with self.queue.turn():
            self.begun.append(number)
            self.running.append(number)
            await self._ends[number].wait()
            self.running.remove(number)


async def test_searches_begin_in_the_order_in_which_they_came() -> None:
    turns = RecallQueue(Metrics(), at_once=2)
    searches = Searches(turns)
    await searches.begin(1, 2, 3, 4, 5)
    assert (searches.running, turns.waiting) == ([1, 2], 3)
    await searches.end(2)
    assert searches.running == [1, 3]
    await searches.begin(6)
    for number in (1, 3, 4, 5, 6):
        await searches.end(number)
    assert searches.begun == [1, 2, 3, 4, 5, 6]
    assert turns.waiting == 0


async def test_a_cancelled_search_leaves_its_place_to_the_next() -> None:
    searches = Searches(RecallQueue(Metrics(), at_once=1))
    await searches.begin(1, 2, 3)
    searches.tasks[2].cancel()
    searches.tasks[1].cancel()
    await searches.settled()
    assert searches.begun == [1, 3]
    await searches.end(3)


async def test_a_search_within_a_turn_does_not_wait_again() -> None:
    turns = RecallQueue(Metrics(), at_once=1)
    async with turns.turn(), turns.turn():
        assert turns.waiting == 0


async def test_a_task_that_is_started_within_a_turn_waits_for_a_turn_of_its_own() -> None:
    turns = RecallQueue(Metrics(), at_once=1)
    searches = Searches(turns)
    async with turns.turn():
        await searches.begin(1)
        assert (searches.running, turns.waiting) == ([], 1)
    await searches.settled()
    assert searches.running == [1]
    await searches.end(1)


async def test_a_task_can_share_the_turn_that_it_was_started_in_until_the_turn_ends() -> None:
    turns = RecallQueue(Metrics(), at_once=1)
    searches, ended = Searches(turns), asyncio.Event()

    async def search_twice(turn: Turn) -> None:
        with turn.shared():
            async with turns.turn(0.0):
                searches.begun.append(1)
            await ended.wait()
            async with turns.turn():
                searches.begun.append(2)

    async with turns.turn() as turn:
        sharing = asyncio.create_task(search_twice(turn))
        await searches.settled()
        assert searches.begun == [1]
    async with turns.turn():
        ended.set()
        await searches.settled()
        assert (searches.begun, turns.waiting) == ([1], 1)
    await sharing
    assert searches.begun == [1, 2]


async def test_a_search_of_another_memory_within_a_turn_waits() -> None:
    searches = Searches(RecallQueue(Metrics(), at_once=1))
    await searches.begin(1)
    async with RecallQueue(Metrics()).turn():
        with pytest.raises(QueueTimeout):
            async with searches.queue.turn(0.0):
                pass
    await searches.end(1)


async def test_a_turn_that_does_not_come_in_time_is_counted() -> None:
    metrics = Metrics()
    turns = RecallQueue(metrics, at_once=1)
    searches = Searches(turns)
    await searches.begin(1)
    with pytest.raises(QueueTimeout, match="no search began within 0 s"):
        async with turns.turn(0.0):
            pass
    await searches.end(1)
    async with turns.turn(0.0):
        pass
    counted = metrics.snapshot()[Key(RECALL_WAIT, OWN)]
    assert (counted.calls, dict(counted.failures)) == (1, {"timeout": 1})


async def test_searches_and_contexts_wait_for_their_turn_and_reads_do_not() -> None:
    async with aforesaid.connect(":memory:", embedder="none") as memory:
        ann = memory.user("ann")
        await ann.add("user", "I moved to Berlin.")
        memory.recall_queue._at_once = 1
        searches = Searches(memory.recall_queue)
        await searches.begin(1)
        waiting = [asyncio.create_task(ann.search("Berlin")), asyncio.create_task(ann.context("Berlin?"))]
        await searches.settled()
        assert memory.recall_queue.waiting == 2
        assert await ann.history()
        assert "Berlin" in (await ann.context("Where do I live?", without=["snippets"])).text
        await searches.end(1)
        await asyncio.gather(*waiting)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let bulk work wait for searches without a limit."""
    monkeypatch.setattr(queue, "GIVE_WAY_SECONDS", 600.0)
    monkeypatch.setattr(queue, "QUIET_SECONDS", 0.0)


@pytest.mark.usefixtures("patient")
async def test_an_import_waits_while_somebody_searches() -> None:
    async with aforesaid.connect(":memory:", embedder="none") as memory:
        searches = Searches(memory.recall_queue)
        await searches.begin(1)
        many = [{"role": "user", "text": f"Message {number}"} for number in range(500)]
        importing = asyncio.create_task(memory.user("ann").add_many(many))
        await searches.settled()
        await memory.user("bob").add("user", "A single message does not wait.")
        assert not importing.done()
        await searches.end(1)
        assert len((await importing).results) == 500


@pytest.mark.usefixtures("patient")
async def test_the_background_work_of_an_import_waits_while_somebody_searches() -> None:
    settings = {"background": False}
    async with aforesaid.connect(":memory:", embedder="deterministic", settings=settings) as memory:
        await memory.user("ann").add("user", "I moved to Berlin.")
        searches = Searches(memory.recall_queue)
        await searches.begin(1)
        upkeep = asyncio.create_task(memory.upkeep())
        await searches.settled()
        assert not upkeep.done()
        await searches.end(1)
        assert (await upkeep).embedded


async def test_bulk_work_comes_in_the_end_while_others_search_without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "GIVE_WAY_SECONDS", 0.0)
    turns = RecallQueue(Metrics())
    searches = Searches(turns)
    await searches.begin(1)
    await turns.give_way()
    assert searches.running == [1]
    await searches.end(1)
