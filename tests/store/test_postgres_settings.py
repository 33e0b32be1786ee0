"""Settings on PostgreSQL, which are read for all who ask at the same time with one statement."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from aforesaid.domain.report import Setting
from aforesaid.domain.scope import Scope
from aforesaid.errors import StoreRefused
from aforesaid.store.people import PutSetting, Settings
from aforesaid.store.postgres import PostgresStore
from aforesaid.store.postgres import queries as gathered_settings
from aforesaid.store.postgres.queries import Queries
from pg import clean_database

ANN = Scope.of("ann")


@pytest.fixture
async def store() -> AsyncIterator[PostgresStore]:
    opened = await PostgresStore.open(clean_database())
    yield opened
    await opened.close()


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of people of each statement that reads settings."""
    sizes: list[int] = []
    original = gathered_settings._settings

    async def counted(queries: Queries, keys: list[Any]) -> object:
        sizes.append(len(keys))
        return await original(queries, keys)

    monkeypatch.setattr(gathered_settings, "_settings", counted)
    return sizes


def named(settings: list[Setting]) -> dict[str, object]:
    return {setting.key: setting.value for setting in settings}


async def test_all_who_ask_at_once_are_answered_by_one_statement(store: PostgresStore, statements: list[int]) -> None:
    scopes = [Scope.of(user, space=f"space {number % 7}") for number in range(100) for user in ("ann", "*")]
    await store.apply([PutSetting(scope, "mine", str(scope)) for scope in set(scopes[:6])])
    await store.apply([PutSetting(scopes[0], "also", 2)])
    found = await asyncio.gather(*[store.read(Settings(scope)) for scope in scopes])
    assert statements == [14]
    for scope, settings in zip(scopes, found, strict=True):
        expected = {"mine": str(scope)} if scope in scopes[:6] else {}
        assert named(settings) == expected | ({"also": 2} if scope == scopes[0] else {})


async def test_more_than_fit_into_a_statement_are_answered_by_several(
    store: PostgresStore, statements: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathered_settings, "_MOST", 4)
    scopes = [Scope.of(f"user {number}") for number in range(10)]
    await store.apply([PutSetting(scope, "mine", scope.user) for scope in scopes])
    found = await asyncio.gather(*[store.read(Settings(scope)) for scope in scopes])
    assert [named(settings) for settings in found] == [{"mine": scope.user} for scope in scopes]
    assert statements == [4, 4, 2]


async def test_whoever_stops_waiting_takes_no_answer_from_others(store: PostgresStore) -> None:
    await store.apply([PutSetting(ANN, "mine", 1)])
    one, other = (asyncio.create_task(store.read(Settings(ANN))) for _ in range(2))
    await asyncio.sleep(0)
    one.cancel()
    assert named(await other) == {"mine": 1}
    with pytest.raises(asyncio.CancelledError):
        await one


async def test_all_who_asked_hear_of_an_error_and_the_next_one_is_answered(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_: object) -> object:
        raise StoreRefused("not today")

    with monkeypatch.context() as broken:
        broken.setattr(gathered_settings, "_settings", refused)
        asked = [store.read(Settings(scope)) for scope in (ANN, ANN, Scope.of("bob"))]
        found = await asyncio.gather(*asked, return_exceptions=True)
    assert [str(each) for each in found] == ["not today"] * 3
    assert await store.read(Settings(ANN)) == []
