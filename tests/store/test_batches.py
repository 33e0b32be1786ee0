"""Change sets of many messages, on every store."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from aforesaid.domain.receipt import Repeated, Stored
from aforesaid.domain.scope import Scope
from aforesaid.errors import NotFound
from aforesaid.store import Store, questions
from making import adding, minutes

ANN = Scope.of("ann")

Reports = list[tuple[str, int, int]]


def recorder(reports: Reports) -> Callable[[str, int, int], None]:
    return lambda *report: reports.append(report)


async def test_a_batch_gets_numbers_in_its_order_and_every_message_is_found_at_once(store: Store) -> None:
    receipt = await store.apply([adding(ANN, f"word{number} common") for number in range(2_500)])
    seqs = [result.message.seq for result in receipt.results]  # type: ignore[union-attr]
    assert seqs == sorted(seqs)
    assert await store.read(questions.MessageCount(ANN)) == 2_500
    for number in (0, 1_234, 2_499):
        (hit,) = await store.read(questions.SearchText(ANN, f"word{number}"))
        assert hit.text == f"word{number} common"
    assert (await store.verify()).ok


async def test_progress_counts_up_to_the_number_of_changes(store: Store) -> None:
    reports: Reports = []
    await store.apply([adding(ANN, f"text {number}") for number in range(2_100)], recorder(reports))
    stored = [(done, total) for what, done, total in reports if what == "stored"]
    assert stored == [(1_000, 2_100), (2_000, 2_100), (2_100, 2_100)]
    assert {what for what, _, _ in reports} <= {"prepared", "stored"}


async def test_nothing_is_stored_when_progress_raises(store: Store) -> None:
    def stop(what: str, done: int, _: int) -> None:
        if (what, done) == ("stored", 1_000):
            raise KeyError("stop")

    with pytest.raises(KeyError):
        await store.apply([adding(ANN, f"text {number}") for number in range(1_500)], stop)
    assert await store.read(questions.MessageCount(ANN)) == 0
    await store.apply([adding(ANN, "goes on")])
    assert await store.read(questions.MessageCount(ANN)) == 1
    assert (await store.verify()).ok


async def test_a_batch_with_one_message_that_is_refused_stores_nothing(store: Store) -> None:
    batch = [adding(ANN, f"text {number}") for number in range(300)]
    batch[250] = adding(ANN, "a new version of nothing", replaces="missing")
    with pytest.raises(NotFound):
        await store.apply(batch)
    assert await store.read(questions.MessageCount(ANN)) == 0


async def test_duplicates_are_recognised_among_the_batch_and_with_what_is_stored(store: Store) -> None:
    await store.apply([adding(ANN, "known", id="k"), adding(ANN, "timed", at=minutes(1))])
    receipt = await store.apply(
        [
            adding(ANN, "known", id="k"),
            adding(ANN, "new", id="n"),
            adding(ANN, "new again", id="n"),
            adding(ANN, "timed", at=minutes(1)),
            adding(ANN, "then", at=minutes(2)),
            adding(ANN, "something else", at=minutes(2)),
            adding(ANN, "then", at=minutes(2)),
            adding(ANN, "ok"),
            adding(ANN, "ok"),
        ]
    )
    kinds = [type(result) for result in receipt.results]
    assert kinds == [Repeated, Stored, Repeated, Repeated, Stored, Stored, Repeated, Stored, Stored]
    first, *_, again = [result.message for result in receipt.results[4:7]]  # type: ignore[union-attr]
    assert again == first
    assert receipt.results[2].message.text == "new"  # type: ignore[union-attr]
    assert (await store.verify()).ok
