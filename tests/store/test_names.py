"""Display names of people, on every store."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

import aforesaid
from aforesaid.domain.scope import Scope
from aforesaid.errors import InvalidInput
from aforesaid.store import Store, open_store
from aforesaid.store.messages import AddMessage
from aforesaid.store.people import DisplayNames, IrregularIds, Users
from making import add, adding, minutes

ANN = Scope.of("ann")
TOM = Scope.of("tom", thread="general")

pytestmark = [pytest.mark.req("G4"), pytest.mark.defect("B4", "B5")]


def named(scope: Scope, name: str, at: float, author: str | None = None) -> AddMessage:
    return adding(scope, f"{name} at {at}", at=minutes(at), name=name, author=author)


async def test_users_carry_the_display_name_that_they_used_last(store: Store) -> None:
    await store.apply([named(ANN, "Annie", 20), named(ANN, "Ann from long ago", 5)])
    await add(store, ANN, "a message without a name")
    await add(store, Scope.of("bob"), "hello")
    assert [(user.id, user.name) for user in await store.read(Users())] == [("ann", "Annie"), ("bob", None)]


async def test_of_two_names_at_one_moment_the_one_stored_later_counts(store: Store) -> None:
    await store.apply([named(ANN, "first", 1), adding(ANN, "and", at=minutes(1), name="second")])
    assert await store.read(DisplayNames("default")) == {"ann": "second"}


async def test_somebody_who_spoke_in_the_memory_of_another_has_a_name(store: Store) -> None:
    await store.apply([named(ANN, "Zoe", 1, author="zoe"), named(TOM, "Tom", 2)])
    await store.apply([adding(TOM, "Hello Tom", "assistant", name="Botty")])
    assert await store.read(DisplayNames("default")) == {"zoe": "Zoe", "tom": "Tom", "assistant": "Botty"}
    assert await store.read(DisplayNames("default", ["tom", "zoe", "nobody"])) == {"zoe": "Zoe", "tom": "Tom"}
    assert await store.read(DisplayNames("default", [])) == {}


@pytest.mark.defect("P11")
async def test_ids_that_are_not_spelled_regularly_are_listed(store: Store) -> None:
    await store.apply([adding(ANN, "hello"), adding(Scope.of("\u30e6\u30ad", "r\u00e9union"), "hello", author="bob")])
    assert await store.read(IrregularIds()) == frozenset()
    there = Scope.of("ann ", " lab", thread="cafe\u0301", session="\u00a0one")
    await store.apply([adding(there, "hello", author="Zoe\u0308")])
    assert await store.read(IrregularIds()) == {"ann ", " lab", "cafe\u0301", "\u00a0one", "Zoe\u0308"}


async def test_names_stay_in_their_space(store: Store) -> None:
    await store.apply([named(ANN, "Ann", 1), named(Scope.of("ann", space="work"), "Dr. Ann", 2)])
    assert await store.read(DisplayNames("default")) == {"ann": "Ann"}
    assert await store.read(DisplayNames("work")) == {"ann": "Dr. Ann"}
    assert await store.read(DisplayNames("elsewhere")) == {}
    assert [(user.space, user.name) for user in await store.read(Users())] == [
        ("default", "Ann"),
        ("work", "Dr. Ann"),
    ]


async def test_a_name_changes_with_the_next_message_and_goes_with_the_person(store: Store) -> None:
    await store.apply([named(TOM, "Tom", 1)])
    assert await store.read(DisplayNames("default")) == {"tom": "Tom"}
    await store.apply([named(TOM, "Tommy", 2), named(ANN, "Ann", 2)])
    assert await store.read(DisplayNames("default")) == {"tom": "Tommy", "ann": "Ann"}
    await store.purge(TOM)
    assert await store.read(DisplayNames("default")) == {"ann": "Ann"}


async def test_names_are_there_after_a_restart(location: str) -> None:
    if location == ":memory:":
        pytest.skip("nothing survives there")
    store = await open_store(location)
    await store.apply([named(ANN, "Ann", 1)])
    await add(store, ANN, *[f"message {number}" for number in range(60)])
    await store.close()
    store = await open_store(location)
    try:
        assert await store.read(DisplayNames("default")) == {"ann": "Ann"}
        assert [user.name for user in await store.read(Users())] == ["Ann"]
    finally:
        await store.close()


async def test_sqlite_finds_a_name_by_an_index(path: Path) -> None:
    store = await open_store(str(path))
    await store.apply([named(ANN, "Ann", 1)])
    await store.close()
    plan = """
    EXPLAIN QUERY PLAN
    SELECT (SELECT log.name FROM log WHERE log.author = person.id AND log.name IS NOT NULL
             ORDER BY log.at DESC, log.seq DESC LIMIT 1) FROM person WHERE space = 'default'
    """
    steps = [row[3] for row in apsw.Connection(str(path)).execute(plan)]
    assert "SEARCH log USING INDEX log_by_name (author=?)" in steps
    assert not any("TEMP B-TREE" in step for step in steps)


async def test_the_front_door_answers_names(location: str) -> None:
    async with aforesaid.connect(location) as memory:
        await memory.user(7).add("user", "hello", name="Seven")
        await memory.user("bob").add("user", "hello", name="Bob")
        assert await memory.names() == {"7": "Seven", "bob": "Bob"}
        assert await memory.names(users=[7]) == {"7": "Seven"}
        assert [(user.id, user.name) for user in await memory.users()] == [("7", "Seven"), ("bob", "Bob")]
        with pytest.raises(InvalidInput):
            await memory.names(users=[""])
