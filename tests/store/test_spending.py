"""What models were paid is counted, on every store."""

from __future__ import annotations

from datetime import date

import pytest

from aforesaid.domain.scope import Scope
from aforesaid.errors import InvalidInput
from aforesaid.models.resilience import StoreLedger
from aforesaid.store import Store, open_store
from aforesaid.store.people import Spend, TokensSpent

MONDAY, TUESDAY = date(2026, 5, 4), date(2026, 5, 5)
ANN, BOB = Scope.of("ann"), Scope.of("bob")


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
