"""What lists and charts of the panel read, on every store."""

from __future__ import annotations

from datetime import timedelta

import pytest

from aforesaid.domain.checks import MemoryState
from aforesaid.domain.memory import MemoryDraft
from aforesaid.domain.message import Position
from aforesaid.domain.scope import Scope
from aforesaid.domain.setting import EVERYBODY
from aforesaid.store import Store
from aforesaid.store.memories import AddMemory, MemoryCounts
from aforesaid.store.messages import Messages
from aforesaid.store.people import PutSetting, TotalsOfSpaces, UsersPage
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
