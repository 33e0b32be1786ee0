"""Reads that one context is made of: each is made once, and begins as soon as it is known that it will be needed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeVar

from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.message import Message, Position
from aforesaid.domain.scope import Scope, is_direct
from aforesaid.domain.summary import Summary
from aforesaid.domain.words import Within
from aforesaid.profiles.recipe import Recipe
from aforesaid.recall import Begun, Recall
from aforesaid.store import Store
from aforesaid.tasks import begin

T = TypeVar("T")


class People(Protocol):
    """What is known about people, without asking a model."""

    async def portrait(
        self, scope: Scope, memories: Awaitable[list[MemoryRecord]], summaries: Awaitable[list[Summary]]
    ) -> str | None:
        """Return all that should be known about a user, in lines, the most important first.

        Active memories and summaries are passed: others need them too.
        """

    async def habits(self, scope: Scope) -> str:
        """Return how a user likes to talk."""


class Near(NamedTuple):
    """What is at hand without a search."""

    summaries: list[Summary]
    recent: list[Message]
    current: list[Message]
    """The message that is to be answered, if it is stored."""
    last: Position
    """The place of the newest message when this was read. What comes after it is no part of the context."""

    @property
    def shown(self) -> frozenset[int]:
        """The messages that need not be found, by sequence number."""
        return frozenset(message.seq for message in (*self.recent, *self.current))


@dataclass(frozen=True, slots=True)
class Sources:
    """Where contexts come from."""

    store: Store
    recall: Recall
    people: People


class Reading:
    """What several parts of a context need. Each is read when it is first asked for, or `begin` is called, and once.

    Whoever awaits it waits for the same read.
    """

    def __init__(self, sources: Sources, scope: Scope, recipe: Recipe, text: str, at: datetime | None) -> None:
        self.recipe = recipe
        self._sources = sources
        self._scope = scope
        self._text = text
        self._at = at
        self._begun: list[asyncio.Future[Any]] = []
        self.search: Begun | None = None
        """The search for snippets, where it has begun."""

    def begin(self) -> None:
        """Begin to read all at once: what takes longest first, the search.

        A recipe with a window says in which order things are read: each only if what came before leaves something.
        """
        if self.recipe.window:
            return
        if "snippets" in self.recipe.order and self.recipe.snippets:
            self.search = self._sources.recall.begin(self._scope, self._text, within(self._scope), self._at)
        if "portrait" in self.recipe.order:
            _ = self.memories, self.summaries
        _ = self.newest, self.portrait, self.habits

    async def messages(self, limit: int, before: int | Position | None = None) -> list[Message]:
        """Return the newest messages of the conversation before a position, by when they were said, oldest first."""
        return await self._sources.store.messages(self._scope, within=within(self._scope), limit=limit, before=before)

    async def messages_up_to(self, limit: int, seq: int) -> list[Message]:
        """Return a message of the conversation and those before it, oldest first."""
        found = await self._sources.store.pick(self._scope, [seq], within=within(self._scope))
        after = Position(found[0].position.at, seq + 1) if found else seq + 1
        return await self.messages(limit, before=after)

    @cached_property
    def newest(self) -> asyncio.Future[list[Message]]:
        """The newest messages, as many as the recipe shows and one more, oldest first."""
        return self._begin(self.messages(self.recipe.recent + 1))

    @cached_property
    def portrait(self) -> asyncio.Future[str | None]:
        """What is known about the user."""
        return self._begin(self._portrait())

    @cached_property
    def habits(self) -> asyncio.Future[str]:
        """How the user likes to talk."""
        return self._begin(self._habits())

    @cached_property
    def memories(self) -> asyncio.Future[list[MemoryRecord]]:
        """All that the user has active."""
        return self._begin(self._sources.store.memories(self._scope))

    @cached_property
    def summaries(self) -> asyncio.Future[list[Summary]]:
        """The same of the summaries."""
        return self._begin(self._sources.store.summaries(self._scope))

    def close(self) -> None:
        """Give up what nobody waits for any more."""
        for each in self._begun:
            each.cancel()
        if self.search is not None:
            self.search.cancel()

    def _begin(self, read: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        begun = begin(read)
        self._begun.append(begun)
        return begun

    async def _portrait(self) -> str | None:
        if "portrait" not in self.recipe.order:
            return None
        return await self._sources.people.portrait(self._scope, self.memories, self.summaries)

    async def _habits(self) -> str:
        return await self._sources.people.habits(self._scope) if "habits" in self.recipe.order else ""


def within(scope: Scope) -> Within:
    """Return whose messages belong to a conversation: all of a person's, or all that was said in a shared thread."""
    return "user" if is_direct(scope.thread) else "thread"
