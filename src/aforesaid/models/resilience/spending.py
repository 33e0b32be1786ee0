"""Counts calls, tokens and money, and stops at a limit."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager, nullcontext
from datetime import UTC, date, datetime
from time import perf_counter
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

from aforesaid.domain.change import Spend
from aforesaid.domain.checks import now
from aforesaid.domain.scope import Scope
from aforesaid.errors import ModelError, SpendingLimit, StoreError
from aforesaid.models.resilience.wrappers import Ask, Priced, Service, What
from aforesaid.settings import Spending
from aforesaid.store import Store, questions
from aforesaid.telemetry import Metrics, kind_of
from aforesaid.telemetry.tracing import ModelSpan

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
        return self._spent[day, _payer(scope)]

    async def spend(self, day: date, scope: Scope | None, tokens: int) -> None:
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


class Metered(Generic[What, Cost]):
    """Counts the calls that are sent: number, latency, tokens and result."""

    def __init__(self, inner: Service[What, Cost], model: str, metrics: Metrics) -> None:
        self._inner = inner
        self._model = model
        self._metrics = metrics

    async def call(self, ask: Ask[What]) -> AsyncGenerator[Cost, None]:
        seconds, prompt, reply = 0.0, 0, 0
        # The default, if nothing else happens: the caller was cancelled.
        failure: str | None = "abandoned"
        span = self._span(ask)
        try:
            async with aclosing(self._inner.call(ask)) as pieces:
                while True:
                    began = perf_counter()
                    try:
                        with nullcontext() if span is None else span.current():
                            piece = await anext(pieces)
                    except StopAsyncIteration:
                        break
                    finally:
                        # Only waiting is measured, not the caller's work between two pieces.
                        seconds += perf_counter() - began
                    prompt, reply = prompt + piece.prompt_tokens, reply + piece.reply_tokens
                    yield piece
            failure = None
        except ModelError as error:
            failure = kind_of(error)
            raise
        finally:
            self._metrics.called(
                ask.operation, self._model, seconds, prompt_tokens=prompt, reply_tokens=reply, failure=failure
            )
            if span is not None:
                span.note(gen_ai__usage__input_tokens=prompt or None, gen_ai__usage__output_tokens=reply or None)
                span.end(failure)
            ended = failure or f"{prompt} + {reply} tokens"
            _log.debug("%s by %s: %s, %.2f s", ask.operation, self._model, ended, seconds)

    def _span(self, ask: Ask[What]) -> ModelSpan | None:
        """Begin the span of a call, if tracing is on."""
        tracing = self._metrics.tracing
        if tracing is None:
            return None
        provider, _, model = self._model.partition(":")
        span = tracing.model_call(ask.operation, provider, model)
        messages = getattr(ask.what, "messages", ())
        span.note_text("gen_ai.input.messages", [{"role": each.role, "content": each.content} for each in messages])
        return span


class StoreLedger:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def spent(self, day: date, scope: Scope | None) -> int:
        return await self._store.read(questions.TokensSpent(day, scope))

    async def spend(self, day: date, scope: Scope | None, tokens: int) -> None:
        await self._store.apply([Spend(day, scope, tokens)])
