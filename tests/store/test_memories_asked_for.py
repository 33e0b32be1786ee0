"""Memories are asked for by what is needed of them, on every store."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from aforesaid.domain.memory import Event, MemoryDraft, MemoryRecord
from aforesaid.domain.scope import Scope
from aforesaid.store import Store
from aforesaid.store.memories import (
    AddMemory,
    ChangeMemory,
    ImportantMemories,
    MemoriesByNumber,
    PastAndComing,
    StandingRequests,
    WaitingReminders,
)
from aforesaid.store.searches import SearchMemories
from making import NOON, add, minutes

ANN = Scope.of("ann")
BOB = Scope.of("bob")


async def remember(store: Store, text: str, scope: Scope = ANN, **more: Any) -> MemoryRecord:  # noqa: ANN401
    more = {"category": "fact", **more}
    return (await store.apply([AddMemory(MemoryDraft(scope, text=text, **more))])).memory


async def end(store: Store, memory: MemoryRecord, **more: Any) -> None:  # noqa: ANN401
    await store.apply([ChangeMemory(replace(memory, active=False, **more), "end")])


async def found(store: Store, words: str, messages: tuple[tuple[int, float], ...] = (), **more: Any) -> list[int]:  # noqa: ANN401
    asked = SearchMemories(ANN, words, messages, **{"limit": 10, **more})
    return [memory.id for memory, _ in await store.read(asked)]


async def test_the_newest_standing_requests_of_the_user_come_first(store: Store) -> None:
    old, new, newest = [
        await remember(store, f"Ann asks: {number}", kind="instruction", category="preference") for number in range(3)
    ]
    await remember(store, "Bob asks", kind="instruction", category="preference", speaker="bob")
    await remember(store, "likes tea", category="preference")
    await remember(store, "of somebody else", BOB, kind="instruction", category="preference")
    await end(store, newest, state="deactivated")
    assert await store.read(StandingRequests(ANN, 10)) == [new, old]
    assert await store.read(StandingRequests(ANN, 1)) == [new]


async def test_the_most_important_memories_leave_out_what_is_shown_elsewhere_or_describes_nobody(store: Store) -> None:
    usual = await remember(store, "likes tea")
    allergy = await remember(store, "is allergic to nuts", importance=9)
    request = await remember(store, "asks for metric units", kind="instruction", category="preference")
    reminder = await remember(store, "call Tom", category="reminder", importance=10, remind_at=minutes(5))
    tom = await remember(store, "Tom likes chess", about="Tom")
    over = await remember(store, "is ill", expires_at=minutes(0))
    await remember(store, "Ann is lazy, says Bob", trust="reported", speaker="bob")
    told = await remember(store, "Eve is her sister", about="Eve", extractor="rules")
    await end(store, await remember(store, "was poor", importance=10), state="deactivated")
    await remember(store, "of somebody else", BOB)
    assert await store.read(ImportantMemories(ANN, 10)) == [reminder, allergy, told, over, tom, usual]
    assert await store.read(ImportantMemories(ANN, 2)) == [reminder, allergy]
    assert await store.read(ImportantMemories(ANN, 10, describing=True)) == [allergy, told, request, usual]


async def test_reminders_that_wait_come_soonest_first_and_those_without_a_time_last(store: Store) -> None:
    someday = await remember(store, "someday", category="reminder")
    later = await remember(store, "later", category="reminder", remind_at=minutes(9))
    soon = await remember(store, "soon", category="task", remind_at=minutes(5))
    done = await remember(store, "done", category="reminder", remind_at=minutes(1))
    await store.apply([ChangeMemory(replace(done, delivered_at=minutes(2)), "deliver")])
    await remember(store, "no reminder", category="task")
    await remember(store, "of somebody else", BOB, category="reminder")
    assert await store.read(WaitingReminders(ANN)) == [soon, later, someday]
    assert await store.read(WaitingReminders(ANN, due=minutes(5))) == [soon]


async def test_memories_are_read_by_number_in_any_state_and_only_those_of_the_user(store: Store) -> None:
    first, second, other = await remember(store, "1"), await remember(store, "2"), await remember(store, "3", BOB)
    await end(store, second, state="deactivated")
    read = await store.read(MemoriesByNumber(ANN, [second.id, other.id, first.id, 999]))
    assert [(each.id, each.state) for each in read] == [(first.id, "active"), (second.id, "deactivated")]
    assert await store.read(MemoriesByNumber(ANN, [])) == []


async def test_what_took_place_or_will_comes_in_its_order_and_by_period(store: Store) -> None:
    day = timedelta(days=1)
    trip = await remember(store, "trip", event=Event(NOON, NOON + 3 * day, timed=False))
    party = await remember(store, "party", kind="event", said_at=NOON - 5 * day)
    exam = await remember(store, "exam", category="schedule", event=Event(NOON + 9 * day, NOON + 9 * day, timed=True))
    over = await remember(store, "fair", category="schedule", event=Event(NOON - day, NOON - day, timed=True))
    await end(store, over, state="expired")
    await end(store, await remember(store, "forgotten", kind="event", said_at=NOON), state="deactivated")
    moved = await remember(store, "moved", kind="event", event=Event(NOON, NOON + 4 * day, timed=False))
    await end(store, moved, state="superseded", valid_to=NOON + day)
    replaced = await remember(store, "fell", kind="event", event=Event(NOON - 7 * day, NOON - 7 * day, timed=False))
    await end(store, replaced, state="superseded", valid_to=NOON + day)
    await remember(store, "ring", category="reminder", event=Event(NOON, NOON, timed=True), remind_at=NOON)
    await remember(store, "likes tea")
    every = [replaced.id, party.id, over.id, trip.id, exam.id]

    async def ids(limit: int = 10, *periods: tuple[Any, Any]) -> list[int]:
        return [each.id for each in await store.read(PastAndComing(ANN, limit, periods))]

    assert await ids() == every
    assert await ids(2) == [trip.id, exam.id]
    assert await ids(10, (NOON + 2 * day, NOON + 4 * day)) == [trip.id]
    assert await ids(10, (NOON - 6 * day, NOON - 4 * day), (NOON + 9 * day, NOON + 10 * day)) == [party.id, exam.id]
    assert await found(store, "trip party exam moved", dated=True) == [exam.id, party.id, trip.id]
    assert await found(store, "trip party", dated=True, periods=[(NOON + 2 * day, NOON + 4 * day)]) == [trip.id]


async def test_the_memory_with_most_of_the_words_comes_first_and_one_with_all_is_wholly_relevant(store: Store) -> None:
    home = await remember(store, "Ann lives in Berlin.")
    chess = await remember(store, "Ann plays chess in Berlin.")
    read = await store.read(SearchMemories(ANN, "Who plays chess in Berlin?", (), 10))
    assert [memory for memory, _ in read] == [chess, home]
    assert read[0][1] == 1.0
    assert 0.2 < read[1][1] < 0.5
    assert await found(store, "Who plays chess in Berlin?", limit=1) == [chess.id]


async def test_of_equally_relevant_memories_the_more_important_one_comes_first(store: Store) -> None:
    usual = await remember(store, "Ann likes tea.")
    important = await remember(store, "Ann is allergic to tea.", importance=9)
    assert await found(store, "Is there tea?") == [important.id, usual.id]


async def test_a_question_without_a_word_of_its_own_is_about_nothing(store: Store) -> None:
    await remember(store, "Ann is at home.")
    assert await found(store, "Who is it?") == []
    assert await found(store, "") == []
    assert await found(store, '"home" OR (x') != []


async def test_a_memory_that_rests_on_a_message_that_was_found_is_found_with_its_relevance(store: Store) -> None:
    first, second = await add(store, ANN, "one", "two")
    of_both = await remember(store, "counts", sources=(first.seq, second.seq))
    of_one = await remember(store, "begins", sources=(first.seq,))
    (other,) = await add(store, BOB, "three")
    await remember(store, "of somebody else", BOB, sources=(other.seq,))
    messages = ((first.seq, 0.5), (second.seq, 0.9), (other.seq, 1.0))
    read = await store.read(SearchMemories(ANN, "zzz", messages, 10))
    assert [(memory.id, relevance) for memory, relevance in read] == [(of_both.id, 0.9), (of_one.id, 0.5)]
    assert read[0][0].sources == (first.seq, second.seq)


async def test_requests_hearsay_and_what_is_not_active_are_not_found_for_a_question(store: Store) -> None:
    own = await remember(store, "chess is her hobby")
    await remember(store, "asks for chess news", kind="instruction", category="preference")
    await remember(store, "Ann hates chess, says Bob", trust="reported", speaker="bob")
    await end(store, await remember(store, "chess was her hobby"), state="deactivated")
    await remember(store, "chess", BOB)
    assert await found(store, "chess") == [own.id]


async def test_a_memory_whose_text_changed_is_found_by_its_new_words(store: Store) -> None:
    memory = await remember(store, "likes chess")
    await store.apply([ChangeMemory(replace(memory, text="likes hockey"), "edit")])
    assert await found(store, "chess") == []
    assert await found(store, "hockey") == [memory.id]
