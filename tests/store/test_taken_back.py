"""A change set that is refused leaves nothing behind: not in the store, and not in what its writer remembers."""

from __future__ import annotations

import asyncio

import pytest

from aforesaid.domain.receipt import Receipt
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import SummaryDraft
from aforesaid.errors import NotFound
from aforesaid.store import Store
from aforesaid.store.messages import Messages, Sessions, UserLedger
from aforesaid.store.operations import Change
from aforesaid.store.people import Users
from aforesaid.store.searches import SearchText
from aforesaid.store.summaries import Archive
from making import adding, minutes

ANN, BOB = Scope.of("ann"), Scope.of("bob")


def impossible(scope: Scope) -> Change:
    """A change that is refused: there are no such messages."""
    return Archive(SummaryDraft(scope, "of nothing", messages=(7_777,)))


async def refused(store: Store, scope: Scope, *texts: str) -> None:
    """Try to store messages together with what cannot be."""
    with pytest.raises(NotFound):
        await store.apply([*[adding(scope, text) for text in texts], impossible(scope)])


async def texts(store: Store, scope: Scope) -> list[str]:
    return [message.text for message in await store.read(Messages(scope, limit=100))]


async def test_a_person_who_was_refused_is_not_taken_for_the_next_one(store: Store) -> None:
    await refused(store, ANN, "never said")
    assert await store.read(Users()) == []
    await store.apply([adding(BOB, "from Bob")])
    assert [user.id for user in await store.read(Users())] == ["bob"]
    await store.apply([adding(ANN, "from Ann")])
    assert (await texts(store, ANN), await texts(store, BOB)) == (["from Ann"], ["from Bob"])
    assert sorted(user.id for user in await store.read(Users())) == ["ann", "bob"]
    assert (await store.verify()).ok


async def test_an_author_who_was_refused_is_not_taken_for_the_next_one(store: Store) -> None:
    await store.apply([adding(ANN, "hello")])
    with pytest.raises(NotFound):
        await store.apply([adding(ANN, "never said", author="carl"), impossible(ANN)])
    await store.apply([adding(ANN, "from Dora", author="dora")])
    await store.apply([adding(ANN, "from Carl", author="carl")])
    authors = [(message.author, message.text) for message in await store.read(Messages(ANN))]
    assert authors == [("ann", "hello"), ("dora", "from Dora"), ("carl", "from Carl")]


async def test_a_thread_that_was_refused_is_not_taken_for_the_next_one(store: Store) -> None:
    kitchen, garden = Scope.of("ann", thread="kitchen"), Scope.of("ann", thread="garden")
    await store.apply([adding(ANN, "hello")])
    await refused(store, kitchen, "never said")
    await store.apply([adding(garden, "in the garden")])
    await store.apply([adding(kitchen, "in the kitchen")])
    threads = [(message.thread, message.text) for message in await store.read(Messages(ANN))]
    assert threads[1:] == [("garden", "in the garden"), ("kitchen", "in the kitchen")]
    assert [session.messages for session in await store.read(Sessions(ANN))] == [1, 1, 1]
    assert (await store.verify()).ok


async def test_a_session_that_was_refused_is_begun_by_the_next_message(store: Store) -> None:
    await store.apply([adding(ANN, "at noon", at=minutes(0))])
    with pytest.raises(NotFound):
        await store.apply([adding(ANN, "never said", at=minutes(100)), impossible(ANN)])
    with pytest.raises(NotFound):
        await store.apply([adding(ANN, "never said either", at=minutes(20)), impossible(ANN)])
    # Twenty minutes after what was refused, but forty after what was said.
    await store.apply([adding(ANN, "later", at=minutes(40))])
    sessions = sorted(await store.read(Sessions(ANN)), key=lambda session: session.started_at)
    assert [(session.started_at, session.last_activity, session.messages) for session in sessions] == [
        (minutes(0), minutes(0), 1),
        (minutes(40), minutes(40), 1),
    ]
    assert (await store.verify()).ok


async def test_an_id_that_was_refused_can_be_used(store: Store) -> None:
    with pytest.raises(NotFound):
        await store.apply([adding(ANN, "never said", id="m-1", at=minutes(0)), impossible(ANN)])
    receipt = await store.apply([adding(ANN, "said", id="m-1", at=minutes(0))])
    assert not receipt.duplicate
    assert await texts(store, ANN) == ["said"]
    assert [hit.text for hit in await store.read(SearchText(ANN, "said"))] == ["said"]


async def test_of_those_who_are_stored_together_only_the_refused_one_is_taken_back(store: Store) -> None:
    people = [Scope.of(f"user {number}") for number in range(12)]
    await asyncio.gather(*[store.apply([adding(scope, "first")]) for scope in people])

    def change_set(number: int, scope: Scope) -> list[Change]:
        said: list[Change] = [adding(scope, f"one {number}"), adding(scope, f"two {number}")]
        return [*said, impossible(scope)] if number % 3 == 1 else said

    outcomes = await asyncio.gather(
        *[store.apply(change_set(number, scope)) for number, scope in enumerate(people)], return_exceptions=True
    )
    expected = [NotFound if number % 3 == 1 else Receipt for number in range(12)]
    assert [type(outcome) for outcome in outcomes] == expected
    for number, scope in enumerate(people):
        said = [] if number % 3 == 1 else [f"one {number}", f"two {number}"]
        assert await texts(store, scope) == ["first", *said]
        assert (await store.read(UserLedger(scope))).messages == 1 + len(said)
        assert [session.messages for session in await store.read(Sessions(scope))] == [1 + len(said)]
    await asyncio.gather(*[store.apply([adding(scope, "last")]) for scope in people])
    numbers = [message.seq for scope in people for message in await store.read(Messages(scope))]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    assert (await store.verify()).ok


async def test_a_message_that_waits_to_be_written_outlives_a_refused_neighbour(store: Store) -> None:
    await store.apply([adding(ANN, "first")])
    before, never, after = await asyncio.gather(
        store.apply([adding(ANN, "before")]),
        store.apply([adding(BOB, "never said"), impossible(BOB)]),
        store.apply([adding(ANN, "after")]),
        return_exceptions=True,
    )
    assert [type(outcome) for outcome in (before, never, after)] == [Receipt, NotFound, Receipt]
    assert [(message.seq, message.text) for message in await store.read(Messages(ANN))] == [
        (1, "first"),
        (2, "before"),
        (3, "after"),
    ]
    assert [hit.text for hit in await store.read(SearchText(ANN, "before"))] == ["before"]
    assert await texts(store, BOB) == []
    assert (await store.verify()).ok


async def test_messages_of_one_turn_are_numbered_without_a_gap(store: Store) -> None:
    await asyncio.gather(*[store.apply([adding(ANN, f"text {number}")]) for number in range(5)])
    await store.apply([adding(ANN, "last")])
    assert [message.seq for message in await store.read(Messages(ANN))] == list(range(1, 7))
