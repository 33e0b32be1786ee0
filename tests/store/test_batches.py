"""Change sets of many messages, on every store."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from aforesaid.domain.receipt import Repeated, Stored
from aforesaid.domain.scope import Scope
from aforesaid.errors import NotFound
from aforesaid.store import Store
from aforesaid.store.messages import AddMessage, AddMessages, MessageCount, Messages, Sessions
from aforesaid.store.searches import SearchText
from making import adding, minutes

ANN = Scope.of("ann")

Reports = list[tuple[str, int, int]]


def recorder(reports: Reports) -> Callable[[str, int, int], None]:
    return lambda *report: reports.append(report)


async def test_a_batch_gets_numbers_in_its_order_and_every_message_is_found_at_once(store: Store) -> None:
    receipt = await store.apply([adding(ANN, f"word{number} common") for number in range(2_500)])
    seqs = [result.message.seq for result in receipt.results]  # type: ignore[union-attr]
    assert seqs == sorted(seqs)
    assert await store.read(MessageCount(ANN)) == 2_500
    for number in (0, 1_234, 2_499):
        (hit,) = await store.read(SearchText(ANN, f"word{number}"))
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
    assert await store.read(MessageCount(ANN)) == 0
    await store.apply([adding(ANN, "goes on")])
    assert await store.read(MessageCount(ANN)) == 1
    assert (await store.verify()).ok


async def test_a_batch_with_one_message_that_is_refused_stores_nothing(store: Store) -> None:
    batch = [adding(ANN, f"text {number}") for number in range(300)]
    batch[250] = adding(ANN, "a new version of nothing", replaces="missing")
    with pytest.raises(NotFound):
        await store.apply(batch)
    assert await store.read(MessageCount(ANN)) == 0


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


def plain(scope: Scope) -> list[AddMessage]:
    return [adding(scope, f"text {place}", "assistant" if place % 3 else "user") for place in range(250)]


def with_ids(scope: Scope) -> list[AddMessage]:
    """Some ids come twice, and one was stored before."""
    return [adding(scope, f"text {place}", id=f"m{place % 240}") for place in range(250)]


def in_sessions(scope: Scope) -> list[AddMessage]:
    """An hour of silence after every hundred messages, and one that was written before all others."""
    times = [place + 60 * (place // 100) for place in range(250)]
    return [adding(scope, f"text {place}", at=minutes(time)) for place, time in enumerate([*times, -90])]


def at_one_time(scope: Scope) -> list[AddMessage]:
    return [adding(scope, f"text {place % 200}", at=minutes(place % 200 // 50)) for place in range(250)]


def by_authors(scope: Scope) -> list[AddMessage]:
    return [adding(scope, f"text {place}", author=f"author {place % 5}", name="N", kind="note") for place in range(250)]


def of_a_named_session(scope: Scope) -> list[AddMessage]:
    return plain(scope._replace(session="breakfast"))


def with_a_new_version(scope: Scope) -> list[AddMessage]:
    return [*with_ids(scope), adding(scope, "better", replaces="m7")]


BATCHES = [plain, with_ids, in_sessions, at_one_time, by_authors, of_a_named_session, with_a_new_version]


@pytest.mark.parametrize("made", BATCHES, ids=[each.__name__ for each in BATCHES])
@pytest.mark.parametrize("thread", [None, "kitchen"])
async def test_a_batch_is_stored_as_a_list_of_the_same_messages(
    store: Store, made: Callable[[Scope], list[AddMessage]], thread: str | None
) -> None:
    stored = []
    for user in ("ann", "bob"):
        scope = Scope.of(user, thread=thread and f"{thread} of {user}")
        await store.apply([adding(scope, "text 3", id="m3", at=minutes(3))])
        changes = made(scope)
        batch = AddMessages([change.draft for change in changes], changes[0].silence)
        kinds = [type(result) for result in (await store.apply(changes if user == "ann" else batch)).results]
        messages = await store.read(Messages(scope, limit=1_000, versions=True))
        seen = [
            (each.role, each.text, each.author.replace(user, "USER"), each.name, each.details, each.replaced)
            for each in messages
        ]
        sessions = await store.read(Sessions(scope, limit=100))
        counts = sorted((session.messages, session.id.startswith("s-")) for session in sessions)
        found = await store.read(SearchText(scope, "text 7 better", limit=1_000))
        stored.append((kinds, seen, counts, sorted((hit.text, round(hit.score, 6)) for hit in found)))
    assert stored[0] == stored[1]
    assert (await store.verify()).ok


async def test_a_batch_after_messages_of_a_later_time_is_compared_with_them(store: Store) -> None:
    await store.apply([adding(ANN, "said later", at=minutes(500))])
    batch = [adding(ANN, f"text {place}", at=minutes(place)).draft for place in range(250)]
    again = AddMessages([*batch, adding(ANN, "said later", at=minutes(500)).draft])
    assert [type(result) for result in (await store.apply(again)).results] == [*[Stored] * 250, Repeated]
    assert {type(result) for result in (await store.apply(again)).results} == {Repeated}


def test_the_change_set_of_a_batch_is_a_sequence_of_changes() -> None:
    changes = [adding(ANN, f"text {place}") for place in range(5)]
    batch = AddMessages([change.draft for change in changes], changes[0].silence)
    assert [*batch] == changes
    assert (len(batch), batch[3], [*batch[1:3]]) == (5, changes[3], changes[1:3])
