"""What everything that asks a model relies on."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

from pydantic import BaseModel

from aforesaid.domain.scope import Scope
from aforesaid.models.resilience import BreakerState
from aforesaid.settings import Operation

Shape = TypeVar("Shape", bound=BaseModel)


class Said(NamedTuple):
    """One message of what a model is shown."""

    role: Literal["system", "user", "assistant"]
    content: str
    name: str | None = None
    """Sent along where the API takes it: letters, digits, `_` and `-`. Prompts that need a name say it in the text."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model wrote."""

    text: str
    model: str
    """Which one: `provider:model`."""
    prompt_tokens: int
    reply_tokens: int
    cut: bool = False
    """Whether it ends where `max_tokens` were used up."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[Shape]):
    """What a model wrote, as a value that fits its schema."""

    value: Shape
    model: str
    prompt_tokens: int
    reply_tokens: int


class Chat(Protocol):
    """Models for every operation, with their fallbacks, limits and breakers behind one face.

    Every call ends within the operation's deadline. It raises ModelError, never anything of a client library: NoModel
    where the operation is done without one, ModelUnavailable where none of the chain answers, ModelRefused where the
    configuration is at fault, ModelGarbled where what came back does not fit, SpendingLimit where the limit is reached.
    """

    async def text(self, operation: Operation, messages: Sequence[Said], *, scope: Scope | None = None) -> Reply:
        """Return what the model writes. `scope` says who pays for it."""

    def stream(
        self, operation: Operation, messages: Sequence[Said], *, scope: Scope | None = None
    ) -> AsyncGenerator[str, None]:
        """Yield what the model writes, piece by piece. Once a piece was yielded, no other model is tried."""

    async def structure(
        self, operation: Operation, messages: Sequence[Said], shape: type[Shape], *, scope: Scope | None = None
    ) -> Answer[Shape]:
        """Return what the model writes, as a value of `shape`."""

    def has(self, operation: Operation) -> bool:
        """Tell whether a model is configured for an operation, whether or not it answers at the moment."""

    def states(self) -> Mapping[str, BreakerState]:
        """Say how each provider is doing, by its name."""

    async def close(self) -> None:
        """Let go of connections. Closing twice is fine."""
