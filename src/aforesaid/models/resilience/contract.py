"""The interface of services and their wrappers."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from aforesaid.domain.scope import Scope
from aforesaid.errors import ModelGarbled
from aforesaid.settings import Operation, RerankOperation, SpeechOperation

What = TypeVar("What")
Got = TypeVar("Got")
Got_co = TypeVar("Got_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Ask(Generic[What]):
    """One request to a model. Times are in the event loop's clock."""

    operation: Operation | SpeechOperation | RerankOperation
    what: What
    answer_by: float
    """Deadline of the first piece. A chain gives each model a share of the time."""
    over_by: float
    """Deadline of the whole answer."""
    scope: Scope | None = None
    """The user whose spending limit applies."""


class Service(Protocol[What, Got_co]):
    """Answers, in one piece or in many.

    A plain call is a stream of one piece, so that each wrapper is written once. It raises ModelError; once a piece was
    yielded, nothing is tried again.
    """

    def call(self, ask: Ask[What]) -> AsyncGenerator[Got_co, None]:
        """Yield the answer."""


class Priced(Protocol):
    """An answer, or a piece of it, that says what it cost. Of many pieces, only the last one does."""

    @property
    def prompt_tokens(self) -> int:
        """Tokens that were read."""

    @property
    def reply_tokens(self) -> int:
        """Tokens that were written."""


async def begin(service: Service[What, Got], ask: Ask[What]) -> AsyncGenerator[Got, None]:
    """Wait for the first piece and return all pieces. A failure here can be retried with another model."""
    pieces = service.call(ask)
    try:
        first = await anext(pieces)
    except StopAsyncIteration:
        raise ModelGarbled(f"the model was asked to {ask.operation} and returned nothing") from None
    return _with_first(first, pieces)


async def _with_first(first: Got, rest: AsyncGenerator[Got, None]) -> AsyncGenerator[Got, None]:
    async with aclosing(rest):
        yield first
        async for piece in rest:
            yield piece


async def only(service: Service[What, Got], ask: Ask[What]) -> Got:
    """Return the answer of a call with one piece."""
    last: list[Got] = []
    async with aclosing(await begin(service, ask)) as pieces:
        async for piece in pieces:
            last[:] = [piece]
    return last[0]
