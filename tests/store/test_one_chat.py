"""Summaries, windows and status of one chat alone, on every store."""

from __future__ import annotations

import pytest

import aforesaid
from aforesaid import Message
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import ViewDraft
from aforesaid.store import Store
from aforesaid.store.messages import UserLedger
from aforesaid.store.summaries import AddView
from making import add, archive

ANN = Scope.of("ann")
ONE = Scope.of("ann", thread="chat-1")
TWO = Scope.of("ann", thread="chat-2")

pytestmark = [pytest.mark.req("G9"), pytest.mark.defect("B11")]


async def rolled(store: Store, scope: Scope, messages: list[Message], text: str) -> int:
    first, last = messages[0].seq, messages[-1].seq
    draft = ViewDraft(scope, "rolling", text, first, last, len(messages), reach="thread")
    return (await store.apply([AddView(draft)])).summary.id


async def test_a_chat_has_counts_of_its_own(store: Store) -> None:
    await rolled(store, ONE, await add(store, ONE, "one", "two"), "The first chat.")
    await add(store, TWO, "three")
    await add(store, ONE, "four")
    await add(store, Scope.of("bob", thread="chat-1"), "Bob's")
    await add(store, ONE, "an answer", role="assistant")
    here = await store.read(UserLedger(ONE, here=True))
    assert (here.messages, here.turns, here.open_turns, here.active_summaries) == (4, 3, 1, ((1, 1),))
    there = await store.read(UserLedger(TWO, here=True))
    assert (there.messages, there.turns, there.open_turns, there.active_summaries) == (1, 1, 1, ())
    nobody = await store.read(UserLedger(Scope.of("nobody", thread="chat-1"), here=True))
    assert (nobody.messages, nobody.last_seq, nobody.highest_level) == (0, 0, 0)
    assert (await store.read(UserLedger(ONE))).messages == 5, "all chats together"


async def test_archived_messages_of_a_chat_are_counted_there(store: Store) -> None:
    one, two = await add(store, ONE, "one", "two"), await add(store, TWO, "three")
    await archive(store, ANN, [*one, *two])
    here = await store.read(UserLedger(ONE, here=True))
    assert (here.messages, here.archived, here.open_turns) == (2, 2, 0)


async def test_summaries_can_be_asked_for_one_chat(location: str) -> None:
    async with aforesaid.connect(location) as memory:
        one, two = memory.user("ann", thread="chat-1"), memory.user("ann", thread="chat-2")
        for number, chat in enumerate((one, two, one, two)):
            await chat.add("user", f"message {number}")
        first = await one.update_summary("The first chat.", 2)
        second = await two.update_summary("The second chat.", 1)
        archived = (await memory.user("ann").summarize())[0]
        assert [each.id for each in await one.summaries(kind="rolling")] == [first.id]
        assert [each.id for each in await two.summaries(kind="rolling")] == [second.id]
        assert {each.id for each in await one.summaries()} == {first.id, archived.id}
        assert [each.id for each in await memory.user("ann").summaries(thread="chat-2")] == [second.id]
        assert [each.id for each in await one.summaries(thread="chat-2")] == [second.id]
        every = {first.id, second.id, archived.id}
        assert {each.id for each in await memory.user("ann").summaries()} == every
        assert {each.id for each in await one.summaries(every_thread=True)} == every
        current = await one.current_summary()
        assert current is not None
        assert current.text == "The first chat."
        assert await memory.user("ann", thread="chat-3").current_summary() is None


async def test_windows_and_status_can_be_asked_for_one_chat(location: str) -> None:
    async with aforesaid.connect(location, profile="account") as memory:
        one, two = memory.user("ann", thread="chat-1"), memory.user("ann", thread="chat-2")
        for number in range(55):
            await one.add("user", f"one {number}")
            await two.add("user", f"two {number}")
        tiers = await one.tiers(within="thread")
        assert [message.text for message in tiers.short_term] == [f"one {number}" for number in range(5, 55)]
        assert [message.text for message in tiers.mid_term] == [f"one {number}" for number in range(5)]
        assert tiers.messages == 55
        everything = await one.tiers()
        assert (len(everything.short_term), len(everything.mid_term), everything.messages) == (50, 60, 110)
        assert (await two.status(within="thread")).messages == 55
        assert (await two.status()).messages == 110
