"""Helpers for tests of summaries."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from pydantic import BaseModel

from aforesaid.domain.checks import microseconds
from aforesaid.domain.scope import Scope
from aforesaid.errors import ModelUnavailable
from aforesaid.front.handle import Services
from aforesaid.memory import Memory, UserMemory
from aforesaid.models.chat import Answer, Reply, Said
from aforesaid.models.embed import Embedder
from aforesaid.models.resilience import BreakerState
from aforesaid.profiles import load_profile
from aforesaid.settings import Operation, Settings
from aforesaid.store import open_store

Shape = TypeVar("Shape", bound=BaseModel)


class MovingClock:
    """A clock that moves only on request."""

    def __init__(self, start: datetime = datetime(2026, 3, 1, 9, tzinfo=UTC)) -> None:
        self.time = start

    def __call__(self) -> int:
        return microseconds(self.time, "the time")

    def forward(self, **by: float) -> datetime:
        """Advance, for example by `hours=1`."""
        self.time += timedelta(**by)
        return self.time


class Scribe:
    """A model that writes numbered summaries, records its input, and can be down."""

    def __init__(self) -> None:
        self.asked: list[tuple[Operation, str]] = []
        self.down = False
        self.small = False
        self.says = ""
        """The text of every summary after its number."""
        self.answers: list[Mapping[str, Any]] = []
        """The reply to requests for JSON."""

    async def text(
        self,
        operation: Operation,
        messages: Sequence[Said],
        *,
        scope: Scope | None = None,
        characters: int | None = None,
    ) -> Reply:
        del scope, characters
        self._note(operation, messages)
        return Reply(f"S{len(self.asked)}{self.says}", "test:scribe", 10, 5)

    async def stream(
        self,
        operation: Operation,
        messages: Sequence[Said],
        *,
        scope: Scope | None = None,
        ended: Callable[[Reply], None] | None = None,
    ) -> AsyncGenerator[str, None]:
        del ended
        yield (await self.text(operation, messages, scope=scope)).text

    async def structure(
        self, operation: Operation, messages: Sequence[Said], shape: type[Shape], *, scope: Scope | None = None
    ) -> Answer[Shape]:
        del scope
        self._note(operation, messages)
        return Answer(shape.model_validate(self.answers.pop(0)), "test:scribe", 10, 5)

    def has(self, operation: Operation) -> bool:
        return operation in {"summarize", "day"}

    def is_small(self, operation: Operation) -> bool:
        del operation
        return self.small

    def states(self) -> dict[str, BreakerState]:
        return {}

    async def close(self) -> None:
        pass

    def _note(self, operation: Operation, messages: Sequence[Said]) -> None:
        if self.down:
            raise ModelUnavailable("test:scribe does not answer")
        self.asked.append((operation, messages[-1].content))


@asynccontextmanager
async def remembering(
    location: str,
    profile: str | Mapping[str, Any],
    *,
    chat: Scribe | None = None,
    clock: MovingClock | None = None,
    embedder: Embedder | None = None,
    settings: Settings | None = None,
) -> AsyncIterator[Memory]:
    """Open a memory with a given model and clock."""
    store = await open_store(location)
    services = Services(store, load_profile(profile), embedder, chat, settings, clock or MovingClock())
    async with Memory(services) as memory:
        yield memory


async def talk(user: UserMemory, turns: int, first: int = 1, at: datetime | None = None) -> None:
    """Add messages of a user, each with a reply."""
    for number in range(first, first + turns):
        await user.add("user", f"I bought {number} apples in Berlin.", at=at)
        await user.add("assistant", f"So you have {number} apples.", at=at)
