"""The interface of chat models."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

from pydantic import BaseModel

from aforesaid.domain.scope import Scope
from aforesaid.models.resilience import BreakerState
from aforesaid.settings import Operation

Shape = TypeVar("Shape", bound=BaseModel)


class Said(NamedTuple):
    """One message of a request to a model."""

    role: Literal["system", "user", "assistant"]
    content: str
    name: str | None = None
    """Sent along where the API takes it: letters, digits, `_` and `-`. Prompts that need a name say it in the text."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply."""

    text: str
    model: str
    """The model: `provider:model`."""
    prompt_tokens: int
    reply_tokens: int
    cut: bool = False
    """Whether the reply was cut off at `max_tokens`."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[Shape]):
    """A model's reply, parsed and validated against its schema."""

    value: Shape
    model: str
    prompt_tokens: int
    reply_tokens: int


class Chat(Protocol):
    """The models of all operations, with fallbacks, limits and circuit breakers.

    Every call ends within the operation's deadline. It raises ModelError, never anything of a client library: NoModel
    where the operation is done without one, ModelUnavailable where none of the chain answers, ModelRefused where the
    configuration is at fault, ModelGarbled where what came back does not fit, SpendingLimit where the limit is reached.
    """

    async def text(self, operation: Operation, messages: Sequence[Said], *, scope: Scope | None = None) -> Reply:
        """Return the reply. `scope` is the user whose spending limit applies."""

    def stream(
        self,
        operation: Operation,
        messages: Sequence[Said],
        *,
        scope: Scope | None = None,
        ended: Callable[[Reply], None] | None = None,
    ) -> AsyncGenerator[str, None]:
        """Yield the reply piece by piece. After the first piece, no other model is tried.

        `ended` is called at the end with a reply that has no text: which model wrote, and the tokens that it reported.
        """

    async def structure(
        self, operation: Operation, messages: Sequence[Said], shape: type[Shape], *, scope: Scope | None = None
    ) -> Answer[Shape]:
        """Return what the model writes, as a value of `shape`."""

    def has(self, operation: Operation) -> bool:
        """Return whether a model is configured for an operation, even if it does not respond at the moment."""

    def states(self) -> Mapping[str, BreakerState]:
        """Return the state of each provider's circuit breaker, by provider name."""

    async def close(self) -> None:
        """Close all connections. A second call does nothing."""
