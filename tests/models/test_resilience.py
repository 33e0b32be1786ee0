"""Each wrapper alone: retry, deadline, limit, fallback."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing

import pytest

from aforesaid.errors import (
    ModelError,
    ModelGarbled,
    ModelRefused,
    ModelUnavailable,
    NoModel,
    SpendingLimit,
)
from aforesaid.models.resilience import BreakerOpen, ConcurrencyLimit, Deadline, Fallback, Limited, Retry
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
