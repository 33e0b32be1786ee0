"""The log, on every store: order, identity, duplicates, scope."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

import pytest

from aforesaid.domain.checks import Within
from aforesaid.domain.message import draft
from aforesaid.domain.receipt import Repeated, Stored
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import SummaryDraft
from aforesaid.errors import InvalidInput, NotFound, StoreClosed
from aforesaid.store import Store, open_store
from aforesaid.store.memories import Memories, NewestFacts
from aforesaid.store.messages import AddMessage, MessageById, Messages, MessagesAfter, Sessions, UserLedger
from aforesaid.store.people import PutSetting, Settings, Totals, Users
from aforesaid.store.searches import SearchText
from aforesaid.store.summaries import Archive, Summaries
from making import NOON, add, adding, minutes

pytestmark = pytest.mark.distributed

ANN = Scope.of("ann")
BOB = Scope.of("bob")
ANN_IN_GENERAL = Scope.of("ann", thread="general")
BOB_IN_GENERAL = Scope.of("bob", thread="general")


async def test_numbers_and_cursors_go_by_the_order_of_storing_whatever_the_clock_says(store: Store) -> None:
    await store.apply([adding(ANN, "first", at=minutes(10))])
    await store.apply([adding(ANN, "second", at=minutes(-600))])
    await store.apply([adding(ANN, "third", at=minutes(5))])
    assert [(message.seq, message.text) for message in await store.read(MessagesAfter(ANN, 0, 10))] == [
        (1, "first"),
        (2, "second"),
        (3, "third"),
    ]


async def test_a_message_comes_back_exactly_as_it_was_stored(store: Store) -> None:
    text = "naïve 👩‍👩‍👧 \u202eright to left\u202c שלום \x07\r\n\ttabs \ufeff end "
    receipt = await store.apply([adding(ANN, text, at=NOON, id="m:1", author="someone else", name="Señor \n X")])
    (stored,) = await store.read(Messages(ANN))
    assert stored == receipt.message
    assert (stored.text, stored.id, stored.author, stored.name) == (text, "m:1", "someone else", "Señor \n X")
    assert (stored.at, stored.role, stored.user, stored.thread) == (NOON, "user", "ann", "direct:ann")
    assert stored.stored_at > NOON


async def test_event_time_is_kept_to_the_microsecond_in_any_time_zone(store: Store) -> None:
    at = datetime(1969, 7, 20, 22, 17, 40, 123457, tzinfo=timezone(timedelta(hours=-5, minutes=-30)))
    await store.apply([adding(ANN, "The Eagle has landed", at=at)])
    (stored,) = await store.read(Messages(ANN))
    assert stored.at == at
    assert stored.at.tzinfo is UTC


async def test_history_can_be_read_page_by_page(store: Store) -> None:
    await add(store, ANN, *[f"message {number}" for number in range(7)])
    last = await store.read(Messages(ANN, limit=3))
    middle = await store.read(Messages(ANN, limit=3, before=last[0].seq))
    first = await store.read(Messages(ANN, limit=3, before=middle[0].seq))
    assert [message.text for message in first + middle + last] == [f"message {number}" for number in range(7)]


@pytest.mark.req("C10")
async def test_the_same_platform_id_in_a_thread_is_stored_once(store: Store) -> None:
    first = await store.apply([adding(ANN, "hello", id="42")])
    again = await store.apply([adding(ANN, "hello", id="42")])
    assert (first.duplicate, again.duplicate) == (False, True)
    assert again.message == first.message
    assert len(await store.read(Messages(ANN))) == 1


async def test_the_same_platform_id_in_another_thread_or_space_is_another_message(store: Store) -> None:
    for scope in (ANN, ANN_IN_GENERAL, Scope.of("ann", thread="random"), Scope.of("ann", space="elsewhere")):
        assert not (await store.apply([adding(scope, "hello", id="42")])).duplicate


@pytest.mark.req("C10")
async def test_the_same_words_at_the_same_given_time_are_one_message(store: Store) -> None:
    await store.apply([adding(ANN, "hello", at=NOON)])
    again = await store.apply([adding(ANN, "hello", at=NOON.astimezone(timezone(timedelta(hours=3))))])
    assert again.duplicate
    for different in (
        adding(ANN, "hello!", at=NOON),
        adding(ANN, "hello", at=minutes(1)),
        adding(ANN, "hello", "assistant", at=NOON),
        adding(ANN, "hello", at=NOON, author="carol"),
        adding(ANN_IN_GENERAL, "hello", at=NOON),
    ):
        assert not (await store.apply([different])).duplicate


async def test_a_person_who_says_ok_twice_has_said_it_twice(store: Store) -> None:
    await asyncio.gather(*[store.apply([adding(ANN, "ok")]) for _ in range(20)])
    assert len(await store.read(Messages(ANN))) == 20


async def test_two_platform_ids_are_two_messages_even_within_one_second(store: Store) -> None:
    await store.apply([adding(ANN, "ok", at=NOON, id="1")])
    assert not (await store.apply([adding(ANN, "ok", at=NOON, id="2")])).duplicate
    # An import without ids recognises what a bot stored with them, and the other way round.
    assert (await store.apply([adding(ANN, "ok", at=NOON)])).duplicate
    assert (await store.apply([adding(ANN, "yes", at=NOON)])).duplicate is False
    assert (await store.apply([adding(ANN, "yes", at=NOON, id="3")])).duplicate


async def test_the_assistant_may_say_the_same_to_two_people_at_one_moment(store: Store) -> None:
    for scope in (ANN_IN_GENERAL, BOB_IN_GENERAL):
        assert not (await store.apply([adding(scope, "Done.", "assistant", at=NOON)])).duplicate
        assert (await store.apply([adding(scope, "Done.", "assistant", at=NOON)])).duplicate


@pytest.mark.req("A17")
async def test_users_are_isolated_from_one_another(store: Store) -> None:
    mine = (await add(store, ANN, "my secret plan"))[0]
    await add(store, Scope.of("ann", space="elsewhere"), "another ann")
    await add(store, BOB, "nothing to see")
    assert [message.text for message in await store.read(Messages(BOB))] == ["nothing to see"]
    assert await store.read(SearchText(BOB, "secret plan ann")) == []
    with pytest.raises(NotFound):
        await store.read(MessageById(BOB, mine.id))
    # Where each space is numbered for itself, the number is that of a message there.
    with suppress(NotFound):
        assert (await store.read(MessageById(Scope.of("ann", space="elsewhere"), mine.id))).text == "another ann"
    with pytest.raises(NotFound):
        await store.read(MessageById(Scope.of("ann", space="nowhere"), mine.id))
    assert [user.messages for user in await store.read(Users())] == [1, 1, 1]


async def test_a_channel_is_seen_whole_only_when_asked_for(store: Store) -> None:
    await add(store, ANN_IN_GENERAL, "ann speaks of tea")
    await add(store, BOB_IN_GENERAL, "bob speaks of tea")
    await add(store, BOB, "bob alone, on tea")

    async def seen(scope: Scope, within: Within) -> tuple[list[str], set[str]]:
        listed = [message.text for message in await store.read(Messages(scope, within=within))]
        found = {hit.text for hit in await store.read(SearchText(scope, "tea", within=within))}
        return listed, found

    both = ["ann speaks of tea", "bob speaks of tea"]
    assert await seen(ANN_IN_GENERAL, "user") == (both[:1], set(both[:1]))
    assert await seen(ANN_IN_GENERAL, "thread") == (both, set(both))
    assert await seen(BOB, "thread") == (["bob alone, on tea"], {"bob alone, on tea"})


async def test_a_named_session_can_be_read_alone(store: Store) -> None:
    work = Scope.of("ann", session="work")
    await add(store, ANN, "about the weather")
    await add(store, work, "about the project")
    assert [message.text for message in await store.read(Messages(work, within="session"))] == ["about the project"]
    assert [hit.text for hit in await store.read(SearchText(work, "about", within="session"))] == ["about the project"]
    with pytest.raises(InvalidInput, match="needs a session"):
        await store.read(Messages(ANN, within="session"))


async def test_a_message_is_found_by_its_id_in_its_own_thread_first(store: Store) -> None:
    await store.apply([adding(Scope.of("ann", thread="random"), "there", id="7")])
    await store.apply([adding(ANN_IN_GENERAL, "here", id="7")])
    unnamed = (await add(store, ANN, "without an id"))[0]
    assert (await store.read(MessageById(ANN_IN_GENERAL, "7"))).text == "here"
    assert (await store.read(MessageById(ANN, "7"))).text == "here", "the newest, where the scope names no thread"
    assert await store.read(MessageById(ANN, unnamed.id)) == unnamed
    for unknown in ("8", "#999", "#1x"):
        with pytest.raises(NotFound):
            await store.read(MessageById(ANN, unknown))


async def test_of_several_messages_with_an_id_in_other_threads_the_newest_is_found(store: Store) -> None:
    for thread in ("first", "second", "third"):
        await store.apply([adding(Scope.of("ann", thread=thread), thread, id="7")])
    assert (await store.read(MessageById(ANN, "7"))).text == "third"
    assert (await store.read(MessageById(Scope.of("ann", thread="first"), "7"))).text == "first"


async def test_a_change_set_is_stored_as_a_whole_or_not_at_all(store: Store) -> None:
    await add(store, ANN, "before")
    bad = Archive(SummaryDraft(ANN, "a summary of nothing", messages=(4711,)))
    with pytest.raises(NotFound):
        await store.apply([adding(ANN, "half"), PutSetting(ANN, "x", 1), bad])
    assert [message.text for message in await store.read(Messages(ANN))] == ["before"]
    assert await store.read(SearchText(ANN, "half")) == []
    assert await store.read(Settings(ANN)) == []
    assert (await store.read(UserLedger(ANN))).messages == 1
    assert (await store.verify()).ok


async def test_a_change_set_answers_each_change_in_order(store: Store) -> None:
    receipt = await store.apply([adding(ANN, "one", id="1"), adding(ANN, "two"), adding(ANN, "one", id="1")])
    assert [type(result) for result in receipt.results] == [Stored, Stored, Repeated]
    texts = [result.message.text for result in receipt.results if isinstance(result, Stored | Repeated)]
    assert texts == ["one", "two", "one"]


async def test_one_failing_caller_does_not_disturb_the_others(store: Store) -> None:
    await add(store, ANN, "known")
    bad = Archive(SummaryDraft(ANN, "of nothing", messages=(4711,)))
    calls = [store.apply([bad if number % 3 == 0 else adding(ANN, f"message {number}")]) for number in range(30)]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(isinstance(outcome, NotFound) for outcome in outcomes) == 10
    assert len(await store.read(Messages(ANN))) == 21
    assert (await store.verify()).ok


@pytest.mark.req("C9")
async def test_concurrent_callers_keep_everything_consistent(store: Store) -> None:
    async def talk(user: str) -> None:
        scope = Scope.of(user, thread="general")
        for number in range(25):
            await store.apply([adding(scope, f"{user} {number}")])

    await asyncio.gather(*[talk(f"user{number}") for number in range(8)])
    everything = await store.read(Messages(Scope.of("user0", thread="general"), within="thread", limit=1000))
    assert [message.seq for message in everything] == sorted({message.seq for message in everything})
    for number in range(8):
        user = f"user{number}"
        own = [message.text for message in everything if message.user == user]
        assert own == [f"{user} {count}" for count in range(25)]
        assert (await store.read(UserLedger(Scope.of(user)))).messages == 25
    assert (await store.verify()).ok


async def test_a_user_nobody_has_heard_of_has_nothing(store: Store) -> None:
    stranger = Scope.of("stranger", thread="nowhere", session="never")
    assert await store.read(Messages(stranger)) == []
    assert await store.read(Messages(stranger, within="thread")) == []
    assert await store.read(Messages(stranger, within="session")) == []
    assert await store.read(SearchText(stranger, "anything")) == []
    assert await store.read(SearchText(stranger, "anything", within="thread")) == []
    assert await store.read(Summaries(stranger)) == []
    assert await store.read(Memories(stranger)) == []
    assert await store.read(Sessions(stranger)) == []
    assert await store.read(NewestFacts(stranger)) is None
    assert (await store.read(UserLedger(stranger))).messages == 0
    assert await store.read(Users()) == []


async def test_totals_and_users_are_counted(store: Store) -> None:
    await add(store, ANN, "one", "two")
    await add(store, Scope.of("bob", space="other"), "three")
    await add(store, ANN, "a reply", role="assistant")
    stats = await store.read(Totals())
    assert (stats.spaces, stats.users, stats.messages, stats.archived, stats.threads) == (2, 2, 4, 0, 2)
    assert stats.bytes > 0
    assert [(user.space, user.id, user.messages) for user in await store.read(Users())] == [
        ("default", "ann", 3),
        ("other", "bob", 1),
    ]
    assert [user.id for user in await store.read(Users("other"))] == ["bob"]
    ledger = await store.read(UserLedger(ANN))
    assert (ledger.messages, ledger.turns, ledger.open_turns) == (3, 2, 2)
    await store.apply([PutSetting(Scope.of("*"), "mine", 1)])
    assert (await store.read(Totals())).users == 2, "what is set for a whole space is nobody"


async def test_a_closed_store_says_so(location: str) -> None:
    store = await open_store(location)
    await add(store, ANN, "hello")
    await store.close()
    await store.close()
    with pytest.raises(StoreClosed):
        await store.apply([adding(ANN, "too late")])
    with pytest.raises(StoreClosed):
        await store.read(Messages(ANN))


async def test_health_answers(store: Store) -> None:
    await add(store, ANN, "hello")
    health = await store.health()
    assert (health.name, health.status, health.issues) == ("store", "active", ())
    assert health.last_update is not None


async def test_receipts_tell_whether_the_message_would_survive(store: Store, location: str) -> None:
    receipt = await store.apply([AddMessage(draft(ANN, "user", "hello"))])
    assert receipt.durable is (location != ":memory:")
