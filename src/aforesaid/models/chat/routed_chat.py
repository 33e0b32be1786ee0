"""The configured models of each operation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from aforesaid.domain.scope import Scope
from aforesaid.errors import InvalidInput
from aforesaid.models.chat.completion import Completion, Prompt, estimate, estimate_reply
from aforesaid.models.chat.contract import Answer, Reply, Said, Shape
from aforesaid.models.chat.structured_reply import StructuredCall
from aforesaid.models.client import Client, load_library
from aforesaid.models.resilience import (
    Ask,
    Breaker,
    BreakerState,
    Budget,
    Budgeted,
    Checked,
    ConcurrencyLimit,
    Deadline,
    Fallback,
    Guarded,
    Limited,
    MemoryLedger,
    Metered,
    Retry,
    Service,
    SpendingLedger,
    only,
)
from aforesaid.models.resilience.running_calls import RunningCalls
from aforesaid.settings import Choice, Operation, Settings
from aforesaid.telemetry import Metrics


def open_chat(
    settings: Settings, *, ledger: SpendingLedger | None = None, metrics: Metrics | None = None
) -> RoutedChat:
    """Return the models that are configured. Nothing is connected before the first call.

    `ledger` is where spending is counted; without one it is counted until the process ends.
    """
    return RoutedChat(settings, ledger or MemoryLedger(), metrics or Metrics())


class RoutedChat:
    """A `Chat` over OpenAI-compatible providers."""

    def __init__(self, settings: Settings, ledger: SpendingLedger, metrics: Metrics) -> None:
        self.metrics = metrics
        self._settings = settings
        self._calls = RunningCalls()
        self._budget = Budget(settings.spending, ledger)
        self._clients: dict[str, Client] = {}
        self._limits: dict[str, ConcurrencyLimit] = {}
        self._breakers: dict[str, Breaker] = {}
        self._models: dict[Choice, Service[Prompt, Reply]] = {}
        for operation, route in settings.routes.items():
            for choice in route.chain if operation != "embed" else ():
                self._add(operation, choice)

    async def text(self, operation: Operation, messages: Sequence[Said], *, scope: Scope | None = None) -> Reply:
        """Return the reply."""
        async with self._calls.running():
            return await only(Fallback(self._chain(operation)), await self._ask(operation, messages, scope))

    async def stream(
        self,
        operation: Operation,
        messages: Sequence[Said],
        *,
        scope: Scope | None = None,
        ended: Callable[[Reply], None] | None = None,
    ) -> AsyncGenerator[str, None]:
        """Yield the reply piece by piece."""
        ask = await self._ask(operation, messages, scope, piecewise=True)
        async with aclosing(Fallback(self._chain(operation)).call(ask)) as pieces:
            while True:
                # The timeout covers waiting for the model only, not the caller's work between two pieces.
                async with self._calls.running():
                    piece = await anext(pieces, None)
                if piece is None:
                    return
                if piece.text:
                    yield piece.text
                elif ended is not None:
                    ended(piece)

    async def structure(
        self, operation: Operation, messages: Sequence[Said], shape: type[Shape], *, scope: Scope | None = None
    ) -> Answer[Shape]:
        """Return the reply, parsed as a value of `shape`."""
        chain = [StructuredCall(model, shape) for model in self._chain(operation)]
        async with self._calls.running():
            return await only(Fallback(chain), await self._ask(operation, messages, scope))

    def has(self, operation: Operation) -> bool:
        """Return whether a model is configured for an operation."""
        return bool(self._settings.route(operation).chain)

    def states(self) -> dict[str, BreakerState]:
        """Return the state of each provider's circuit breaker."""
        return {name: breaker.state() for name, breaker in self._breakers.items()}

    async def close(self) -> None:
        """Cancel running calls and close all connections."""
        self._calls.close()
        for client in self._clients.values():
            await client.close()

    def _chain(self, operation: Operation) -> list[Service[Prompt, Reply]]:
        if operation == "embed":
            raise InvalidInput("'embed' is an embedding model and cannot write replies")
        return [self._models[choice] for choice in self._settings.route(operation).chain]

    async def _ask(
        self, operation: Operation, messages: Sequence[Said], scope: Scope | None, *, piecewise: bool = False
    ) -> Ask[Prompt]:
        route = self._settings.route(operation)
        if route.chain:
            await load_library()
        end = asyncio.get_running_loop().time() + route.timeout
        prompt = Prompt(tuple(messages), route.temperature, route.max_tokens, piecewise=piecewise)
        return Ask(operation, prompt, answer_by=end, over_by=end, scope=scope)

    def _add(self, operation: Operation, choice: Choice) -> None:
        provider = self._settings.providers.get(choice.provider)
        if provider is None:
            raise InvalidInput(f"{operation!r} is to use {choice}, but no provider {choice.provider!r} is configured")
        if choice in self._models:
            return
        resilience = self._settings.resilience
        client = self._clients.setdefault(provider.name, Client(provider))
        limit = self._limits.setdefault(provider.name, ConcurrencyLimit(provider.name, provider.concurrency))
        breaker = self._breakers.setdefault(provider.name, Breaker(provider.name, resilience))
        name = str(choice)
        model: Service[Prompt, Reply] = Completion(client, choice)
        model = Deadline(model, name, stall=resilience.stall_seconds)
        model = Metered(model, name, self.metrics)
        model = Budgeted(model, self._budget, estimate, estimate_reply)
        model = Guarded(model, breaker)
        model = Limited(model, limit)
        model = Checked(model, breaker)
        model = Retry(model, resilience.attempts)
        # Checked a second time, before queueing: calls to a provider that is down should cost almost nothing.
        self._models[choice] = Checked(model, breaker)
