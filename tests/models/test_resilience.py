"""The wrappers of models: retry, deadline, limit, circuit breaker and fallback, also around remote embedders."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid.errors import (
    InvalidInput,
    ModelError,
    ModelGarbled,
    ModelRefused,
    ModelUnavailable,
    NoModel,
    SpendingLimit,
)
from aforesaid.models.chat import Reply
from aforesaid.models.embed import LocalEmbedder, RemoteEmbedder, choose_embedder
from aforesaid.models.resilience import (
    Breaker,
    BreakerOpen,
    Checked,
    ConcurrencyLimit,
    Deadline,
    Fallback,
    Guarded,
    Limited,
    Retry,
)
from aforesaid.settings import Choice, Resilience, Route, Settings
from aforesaid.telemetry import Key, Metrics
from aforesaid.testing import ScriptedModel, faults
from aforesaid.testing.faults import HttpResponse, answer_json
from models.stubs import HANG, Stub, asking, heard

DOWN = ModelUnavailable("down")


class TestRetry:
    async def test_an_unavailable_model_is_asked_again(self) -> None:
        inner = Stub([DOWN, DOWN, ("yes",)])
        assert await heard(Retry(inner, 3, first_pause=0.001, jitter=0)) == ["yes"]
        assert len(inner.calls) == 3

    async def test_the_last_error_is_let_through(self) -> None:
        inner = Stub([DOWN])
        with pytest.raises(ModelUnavailable, match="down"):
            await heard(Retry(inner, 4, first_pause=0.001, jitter=0))
        assert len(inner.calls) == 4

    async def test_pauses_grow(self) -> None:
        inner = Stub([DOWN, DOWN, DOWN, ("yes",)])
        await heard(Retry(inner, 4, first_pause=0.02, jitter=0))
        gaps = [later - earlier for earlier, later in zip(inner.calls, inner.calls[1:], strict=False)]
        assert all(gap >= 0.02 * 2**number for number, gap in enumerate(gaps))

    async def test_a_server_says_how_long_to_wait(self) -> None:
        inner = Stub([ModelUnavailable("slow down", retry_after=0.1), ("yes",)])
        assert await heard(Retry(inner, 3, first_pause=0.001, jitter=0)) == ["yes"]
        assert inner.calls[1] - inner.calls[0] >= 0.1

    async def test_nobody_waits_past_the_deadline(self) -> None:
        for error in (ModelUnavailable("slow down", retry_after=3600), DOWN):
            inner = Stub([error, ("yes",)])
            with pytest.raises(ModelUnavailable) as raised:
                await heard(Retry(inner, 3, first_pause=600, longest_pause=600), asking(60))
            assert raised.value is error
            assert len(inner.calls) == 1

    @pytest.mark.parametrize("error", [ModelRefused("no"), ModelGarbled("huh"), SpendingLimit("no"), BreakerOpen("")])
    async def test_what_would_not_help_is_not_tried(self, error: ModelError) -> None:
        inner = Stub([error, ("yes",)])
        with pytest.raises(type(error)):
            await heard(Retry(inner, 3, first_pause=0.001))
        assert len(inner.calls) == 1

    async def test_nothing_is_asked_again_after_the_first_piece(self) -> None:
        inner = Stub([("one", DOWN), ("two",)])
        pieces = Retry(inner, 3, first_pause=0.001).call(asking())
        assert (await anext(pieces)).text == "one"
        with pytest.raises(ModelUnavailable):
            await anext(pieces)
        assert len(inner.calls) == 1

    async def test_cancelling_ends_it(self) -> None:
        inner = Stub([(HANG,)])
        task = asyncio.create_task(heard(Retry(inner, 3)))
        while not inner.calls:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (len(inner.calls), inner.running) == (1, 0)

    async def test_what_is_tried_again_is_logged_once(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.DEBUG):
            await heard(Retry(Stub([DOWN, ("yes",)]), 3, first_pause=0.001, jitter=0))
        assert [(record.name, record.getMessage()) for record in caplog.records if record.name != "asyncio"] == [
            ("aforesaid.models", "retrying chat: down")
        ]


class TestDeadline:
    async def test_silence_is_broken_off(self) -> None:
        inner = Stub([(HANG,)])
        with pytest.raises(ModelUnavailable, match=r"ann did not answer; .* raise the timeout of 'chat'"):
            await heard(Deadline(inner, "ann", stall=30), asking(0.01))
        assert inner.running == 0

    async def test_the_first_piece_has_a_time_of_its_own(self) -> None:
        with pytest.raises(ModelUnavailable, match="did not answer"):
            await heard(Deadline(Stub([(HANG,)]), "ann", stall=30), asking(0.01, total=60))

    async def test_a_stream_that_falls_silent_is_broken_off(self) -> None:
        with pytest.raises(ModelUnavailable, match="fell silent after 2 pieces"):
            await heard(Deadline(Stub([("a", "b", HANG)]), "ann", stall=0.01), asking(60))

    async def test_the_whole_has_a_time(self) -> None:
        # Pieces come fast enough, one by one; but they never end.
        inner = Stub([["piece"] * 10**6])
        deadline = Deadline(inner, "ann", stall=30)
        with pytest.raises(ModelUnavailable, match="was not done after"):
            await heard(deadline, asking(0.05), pause=0.002)

    async def test_a_caller_may_take_its_time_between_pieces(self) -> None:
        deadline = Deadline(Stub([("a", "b")]), "ann", stall=0.01)
        assert await heard(deadline, asking(60), pause=0.05) == ["a", "b"]


class TestLimit:
    async def test_so_many_at_a_time_and_the_others_wait(self) -> None:
        inner = Stub([("a", "b")])
        places = ConcurrencyLimit("ann", 3)
        answers = await asyncio.gather(*(heard(Limited(inner, places)) for _ in range(30)))
        assert answers == [["a", "b"]] * 30
        assert inner.most == 3

    async def test_a_place_is_given_back_whatever_happens(self) -> None:
        inner = Stub([DOWN, (HANG,), ("a", HANG), ("yes",)])
        limited = Limited(inner, ConcurrencyLimit("ann", 1))
        with pytest.raises(ModelUnavailable, match="down"):
            await heard(limited)
        task = asyncio.create_task(heard(limited))
        while not inner.running:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with aclosing(limited.call(asking())) as pieces:
            assert (await anext(pieces)).text == "a"
        assert await heard(limited) == ["yes"]

    async def test_nobody_waits_for_a_place_past_the_deadline(self) -> None:
        inner = Stub([(HANG,)])
        limited = Limited(inner, ConcurrencyLimit("ann", 1))
        first = asyncio.create_task(heard(limited))
        while not inner.running:
            await asyncio.sleep(0)
        with pytest.raises(ModelUnavailable, match="ann is busy"):
            await heard(limited, asking(0.01))
        first.cancel()


class TestFallback:
    @pytest.mark.parametrize("error", [DOWN, ModelRefused("no"), ModelGarbled("huh")])
    async def test_the_next_model_takes_over(self, error: ModelError) -> None:
        first, second, third = Stub([error]), Stub([("yes",)]), Stub()
        assert await heard(Fallback([first, second, third])) == ["yes"]
        assert [len(each.calls) for each in (first, second, third)] == [1, 1, 0]

    async def test_a_spending_limit_ends_it(self) -> None:
        second = Stub()
        with pytest.raises(SpendingLimit):
            await heard(Fallback([Stub([SpendingLimit("no")]), second]))
        assert not second.calls

    async def test_a_model_that_hangs_leaves_the_others_their_time(self) -> None:
        hanging, working = Deadline(Stub([(HANG,)]), "ann", stall=30), Deadline(Stub(), "bob", stall=30)
        assert await heard(Fallback([hanging, hanging, working]), asking(1.5)) == ["yes"]

    async def test_a_stream_has_all_the_time_once_it_has_begun(self) -> None:
        seen = []

        class Looking(Stub):
            def call(self, ask):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
                seen.append((ask.answer_by, ask.over_by))
                return super().call(ask)

        ask = asking(60)
        await heard(Fallback([Looking(), Looking()]), ask)
        assert seen[0][0] < ask.answer_by
        assert seen[0][1] == ask.over_by

    async def test_no_other_model_is_tried_after_the_first_piece(self) -> None:
        second = Stub()
        with pytest.raises(ModelUnavailable):
            await heard(Fallback([Stub([("a", DOWN)]), second]))
        assert not second.calls

    async def test_without_a_model_there_is_none(self) -> None:
        with pytest.raises(NoModel, match="no model is configured to chat"):
            await heard(Fallback([]))

    async def test_an_answer_of_no_pieces_is_no_answer(self) -> None:
        assert await heard(Fallback([Stub([()]), Stub()])) == ["yes"]
        with pytest.raises(ModelGarbled, match="returned nothing"):
            await heard(Fallback([Stub([()])]))

    @pytest.mark.parametrize(
        ("errors", "kind"),
        [
            ([ModelRefused("key"), DOWN], ModelUnavailable),
            ([ModelGarbled("huh"), ModelRefused("key")], ModelRefused),
            ([ModelGarbled("huh"), ModelGarbled("what")], ModelGarbled),
        ],
    )
    async def test_the_error_says_all_and_is_the_kind_one_can_do_most_about(
        self, errors: list[ModelError], kind: type[ModelError]
    ) -> None:
        with pytest.raises(kind) as raised:
            await heard(Fallback([Stub([error]) for error in errors]))
        for error in errors:
            assert str(error) in str(raised.value)

    async def test_the_soonest_time_to_try_again_is_kept(self) -> None:
        errors = [ModelUnavailable("a", retry_after=9), ModelUnavailable("b"), ModelUnavailable("c", retry_after=4)]
        with pytest.raises(ModelUnavailable) as raised:
            await heard(Fallback([Stub([error]) for error in errors]))
        assert raised.value.retry_after == 4


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


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as started:
        yield started


async def test_the_settings_say_which_model_embeds(model: ScriptedModel) -> None:
    settings, metrics = model.settings(), Metrics()
    for wanted in (None, "scripted:scripted"):
        embedder = choose_embedder(wanted, settings, metrics=metrics)
        assert isinstance(embedder, RemoteEmbedder)
        assert embedder.name == f"scripted@{model.base_url}"
        vectors = await embedder.embed(["one", "two", "one"])
        assert vectors.shape == (3, 32)
        assert (vectors[0] == vectors[2]).all()
        await embedder.close()
    counted = metrics.snapshot()[Key("embed", "scripted:scripted")]
    assert counted.calls == 2
    assert counted.prompt_tokens > 0


def test_a_name_is_stronger_than_a_route(model: ScriptedModel) -> None:
    assert isinstance(choose_embedder(None, replace(model.settings(), embedder="local")), LocalEmbedder)
    assert choose_embedder("none", model.settings()) is None


def test_settings_that_cannot_work_are_refused(model: ScriptedModel) -> None:
    settings = model.settings()
    two = Route((Choice("scripted", "a"), Choice("scripted", "b")))
    with pytest.raises(InvalidInput, match="only one model can embed"):
        choose_embedder(None, replace(settings, routes={"embed": two}))
    with pytest.raises(InvalidInput, match="no provider 'scripted' is configured"):
        choose_embedder(None, Settings(routes=settings.routes))
    with pytest.raises(InvalidInput, match="unknown embedder 'nobody:x'"):
        choose_embedder("nobody:x", settings)


async def test_no_texts_need_no_call(model: ScriptedModel) -> None:
    embedder = RemoteEmbedder("m", model.base_url)
    assert len(await embedder.embed([])) == 0
    await embedder.close()
    assert not model.requests


@pytest.mark.parametrize(
    "data",
    [
        [[1.0, 2.0], [1.0]],
        [[1.0, "x"], [1.0, 2.0]],
        [[1.0, float("nan")], [1.0, 2.0]],
        [[1.0, 2.0]],
    ],
)
async def test_vectors_that_are_none_are_refused(model: ScriptedModel, data: list[list[float]]) -> None:
    class Odd(faults.Fault):
        def change(self, answer: HttpResponse) -> HttpResponse:  # noqa: ARG002
            rows = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(data)]
            return answer_json({"object": "list", "model": "m", "data": rows})

    model.fail(Odd())
    embedder = RemoteEmbedder("m", model.base_url)
    with pytest.raises(ModelGarbled):
        await embedder.embed(["one", "two"])
    await embedder.close()


async def test_a_server_that_is_down_is_left_alone_and_taken_back(model: ScriptedModel) -> None:
    embedder = RemoteEmbedder("m", model.base_url, resilience=Resilience(attempts=1, failures=2, probe_seconds=0.05))
    model.fail(faults.ServerError())
    for _ in range(2):
        with pytest.raises(ModelUnavailable):
            await embedder.embed(["one"])
    assert embedder.state().state == "open"
    with pytest.raises(ModelUnavailable, match="left alone after 2 failures"):
        await embedder.embed(["one"])
    model.heal()
    while embedder.state().state != "closed":
        try:
            vectors = await embedder.embed(["one"])
        except ModelUnavailable:
            continue
    assert np.isfinite(vectors).all()
    await embedder.close()


async def test_keys_of_the_environment_go_nowhere_by_themselves(
    model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "meant-for-openai-alone")
    embedder = RemoteEmbedder("m", provider=model.provider())
    await embedder.embed(["one"])
    await embedder.close()
    assert "meant-for-openai-alone" not in str(model.requests)
