"""Spending limits and metrics."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import UTC, date, datetime

import pytest

from aforesaid.domain.scope import Scope
from aforesaid.errors import ModelError, ModelGarbled, ModelRefused, ModelUnavailable, SpendingLimit, StoreBusy
from aforesaid.models.chat import Reply
from aforesaid.models.resilience import Budget, Budgeted, MemoryLedger, Metered
from aforesaid.settings import Spending
from aforesaid.telemetry import SECONDS, Key, Metrics
from models.stubs import HANG, Stub, asking, heard

ANN, BOB = Scope.of("ann"), Scope.of("bob")
DAY = date(2026, 3, 1)


class Clock:
    def __init__(self) -> None:
        self.day = DAY

    def __call__(self) -> int:
        noon = datetime(self.day.year, self.day.month, self.day.day, 12, tzinfo=UTC)
        return int(noon.timestamp() * 1_000_000)


def budgeted(
    inner: Stub, limits: Spending, ledger: MemoryLedger | None = None, clock: Clock | None = None
) -> Budgeted[str, Reply]:
    budget = Budget(limits, ledger or MemoryLedger(), clock or Clock())
    return Budgeted(inner, budget, lambda _: 10, lambda piece: len(piece.text))


async def test_each_user_has_a_limit_in_all_threads_together() -> None:
    inner = Stub(tokens=60)
    service = budgeted(inner, Spending(tokens_per_user_and_day=100))
    await heard(service, asking(scope=ANN))
    await heard(service, asking(scope=Scope.of("ann", thread="general")))
    with pytest.raises(SpendingLimit, match=r"user 'ann' used 120 of 100 tokens on 2026-03-01 \(UTC\)"):
        await heard(service, asking(scope=ANN))
    await heard(service, asking(scope=BOB))
    await heard(service, asking(scope=Scope.of("ann", space="elsewhere")))
    await heard(service, asking())
    assert len(inner.calls) == 5


async def test_all_users_together_have_a_limit() -> None:
    service = budgeted(Stub(tokens=60), Spending(tokens_per_day=100))
    await heard(service, asking(scope=ANN))
    await heard(service, asking())
    with pytest.raises(SpendingLimit, match="all users together used 120 of 100"):
        await heard(service, asking(scope=BOB))


async def test_tomorrow_is_another_day() -> None:
    clock = Clock()
    service = budgeted(Stub(tokens=60), Spending(tokens_per_day=50), clock=clock)
    await heard(service)
    with pytest.raises(SpendingLimit):
        await heard(service)
    clock.day = date(2026, 3, 2)
    assert await heard(service) == ["yes"]


class SlowLedger(MemoryLedger):
    async def spent(self, day: date, scope: Scope | None) -> int:
        await asyncio.sleep(0.001)
        return await super().spent(day, scope)


@pytest.mark.parametrize("limits", [Spending(tokens_per_day=45), Spending(45, 10**6), Spending(10**6, 45)])
async def test_many_at_once_do_not_all_pass_below_the_limit(limits: Spending) -> None:
    inner = Stub(tokens=10)
    inner.gate = asyncio.Event()
    service = budgeted(inner, limits, SlowLedger())
    waiting = [asyncio.create_task(heard(service, asking(scope=ANN))) for _ in range(20)]
    while sum(task.done() for task in waiting) < 15:
        await asyncio.sleep(0.001)
    inner.gate.set()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert sum(isinstance(result, SpendingLimit) for result in results) == 15
    assert len(inner.calls) == 5


async def test_where_nothing_is_said_the_cost_is_estimated() -> None:
    ledger = MemoryLedger()
    await heard(budgeted(Stub([("abc", "de")]), Spending(), ledger), asking(scope=ANN))
    assert await ledger.spent(DAY, ANN) == 15
    assert await ledger.spent(DAY, None) == 15


async def test_a_stream_that_is_not_listened_to_the_end_costs_too() -> None:
    ledger = MemoryLedger()
    async with aclosing(budgeted(Stub([("abc", HANG)]), Spending(), ledger).call(asking(scope=ANN))) as pieces:
        await anext(pieces)
    assert await ledger.spent(DAY, ANN) == 13


async def test_a_call_that_fails_costs_nothing_and_holds_nothing_back() -> None:
    ledger = MemoryLedger()
    service = budgeted(Stub([ModelUnavailable("down"), ("yes",)], tokens=5), Spending(tokens_per_day=8), ledger)
    with pytest.raises(ModelUnavailable):
        await heard(service)
    assert await ledger.spent(DAY, None) == 0
    assert await heard(service) == ["yes"]


async def test_an_answer_that_is_there_is_not_lost_because_it_cannot_be_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(MemoryLedger):
        async def spend(self, day: date, scope: Scope | None, tokens: int) -> None:  # noqa: ARG002
            raise StoreBusy("another process held it")

    assert await heard(budgeted(Stub(tokens=60), Spending(), Broken())) == ["yes"]
    assert "60 tokens could not be counted: another process held it" in caplog.text


async def test_what_is_asked_is_counted_by_operation_and_model() -> None:
    metrics = Metrics()
    await heard(Metered(Stub([("a", "b")], tokens=7), "one", metrics))
    await heard(Metered(Stub(tokens=5), "one", metrics))
    await heard(Metered(Stub(tokens=1), "two", metrics))
    metrics.cache_hit("chat", "one")
    counts = metrics.snapshot()
    assert set(counts) == {Key("chat", "one"), Key("chat", "two")}
    one = counts["chat", "one"]  # type: ignore[index]
    assert (one.calls, one.failures, one.prompt_tokens, one.reply_tokens, one.cache_hits) == (2, {}, 12, 0, 1)
    assert one.seconds > 0
    assert len(one.latencies) == len(SECONDS) + 1
    assert sum(one.latencies) == 2


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ModelUnavailable("down"), "unavailable"),
        (ModelRefused("no"), "refused"),
        (ModelGarbled("huh"), "garbled"),
        (SpendingLimit("no"), "limit"),
        (ModelError("?"), "other"),
    ],
)
async def test_failures_are_counted_by_kind(error: ModelError, kind: str) -> None:
    metrics = Metrics()
    with pytest.raises(type(error)):
        await heard(Metered(Stub([error]), "one", metrics))
    counted = metrics.snapshot()[Key("chat", "one")]
    assert (counted.calls, counted.failures) == (1, {kind: 1})


async def test_a_caller_who_gives_up_is_counted_as_such() -> None:
    metrics = Metrics()
    inner = Stub([(HANG,)])
    task = asyncio.create_task(heard(Metered(inner, "one", metrics)))
    while not inner.running:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert metrics.snapshot()[Key("chat", "one")].failures == {"abandoned": 1}


def test_long_calls_fall_into_their_class() -> None:
    metrics = Metrics()
    for seconds in (0.0, 0.1, 0.2, 61.0):
        metrics.called("chat", "one", seconds)
    assert metrics.snapshot()[Key("chat", "one")].latencies == (1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1)
