"""What lists and charts of the panel read about people, and the tokens that they spent, on every store."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from aforesaid.domain.checks import MemoryState
from aforesaid.domain.memory import MemoryDraft
from aforesaid.domain.message import Position, tombstone
from aforesaid.domain.scope import Scope
from aforesaid.domain.setting import EVERYBODY
from aforesaid.errors import InvalidInput
from aforesaid.models.resilience import StoreLedger
from aforesaid.store import Store, open_store
from aforesaid.store.memories import AddMemory, MemoryCounts
from aforesaid.store.messages import AddMessage, IsAuthor, Messages
from aforesaid.store.people import PutSetting, Spend, TokensSpent, TotalsOfSpaces, UsersPage
from aforesaid.store.searches import PeopleWithWords
from making import adding, minutes

START = minutes(0)
ANN, BOB = Scope.of("ann"), Scope.of("bob")


async def test_users_come_in_pages_with_whoever_was_active_last_first(store: Store) -> None:
    for place in range(5):
        await store.apply([adding(Scope.of(f"u{place}"), "hello", at=minutes(place))])
    await store.apply([adding(Scope.of("elsewhere", space="work"), "hello", at=minutes(9))])
    first = await store.read(UsersPage("default", limit=3))
    second = await store.read(UsersPage("default", limit=3, skip=3))
    assert [each.user.id for each in (*first, *second)] == ["u4", "u3", "u2", "u1", "u0"]
    chosen = await store.read(UsersPage("default", users=["u1", "u3", "nobody"]))
    assert [each.user.id for each in chosen] == ["u3", "u1"]
    by_part = await store.read(UsersPage("default", users=["u1"], id_part="U4"))
    assert [each.user.id for each in by_part] == ["u4", "u1"]


@pytest.mark.req("G4")
@pytest.mark.defect("I2")
async def test_an_author_is_known_who_owns_nothing(store: Store) -> None:
    await store.apply([adding(Scope.of("program"), "a tortoise", author="ann")])
    assert await store.read(IsAuthor(ANN)) is True
    assert await store.read(IsAuthor(BOB)) is False
    assert await store.read(IsAuthor(Scope.of("ann", space="work"))) is False


async def test_a_listed_user_is_known_since_the_first_message_was_said(store: Store) -> None:
    await store.apply([adding(ANN, "later", at=minutes(30), name="Ann"), adding(ANN, "imported", at=minutes(1))])
    await store.apply([AddMemory(MemoryDraft(ANN, "fact", "Ann sings"), actor="ann")])
    await store.apply([AddMemory(MemoryDraft(ANN, "fact", "Ann lied", state="quarantined"), actor="ann")])
    (listed,) = await store.read(UsersPage("default"))
    assert (listed.user.name, listed.first_activity, listed.memories) == ("Ann", minutes(1), 1)


async def test_the_settings_of_a_space_are_no_user_in_lists(store: Store) -> None:
    await store.apply([PutSetting(Scope.of(EVERYBODY), "time_zone", "UTC", actor="admin")])
    assert await store.read(UsersPage("default")) == []
    assert await store.read(TotalsOfSpaces()) == []


async def test_spaces_are_counted_last_active_first(store: Store) -> None:
    await store.apply([adding(ANN, "hello", at=minutes(1))])
    await store.apply([adding(Scope.of("kim", space="guild"), "hello", at=minutes(2))])
    await store.apply([adding(Scope.of("kim", space="guild"), "again", at=minutes(3))])
    found = await store.read(TotalsOfSpaces())
    assert [(each.space, each.users, each.messages) for each in found] == [("guild", 1, 2), ("default", 1, 1)]
    assert found[0].last_activity == minutes(3)


async def test_memories_are_counted_by_the_day_on_which_they_were_said(store: Store) -> None:
    said_on: list[tuple[int, MemoryState]] = [(0, "active"), (0, "active"), (0, "superseded"), (3, "active")]
    for days, state in said_on:
        said = START + timedelta(days=days)
        draft = MemoryDraft(ANN, "fact", f"Something said {days} {state}", state=state, said_at=said, importance=7)
        await store.apply([AddMemory(draft, actor="ann")])
    await store.apply([AddMemory(MemoryDraft(BOB, "task", "Water the plants", said_at=START), actor="bob")])
    found = await store.read(MemoryCounts("default", user="ann"))
    assert [(each.day, each.state, each.number) for each in found] == [
        (START.date(), "active", 2),
        (START.date(), "superseded", 1),
        ((START + timedelta(days=3)).date(), "active", 1),
    ]
    assert sum(each.number for each in await store.read(MemoryCounts("default"))) == 5


async def test_a_conversation_is_read_forwards_from_a_position(store: Store) -> None:
    for minute in (30, 10, 50, 20, 40):
        await store.apply([adding(ANN, str(minute), at=minutes(minute))])
    first = await store.read(Messages(ANN, limit=2, after=Position(0, 0)))
    assert [message.text for message in first] == ["10", "20"]
    rest = await store.read(Messages(ANN, after=first[-1].position))
    assert [message.text for message in rest] == ["30", "40", "50"]
    assert await store.read(Messages(ANN, after=rest[-1].position)) == []


MONDAY, TUESDAY = date(2026, 5, 4), date(2026, 5, 5)


async def test_tokens_are_counted_per_user_and_day_and_for_all_together(store: Store) -> None:
    await store.apply([Spend(MONDAY, ANN, 10), Spend(MONDAY, BOB, 5), Spend(TUESDAY, ANN, 1), Spend(MONDAY, None, 100)])
    await store.apply([Spend(MONDAY, Scope.of("ann", thread="general"), 2)])
    assert [await store.read(TokensSpent(MONDAY, payer)) for payer in (ANN, BOB, None)] == [12, 5, 117]
    assert [await store.read(TokensSpent(TUESDAY, payer)) for payer in (ANN, BOB, None)] == [1, 0, 1]
    assert await store.read(TokensSpent(MONDAY, Scope.of("ann", "elsewhere"))) == 0


async def test_the_ledger_of_the_models_is_kept_in_the_store(location: str) -> None:
    store = await open_store(location)
    await StoreLedger(store).spend(MONDAY, ANN, 7)
    if location == ":memory:":
        assert await StoreLedger(store).spent(MONDAY, ANN) == 7
        return
    await store.close()
    again = await open_store(location)
    assert await StoreLedger(again).spent(MONDAY, ANN) == 7
    assert await StoreLedger(again).spent(MONDAY, None) == 7
    await again.close()


def test_less_than_nothing_cannot_be_spent() -> None:
    with pytest.raises(InvalidInput, match="tokens"):
        Spend(MONDAY, ANN, -1)


@pytest.mark.defect("S8")
async def test_people_are_found_by_the_words_of_their_messages_with_whole_counts(store: Store) -> None:
    for number in range(60):
        scope = Scope.of(f"user{number}")
        words = "tea in the garden" if number % 20 else "hazelnuts in the garden"
        await store.apply([adding(scope, words, at=minutes(number))])
    await store.apply([adding(Scope.of("user20"), "hazelnuts again", at=minutes(90))])
    gone = (await store.apply([adding(Scope.of("user7"), "hazelnuts too", at=minutes(91))])).message
    await store.apply([AddMessage(tombstone(gone))])
    await store.apply([adding(Scope.of("kim", "elsewhere"), "hazelnuts elsewhere")])
    found = await store.read(PeopleWithWords("default", "Hazelnut?"))
    assert [(each.user, each.messages) for each in found] == [("user20", 2), ("user0", 1), ("user40", 1)]
    both = await store.read(PeopleWithWords("default", "hazelnuts garden"))
    assert len(both) == 60
    assert [each.user for each in both[:3]] == ["user20", "user0", "user40"]
    assert await store.read(PeopleWithWords("default", "walnut")) == []
    assert await store.read(PeopleWithWords("default", "?!")) == []
