"""Count spending in the store, which all processes share."""

from __future__ import annotations

from datetime import date

from aforesaid.domain.change import Spend
from aforesaid.domain.scope import Scope
from aforesaid.store import Store, questions


class StoreLedger:
    """A `SpendingLedger` over a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def spent(self, day: date, scope: Scope | None) -> int:
        """Return the tokens spent on a day."""
        return await self._store.read(questions.TokensSpent(day, scope))

    async def spend(self, day: date, scope: Scope | None, tokens: int) -> None:
        """Add spent tokens."""
        await self._store.apply([Spend(day, scope, tokens)])
