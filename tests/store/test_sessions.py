"""Sessions on every store, and the property that makes late messages harmless."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid.domain.message import Message, draft
from aforesaid.domain.scope import Scope, Session
from aforesaid.errors import InvalidInput
from aforesaid.store import Store
from aforesaid.store.dumping import Restore
from aforesaid.store.messages import AddMessage, Messages, Sessions
from aforesaid.store.operations import Change
from aforesaid.store.people import Totals
from aforesaid.store.sqlite import MemoryStore
from making import NOON, adding, minutes

ANN = Scope.of("ann")


def times(sessions: list[Session]) -> list[tuple[float, float, int]]:
    """Sessions as (start, end, messages), in minutes after noon."""

    def after_noon(session: Session) -> tuple[float, float, int]:
        start = (session.started_at - NOON) / timedelta(minutes=1)
        return start, (session.last_activity - NOON) / timedelta(minutes=1), session.messages

    return [after_noon(session) for session in sessions]


async def say_at(store: Store, *moments: float, scope: Scope = ANN) -> None:
    for number, moment in enumerate(moments):
        await store.apply([adding(scope, f"message {number}", at=minutes(moment))])


@pytest.mark.req("D4")
async def test_a_session_opens_with_the_first_message_and_closes_after_thirty_minutes_of_silence(store: Store) -> None:
    await say_at(store, 0, 10, 39.9, 69.9, 100)
    sessions = await store.read(Sessions(ANN))
    assert times(sessions) == [(0, 39.9, 3), (69.9, 69.9, 1), (100, 100, 1)]
    first = sessions[0]
    assert (first.id, first.user, first.thread, first.space) == ("s-1", "ann", "direct:ann", "default")
    assert [first.state(minutes(at)) for at in (39.9, 49.8, 49.9, 69.8, 69.9)] == [
        "active",
        "active",
        "idle",
        "idle",
        "closed",
    ]
    assert [message.session for message in await store.read(Messages(ANN))] == [
        "s-1",
        "s-1",
        "s-1",
        "s-4",
        "s-5",
    ]


@pytest.mark.req("D4")
async def test_a_late_message_joins_the_session_it_was_said_in(store: Store) -> None:
    await say_at(store, 0, 20, 200, 210, 5)
    assert times(await store.read(Sessions(ANN))) == [(0, 20, 3), (200, 210, 2)]
    assert [message.session for message in await store.read(Messages(ANN))] == [
        "s-1",
        "s-1",
        "s-1",
        "s-3",
        "s-3",
    ]


@pytest.mark.req("D4")
async def test_a_late_message_that_ends_the_silence_makes_two_sessions_one(store: Store) -> None:
    await say_at(store, 40, 0, 20)
    assert times(await store.read(Sessions(ANN))) == [(0, 40, 3)]
    assert {message.session for message in await store.read(Messages(ANN))} == {"s-2"}
    assert (await store.read(Totals())).sessions == 1
    assert (await store.verify()).ok


async def test_threads_have_sessions_of_their_own(store: Store) -> None:
    general = Scope.of("ann", thread="general")
    await say_at(store, 0, 5)
    await say_at(store, 1, scope=general)
    await say_at(store, 2, scope=Scope.of("bob", thread="general"))
    assert times(await store.read(Sessions(ANN))) == [(0, 5, 2), (1, 2, 2)]
    assert times(await store.read(Sessions(general, within="thread"))) == [(1, 2, 2)]
    assert times(await store.read(Sessions(Scope.of("bob")))) == [(1, 2, 2)]


async def test_a_named_session_lasts_as_long_as_its_name_is_used(store: Store) -> None:
    work = Scope.of("ann", session="work")
    await say_at(store, 0, 500, scope=work)
    await say_at(store, 1)
    sessions = await store.read(Sessions(ANN))
    assert times(sessions) == [(0, 500, 2), (1, 1, 1)]
    assert [session.id for session in sessions] == ["work", "s-3"]


async def test_a_session_that_the_log_opened_can_be_continued_by_name_but_not_invented(store: Store) -> None:
    await say_at(store, 0)
    await say_at(store, 300, scope=Scope.of("ann", session="s-1"))
    assert times(await store.read(Sessions(ANN))) == [(0, 300, 2)]
    with pytest.raises(InvalidInput, match="s-77"):
        await say_at(store, 400, scope=Scope.of("ann", session="s-77"))


async def test_the_name_of_a_session_stays_good_when_it_becomes_part_of_another(store: Store) -> None:
    await say_at(store, 40, 0, 20)
    assert [session.id for session in await store.read(Sessions(ANN))] == ["s-2"]
    await say_at(store, 50, scope=Scope.of("ann", session="s-1"))
    assert [(session.id, session.messages) for session in await store.read(Sessions(ANN))] == [("s-2", 4)]
    assert (await store.verify()).ok


async def test_a_session_that_is_continued_by_name_no_longer_follows_the_silences(store: Store) -> None:
    await say_at(store, 0)
    await say_at(store, 500, scope=Scope.of("ann", session="s-1"))
    await say_at(store, 100, 505)
    assert times(await store.read(Sessions(ANN))) == [(0, 500, 2), (100, 100, 1), (505, 505, 1)]


async def test_the_timeout_can_be_chosen(store: Store) -> None:
    for moment in (0, 3, 9):
        new = draft(ANN, "user", "hello", at=minutes(moment))
        await store.apply([AddMessage(new, silence=5 * 60 * 1_000_000)])
    sessions = await store.read(Sessions(ANN))
    assert times(sessions) == [(0, 3, 2), (9, 9, 1)]
    assert sessions[0].timeout == timedelta(minutes=5)


@given(moments=st.lists(st.integers(0, 300), min_size=1, max_size=25, unique=True), seed=st.randoms())
async def test_any_order_of_arrival_gives_the_same_sessions(moments: list[int], seed: random.Random) -> None:
    expected: list[list[int]] = [[min(moments)]]
    for earlier, later in pairwise(sorted(moments)):
        if later - earlier < 30:
            expected[-1].append(later)
        else:
            expected.append([later])
    seed.shuffle(moments)
    store = MemoryStore()
    await say_at(store, *moments)
    assert times(await store.read(Sessions(ANN))) == [(part[0], part[-1], len(part)) for part in expected]
    by_name: dict[str, set[float]] = {}
    for message in await store.read(Messages(ANN)):
        by_name.setdefault(message.session, set()).add((message.at - NOON) / timedelta(minutes=1))
    assert sorted(by_name.values(), key=min) == [set(part) for part in expected]


@pytest.mark.parametrize("in_one", [False, True])
async def test_a_named_session_among_messages_that_are_stored_together(store: Store, in_one: bool) -> None:  # noqa: FBT001
    work = Scope.of("ann", session="work")
    said = [(ANN, 0), (ANN, 10), (work, 11), (work, 12), (ANN, 20), (ANN, 90)]
    changes = [adding(scope, f"at {at}", at=minutes(at)) for scope, at in said]
    await asyncio.gather(*[store.apply(each) for each in ([changes] if in_one else [[change] for change in changes])])
    await store.apply([adding(ANN, "at 91", at=minutes(91))])
    found = {session.id: session for session in await store.read(Sessions(ANN))}
    assert (found["work"].messages, found["work"].started_at, found["work"].last_activity) == (
        2,
        minutes(11),
        minutes(12),
    )
    assert sum(session.messages for session in found.values()) == 7
    newest = (await store.read(Messages(ANN, limit=1)))[0].session
    assert (found[newest].messages, found[newest].last_activity) == (2, minutes(91))
    assert (await store.verify()).ok


@pytest.mark.parametrize("in_one", [False, True])
async def test_a_session_that_is_named_among_messages_stored_together_ends_there(store: Store, in_one: bool) -> None:  # noqa: FBT001
    named = Scope.of("ann", session="s-1")
    changes = [adding(scope, f"at {at}", at=minutes(at)) for scope, at in ((ANN, 0), (named, 5), (ANN, 10))]
    await asyncio.gather(*[store.apply(each) for each in ([changes] if in_one else [[change] for change in changes])])
    await store.apply([adding(ANN, "at 20", at=minutes(20))])
    found = await store.read(Sessions(ANN))
    assert times(found) == [(0, 5, 2), (10, 20, 2)]
    assert [session.id for session in found] == ["s-1", "s-3"]
    assert (await store.verify()).ok


async def said_elsewhere(at: float) -> Message:
    """A message of another store, with a number that is beyond all that are given out here."""
    elsewhere = MemoryStore()
    await say_at(elsewhere, *range(10_000, 10_900, 100), at)
    (message,) = [each for each in await elsewhere.read(Messages(ANN, limit=100)) if each.at == minutes(at)]
    return message


@pytest.mark.parametrize("late", [True, False])
async def test_a_session_that_comes_back_counts_for_the_next_message(store: Store, late: bool) -> None:  # noqa: FBT001
    await say_at(store, 40, 42, 44)
    back = await said_elsewhere(20 if late else 70)
    await store.apply([Restore(back)])
    assert len(await store.read(Sessions(ANN))) == 2, "it stays in the session that it had"
    await say_at(store, 45 if late else 50)
    assert times(await store.read(Sessions(ANN))) == [(20, 45, 5) if late else (40, 70, 5)]
    assert (await store.verify()).ok


async def test_a_message_that_comes_back_into_a_session_between_new_ones(store: Store) -> None:
    await say_at(store, 0, 1, 2)
    back = replace(await said_elsewhere(5), session="s-1")
    changes: list[Change] = [adding(ANN, "at 4", at=minutes(4)), Restore(back), adding(ANN, "at 6", at=minutes(6))]
    await store.apply(changes)
    assert times(await store.read(Sessions(ANN))) == [(0, 6, 6)]
    await say_at(store, 36)
    assert times(await store.read(Sessions(ANN))) == [(0, 6, 6), (36, 36, 1)]
    assert (await store.verify()).ok
