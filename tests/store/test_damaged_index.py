"""A damaged keyword index of SQLite is made again by itself, and nobody notices but the operator."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
import pytest

from aforesaid.domain.scope import Scope
from aforesaid.store.searches import SearchText
from aforesaid.store.sqlite import SqliteStore
from making import add

ANN = Scope.of("ann")


async def damaged(path: Path) -> SqliteStore:
    """Return an open store whose index has been overwritten."""
    store = await SqliteStore.open(path)
    for number in range(50):
        await add(store, ANN, f"tea number {number}")
    await store.close()
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("UPDATE log_index_data SET block = zeroblob(length(block)) WHERE id > 10")
    return await SqliteStore.open(path)


@pytest.mark.req("C8")
async def test_a_search_makes_a_damaged_index_again(path: Path) -> None:
    store = await damaged(path)
    assert len(await store.read(SearchText(ANN, "tea", limit=100))) == 50
    assert "index rebuilt" in dict((await store.health()).facts)
    assert (await store.verify()).ok
    await store.close()


@pytest.mark.req("C8")
async def test_a_message_is_stored_although_the_index_is_damaged(path: Path) -> None:
    store = await damaged(path)
    for number in range(200):
        await add(store, ANN, f"more tea number {number}")
    assert len(await store.read(SearchText(ANN, "tea", limit=1000))) == 250
    assert (await store.verify()).ok
    await store.close()


@pytest.mark.parametrize("column", ["text", "owner"])
async def test_values_of_the_wrong_types_are_found_and_stop_no_check(path: Path, column: str) -> None:
    store = await SqliteStore.open(path)
    await add(store, ANN, "tea")
    await store.close()
    with closing(apsw.Connection(str(path))) as connection:
        connection.pragma("ignore_check_constraints", 1)
        connection.execute(f"UPDATE log SET {column} = x'00ff' WHERE seq = 1")
    store = await SqliteStore.open(path)
    report = await store.verify()
    assert not report.ok
    assert any("the keyword index does not match the messages" in check.detail for check in report.checks)
    await store.close()
