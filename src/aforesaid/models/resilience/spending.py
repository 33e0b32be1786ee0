"""Daily token limits, per user and in total."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from datetime import UTC, date, datetime
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

from aforesaid.domain.checks import now
from aforesaid.domain.scope import Scope
from aforesaid.errors import SpendingLimit, StoreError
from aforesaid.models.resilience.contract import Ask, Priced, Service, What
from aforesaid.settings import Spending

_log: Final = logging.getLogger("aforesaid.models")

Cost = TypeVar("Cost", bound=Priced)
_Payer: TypeAlias = tuple[str, str] | None


class SpendingLedger(Protocol):
    """Counts the tokens of each day, shared by all processes."""

    async def spent(self, day: date, scope: Scope | None) -> int:
        """Return the tokens that a user spent on a day, or with None the total of all users."""

    async def spend(self, day: date, scope: Scope | None, tokens: int) -> None:
        """Add spent tokens to the total and, with a scope, to its user."""


class MemoryLedger:
    """Counts tokens in this process only."""

    def __init__(self) -> None:
        self._spent: Counter[tuple[date, _Payer]] = Counter()

    async def spent(self, day: date, scope: Scope | None) -> int:
        """Return the tokens spent on a day."""
        return self._spent[day, _payer(scope)]

    async def spend(self, day: date, scope: Scope | None, tokens: int) -> None:
        """Add spent tokens."""
        for payer in {_payer(scope), None}:
            self._spent[day, payer] += tokens


class Budget:
    """The limits and the reserved tokens, shared by all models."""

    def __init__(self, limits: Spending, ledger: SpendingLedger, clock: Callable[[], int] = now) -> None:
        self._limits = limits
        self._ledger = ledger
        self._clock = clock
        self._pending: Counter[_Payer] = Counter()

    async def check(self, scope: Scope | None) -> None:
        """Raise SpendingLimit if spent and reserved tokens reach a limit."""
        limits: list[tuple[int | None, Scope | None, str]] = [(self._limits.tokens_per_day, None, "all users together")]
        if scope is not None:
            limits.append((self._limits.tokens_per_user_and_day, scope, f"user {scope.user!r}"))
        day = self.today()
        known = [
            (limit, payer, whose, await self._ledger.spent(day, payer))
            for limit, payer, whose in limits
            if limit is not None
        ]
        # Reserved tokens are read last and without awaiting, because the caller reserves right after this.
        for limit, payer, whose, spent in known:
            if (used := spent + self._pending[_payer(payer)]) >= limit:
                raise SpendingLimit(
                    f"{whose} used {used:,} of {limit:,} tokens on {day} (UTC). Raise the limit in [spending], or wait "
                    f"until tomorrow"
                )

    async def book(self, scope: Scope | None, tokens: int) -> None:
        """Count spent tokens. A failing ledger is only logged, because the answer is already paid for."""
        try:
            await self._ledger.spend(self.today(), scope, tokens)
        except StoreError as error:
            _log.warning("%d tokens could not be counted: %s", tokens, error)

    @contextmanager
    def reserve(self, scope: Scope | None, tokens: int) -> Iterator[None]:
        """Reserve an estimate during a call, so that concurrent calls together respect the limit."""
        payers = {_payer(scope), None}
        self._pending.update(dict.fromkeys(payers, tokens))
        try:
            yield
        finally:
            self._pending.subtract(dict.fromkeys(payers, tokens))

    def today(self) -> date:
        """Return the current day in UTC."""
        return datetime.fromtimestamp(self._clock() / 1_000_000, UTC).date()


class Budgeted(Generic[What, Cost]):
    """Asks only while there is something left to spend, and books what it took.

    Where a provider does not say what an answer cost, it is estimated. A call that failed costs nothing here.
    """

    def __init__(
        self,
        inner: Service[What, Cost],
        budget: Budget,
        estimate: Callable[[What], int],
        estimate_reply: Callable[[Cost], int],
    ) -> None:
        self._inner = inner
        self._budget = budget
        self._estimate = estimate
        self._estimate_reply = estimate_reply

    async def call(self, ask: Ask[What]) -> AsyncGenerator[Cost, None]:
        """Yield the answer, or raise SpendingLimit."""
        await self._budget.check(ask.scope)
        guess = self._estimate(ask.what)
        told = guessed = 0
        try:
            with self._budget.reserve(ask.scope, guess):
                async with aclosing(self._inner.call(ask)) as pieces:
                    async for piece in pieces:
                        told += piece.prompt_tokens + piece.reply_tokens
                        guessed += self._estimate_reply(piece)
                        yield piece
        finally:
            if tokens := told or (guessed and guess + guessed):
                await self._budget.book(ask.scope, tokens)


def _payer(scope: Scope | None) -> _Payer:
    return None if scope is None else (scope.space, scope.user)
