"""Upkeep: what is due is done in time, fairly, a few at a time, and at the same cost whatever was said before."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from aforesaid.digest import Digest
from aforesaid.domain.message import draft
from aforesaid.domain.receipt import Receipt
from aforesaid.domain.scope import Scope
from aforesaid.models.chat import Reply, Said
from aforesaid.profiles import Policy, load_profile
from aforesaid.settings import Operation
from aforesaid.store import Progress, Store, open_store
from aforesaid.store.messages import AddMessage, Messages
from aforesaid.store.operations import Change, Question
from aforesaid.store.summaries import Summaries
from aforesaid.upkeep import Digesting
from digesting import MovingClock, Scribe, remembering, talk

ANN = Scope.of("ann")


class Debounce:
    """Stands for sleeping: goes on when a test says so."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self._go_on = asyncio.Semaphore(0)
        self.waiting = asyncio.Event()

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.waiting.set()
        await self._go_on.acquire()

    async def pass_time(self) -> None:
        await self.waiting.wait()
        self.waiting.clear()
        self._go_on.release()


async def exchange(store: Store, number: int) -> None:
    await store.apply([AddMessage(draft(ANN, "user", f"I have {number} apples."))])
    await store.apply([AddMessage(draft(ANN, "assistant", "Good."))])


@pytest.mark.req("E8")
async def test_checks_are_debounced_by_two_seconds_and_lose_nothing(store: Store) -> None:
    """Messages are stored at once; what is put off is only looking whether a summary is due."""
    debounce = Debounce()
    digest = Digest(store, load_profile({"extends": "archive", "tree_turns": 2}))
    digesting = Digesting(store, "tree", lambda: digest, pause=debounce)
    made = asyncio.Event()
    archive = digest.executor.archive_messages

    async def archive_and_tell(*args: object) -> object:
        summary = await archive(*args)  # type: ignore[arg-type]
        made.set()
        return summary

    digest.executor.archive_messages = archive_and_tell  # type: ignore[assignment, method-assign]
    for number in range(3):
        await exchange(store, number)
        digesting.nudge()
    assert len(await store.read(Messages(ANN))) == 6, "stored already"
    await debounce.waiting.wait()
    digesting.nudge()
    await debounce.pass_time()
    await debounce.waiting.wait()
    assert await store.read(Summaries(ANN)) == [], "something new came meanwhile, so it waits a little more"
    await debounce.pass_time()
    await made.wait()
    assert debounce.slept == [2.0, 2.0]
    await digesting.close()
    assert len(await store.read(Summaries(ANN))) == 1


@pytest.mark.req("E8")
async def test_whoever_never_pauses_is_not_put_off_for_ever(store: Store) -> None:
    digest, looked = Digest(store, load_profile("archive")), asyncio.Event()

    async def nudged_again(_: float) -> None:
        digesting.nudge()

    def load() -> Digest:
        loop.call_soon_threadsafe(looked.set)
        return digest

    loop = asyncio.get_running_loop()
    digesting = Digesting(store, "tree", load, pause=nudged_again)
    digesting.nudge()
    await asyncio.wait_for(looked.wait(), 60)
    await digesting.close()


@pytest.mark.req("E8")
async def test_a_process_that_dies_before_the_pause_is_over_loses_nothing(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    location = str(tmp_path_factory.mktemp("dies") / "memory.db")
    async with remembering(location, "archive") as memory:
        await talk(memory.user("ann"), 10)
    async with remembering(location, "archive") as memory:
        assert len(await memory.user("ann").history()) == 20
        assert (await memory.upkeep()).summarised == 1


class Slow(Scribe):
    """A model that lets others go first, and counts how many are asked at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.most = 0
        self.order: list[str] = []
        self._four = asyncio.Event()

    async def text(
        self,
        operation: Operation,
        messages: Sequence[Said],
        *,
        scope: Scope | None = None,
        characters: int | None = None,
    ) -> Reply:
        self.now += 1
        self.most = max(self.most, self.now)
        self.order.append(scope.user if scope else "")
        if self.now >= 4:
            self._four.set()
        await self._four.wait()
        self.now -= 1
        return await super().text(operation, messages, scope=scope, characters=characters)


async def test_users_take_turns_and_only_a_few_are_served_at_a_time(location: str) -> None:
    slow = Slow()
    async with remembering(location, {"extends": "archive", "tree_turns": 1}, chat=slow) as memory:
        await talk(memory.user("many"), 30)
        for number in range(10):
            await talk(memory.user(f"few-{number}"), 1)
        await memory.upkeep()
        assert slow.most == 4
        first = slow.order[:14]
        assert sorted(name for name in set(first) if name != "many") == [f"few-{number}" for number in range(10)]
        assert len(await memory.user("many").summaries(active=None)) > 30


async def test_progress_is_told(location: str) -> None:
    told: list[tuple[str, int, int]] = []
    async with remembering(location, "archive") as memory:
        for name in ("ann", "bob"):
            await talk(memory.user(name), 40)
        await memory.upkeep(lambda *what: told.append(what))
    steps = [(done, total) for what, done, total in told if what == "summarising"]
    assert steps[-1] == (160, 160)
    assert {total for _, total in steps} == {160}
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)


class Counting:
    """A store that counts what is asked of it, and how many rows come back."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.calls: Counter[str] = Counter()
        self.rows = 0

    async def apply(self, changes: Sequence[Change], progress: Progress | None = None) -> Receipt:
        self.calls["apply"] += 1
        self.rows += 1
        return await self._store.apply(changes, progress)

    async def read(self, question: Question[Any]) -> object:
        self.calls[type(question).__name__] += 1
        answer = await self._store.read(question)
        self.rows += len(answer) if isinstance(answer, list) else 1
        return answer


@pytest.mark.parametrize("policy", ["tree", "rolling", "calendar", "tiers"])
async def test_one_more_message_costs_the_same_after_many_as_after_few(
    policy: Policy, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Not only as many reads: also as many rows."""
    costs = []
    for size in (400, 2_000):
        store = await open_store(tmp_path_factory.mktemp("cost") / "memory.db")
        clock = MovingClock()
        digest = Digest(store, load_profile({"summaries": policy, "tree_turns": 5}), clock=clock)
        digesting = Digesting(store, policy, lambda digest=digest: digest)  # type: ignore[misc]
        changes = [
            AddMessage(draft(ANN, "assistant" if number % 2 else "user", f"Apple {number}.", at=clock.forward(hours=3)))
            for number in range(size)
        ]
        await store.apply(changes)
        await digesting.run()
        steps = await _cost_of_one_more(store, digesting, clock)
        costs.append(steps)
        await digesting.close()
        await store.close()
    few, many = costs
    assert many[0] == few[0], "the same calls"
    assert abs(many[1] - few[1]) <= 10, "the same rows, but for the summaries that are active at the moment"


async def _cost_of_one_more(store: Store, digesting: Digesting, clock: MovingClock) -> tuple[Counter[str], int]:
    await store.apply([AddMessage(draft(ANN, "user", "One more.", at=clock.forward(minutes=1)))])
    counting = Counting(store)
    digesting._store = counting  # type: ignore[assignment]
    assert digesting._digest is not None
    digesting._digest._store = digesting._digest.executor.store = counting  # type: ignore[assignment]
    await digesting.run()
    return counting.calls, counting.rows
