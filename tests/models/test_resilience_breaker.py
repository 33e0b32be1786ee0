"""The breaker: when it opens, whom it lets through, when it closes."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid.errors import ModelError, ModelGarbled, ModelRefused, ModelUnavailable, SpendingLimit
from aforesaid.models.chat import Reply
from aforesaid.models.resilience import Breaker, BreakerOpen, Checked, ConcurrencyLimit, Guarded, Limited
from aforesaid.settings import Resilience
from models.stubs import HANG, Stub, asking, heard

DOWN = ModelUnavailable("down")
SETTINGS = Resilience(failures=3, probe_seconds=10)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    return Breaker("ann", SETTINGS, clock)


async def fail(guarded: Guarded[str, Reply], times: int = 1) -> None:
    for _ in range(times):
        with pytest.raises(ModelUnavailable):
            await heard(guarded)


async def open_it(breaker: Breaker) -> None:
    await fail(Guarded(Stub([DOWN]), breaker), SETTINGS.failures)
    assert breaker.state().state == "open"


async def test_it_opens_after_so_many_failures_in_a_row(breaker: Breaker) -> None:
    inner = Stub([DOWN, DOWN, ("yes",), DOWN])
    guarded = Guarded(inner, breaker)
    await fail(guarded, 2)
    assert await heard(guarded) == ["yes"]
    await fail(guarded, 2)
    assert breaker.state()[:2] == ("closed", 2)
    await fail(guarded)
    assert breaker.state()[:4] == ("open", 3, 10.0, "down")
    with pytest.raises(BreakerOpen, match=r"ann is left alone after 3 failures .* the next try is in 10.0 s.*down"):
        await heard(guarded)
    assert len(inner.calls) == 6


@pytest.mark.parametrize("error", [ModelRefused("no"), ModelGarbled("huh"), SpendingLimit("no")])
async def test_a_provider_that_answers_is_not_left_alone(breaker: Breaker, error: ModelError) -> None:
    guarded = Guarded(Stub([error]), breaker)
    for _ in range(10):
        with pytest.raises(type(error)):
            await heard(guarded)
    assert breaker.state()[:4] == ("closed", 0, None, None)


async def test_one_probe_goes_through_per_interval_however_many_wait(breaker: Breaker, clock: Clock) -> None:
    await open_it(breaker)
    inner = Stub([DOWN])
    inner.gate = asyncio.Event()
    guarded = Guarded(inner, breaker)
    for interval in range(1, 4):
        clock.now = 10.0 * interval
        waiting = [asyncio.create_task(heard(guarded)) for _ in range(50)]
        while not inner.running:
            await asyncio.sleep(0)
        assert breaker.state().state == "half-open"
        inner.gate.set()
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert sum(type(result) is ModelUnavailable for result in results) == 1
        assert sum(type(result) is BreakerOpen for result in results) == 49
        assert len(inner.calls) == interval
        assert breaker.state().state == "open"
        inner.gate.clear()


async def test_the_first_success_closes_it(breaker: Breaker, clock: Clock) -> None:
    await open_it(breaker)
    clock.now = 10.0
    guarded = Guarded(Stub(), breaker)
    assert await heard(guarded) == ["yes"]
    assert breaker.state()[:4] == ("closed", 0, None, None)
    assert await asyncio.gather(*(heard(guarded) for _ in range(20))) == [["yes"]] * 20


async def test_a_probe_that_hangs_does_not_keep_the_next_one_back(breaker: Breaker, clock: Clock) -> None:
    await open_it(breaker)
    clock.now = 10.0
    hanging = Stub([(HANG,)])
    task = asyncio.create_task(heard(Guarded(hanging, breaker)))
    while not hanging.running:
        await asyncio.sleep(0)
    clock.now = 20.0
    assert await heard(Guarded(Stub(), breaker)) == ["yes"]
    assert breaker.state().state == "closed"
    task.cancel()


async def test_a_call_that_was_given_up_says_nothing_about_the_provider(breaker: Breaker, clock: Clock) -> None:
    await open_it(breaker)
    clock.now = 10.0
    hanging = Stub([(HANG,)])
    task = asyncio.create_task(heard(Guarded(hanging, breaker)))
    while not hanging.running:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert breaker.state()[:4] == ("open", 3, 10.0, "down")


async def test_a_stream_closes_it_with_its_first_piece(breaker: Breaker, clock: Clock) -> None:
    await open_it(breaker)
    clock.now = 10.0
    async with aclosing(Guarded(Stub([("a", HANG)]), breaker).call(asking())) as pieces:
        await anext(pieces)
        assert breaker.state().state == "closed"


async def test_nobody_queues_for_a_provider_that_is_left_alone(breaker: Breaker, clock: Clock) -> None:
    await open_it(breaker)
    clock.now = 10.0
    hanging = Stub([(HANG,)])
    whole = Checked(Limited(Guarded(hanging, breaker), ConcurrencyLimit("ann", 1)), breaker)
    probe = asyncio.create_task(heard(whole))
    while not hanging.running:
        await asyncio.sleep(0)
    # The only place is taken by the probe; the others are told at once instead of waiting for it.
    with pytest.raises(BreakerOpen):
        await heard(whole)
    probe.cancel()


@given(
    concurrency=st.integers(1, 5),
    failures=st.integers(1, 6),
    waves=st.lists(st.tuples(st.integers(1, 40), st.floats(0, 3)), min_size=1, max_size=12),
)
def test_a_dead_provider_gets_no_more_calls_than_the_cap(
    concurrency: int, failures: int, waves: list[tuple[int, float]]
) -> None:
    """Whatever comes in and when: failures + concurrency - 1 calls, and one for each interval that went by."""
    clock = Clock()
    breaker = Breaker("ann", Resilience(failures=failures, probe_seconds=1.0), clock)
    inner = Stub([DOWN])
    whole = Checked(Limited(Guarded(inner, breaker), ConcurrencyLimit("ann", concurrency)), breaker)

    async def run() -> None:
        for many, pause in waves:
            await asyncio.gather(*(heard(whole) for _ in range(many)), return_exceptions=True)
            clock.now += pause

    asyncio.run(run())
    probes = sum(pause for _, pause in waves)
    assert len(inner.calls) <= failures + concurrency - 1 + probes
