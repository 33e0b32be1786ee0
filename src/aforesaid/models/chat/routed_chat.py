"""The configured models of each operation."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Final, Generic

from pydantic import ValidationError
from pydantic_core import from_json

from aforesaid.domain.scope import Scope
from aforesaid.errors import InvalidInput, ModelGarbled
from aforesaid.models.chat.completion import (
    Answer,
    Completion,
    Prompt,
    Reply,
    Said,
    Shape,
    estimate,
    estimate_reply,
    schema_of,
)
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
from aforesaid.models.resilience.wrappers import RunningCalls
from aforesaid.settings import Choice, Operation, Settings
from aforesaid.telemetry import Metrics

_FENCE: Final = re.compile(r"\s*```(?:json)?[ \t]*\n(.*)\n[ \t]*```\s*", re.DOTALL | re.IGNORECASE)
_FENCE_START: Final = re.compile(r"\A\s*```(?:json)?[ \t]*\n", re.IGNORECASE)
_MOST_ERRORS: Final = 8


class StructuredCall(Generic[Shape]):
    """Requests JSON and validates it strictly. An invalid reply is sent back once, with the reason."""

    def __init__(self, inner: Service[Prompt, Reply], shape: type[Shape]) -> None:
        self._inner = inner
        self._shape = shape

    async def call(self, ask: Ask[Prompt]) -> AsyncGenerator[Answer[Shape], None]:
        schema = schema_of(self._shape)
        prompt = replace(ask.what, schema=schema)
        first = await only(self._inner, replace(ask, what=prompt))
        value, problem = read(first, self._shape)
        replies = [first]
        if value is None:
            told = (
                f"That was not accepted: {problem}\n"
                f"Write the whole answer again, as JSON alone, such that it fits this schema:\n{schema.full}"
            )
            again = replace(prompt, messages=(*prompt.messages, Said("assistant", first.text), Said("user", told)))
            replies.append(await only(self._inner, replace(ask, what=again)))
            value, problem = read(replies[-1], self._shape)
        if value is None:
            raise ModelGarbled(
                f"{first.model} did not answer with the JSON that was asked for ({schema.name}), also after it was "
                f"told what was wrong: {problem}"
            )
        prompt_tokens = sum(reply.prompt_tokens for reply in replies)
        reply_tokens = sum(reply.reply_tokens for reply in replies)
        yield Answer(value, replies[-1].model, prompt_tokens, reply_tokens)


def read(reply: Reply, shape: type[Shape]) -> tuple[Shape | None, str]:
    """Return the value in a reply, or None and the error. A code fence around the JSON is removed.

    Of a reply that was cut off, the complete items count if the shape has `usable_when_cut`.
    """
    if reply.cut:
        return _complete_items(reply, shape), "it was cut off because it was too long; be shorter."
    fenced = _FENCE.fullmatch(reply.text)
    try:
        return shape.model_validate_json(fenced[1] if fenced else reply.text, strict=True), ""
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        lines = [f"{'.'.join(str(part) for part in each['loc']) or 'the answer'}: {each['msg']}" for each in found]
        more = [f"and {len(lines) - _MOST_ERRORS} more"] if len(lines) > _MOST_ERRORS else []
        return None, "; ".join(lines[:_MOST_ERRORS] + more)


def _complete_items(reply: Reply, shape: type[Shape]) -> Shape | None:
    """Return what is complete in a reply that was cut off, if its shape allows that."""
    if not getattr(shape, "usable_when_cut", False):
        return None
    begins = _FENCE_START.sub("", reply.text)
    try:
        return shape.model_validate(from_json(begins, allow_partial=True), strict=True)
    except ValueError:  # among them ValidationError: nothing in it is complete
        return None


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
        chain = [StructuredCall(model, shape) for model in self._chain(operation)]
        async with self._calls.running():
            return await only(Fallback(chain), await self._ask(operation, messages, scope))

    def has(self, operation: Operation) -> bool:
        return bool(self._settings.route(operation).chain)

    def states(self) -> dict[str, BreakerState]:
        return {name: breaker.state() for name, breaker in self._breakers.items()}

    async def close(self) -> None:
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
