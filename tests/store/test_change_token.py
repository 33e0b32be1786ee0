"""The change token: how one process notices that another has written, on every store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from aforesaid.domain.scope import Scope
from aforesaid.store import Store, open_store
from aforesaid.store.searches import ChangeToken
from making import add

ANN = Scope.of("ann")
BOB = Scope.of("bob", space="other")
CHANGES: dict[str, Callable[[Store], Awaitable[object]]] = {
    "the same user": lambda store: add(store, ANN, "again"),
    "another user and space": lambda store: add(store, BOB, "hello"),
    "purging": lambda store: store.purge(ANN),
}


def is_shared(location: str) -> bool:
    """Tell whether several processes can open the store at once."""
    return location.startswith(("sqlite:", "postgresql:"))


@pytest.mark.parametrize("change", CHANGES)
async def test_a_change_by_another_connection_changes_the_token_of_a_shared_store(
    store: Store, location: str, change: str
) -> None:
    await add(store, ANN, "hello")
    before = await store.read(ChangeToken())
    if not is_shared(location):
        await CHANGES[change](store)
        assert await store.read(ChangeToken()) == before, "the only process that can write knows what it writes"
        return
    other = await open_store(location)
    try:
        await CHANGES[change](other)
    finally:
        await other.close()
    assert await store.read(ChangeToken()) != before
