"""The store reads of one context. Each is made once, and starts as soon as it is known to be needed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeVar

from aforesaid.background import begin
from aforesaid.domain.checks import Within
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.message import Message, Position
from aforesaid.domain.scope import Scope, is_chat, is_direct
from aforesaid.domain.summary import Summary
from aforesaid.profiles.recipe import Recipe
from aforesaid.recall import Begun, Recall
from aforesaid.store import Store, questions

T = TypeVar("T")


class People(Protocol):
    """Knowledge about people that is available without a model."""

    async def portrait(
        self, scope: Scope, memories: Awaitable[list[MemoryRecord]], summaries: Awaitable[list[Summary]]
    ) -> str | None:
        """Return the portrait of a user, in lines, the most important first.

        Active memories and summaries are passed in, since the context reads them anyway.
        """

    async def habits(self, scope: Scope) -> str:
        """Return how a user likes to talk."""


class Conversation(NamedTuple):
    """The parts of a context that need no search."""

    summaries: list[Summary]
    recent: list[Message]
    current: list[Message]
    """The message to answer, if it is stored."""
    last: Message | None
    """Sequence number of the newest message at the time of reading. Later ones are left out."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of contexts."""

    store: Store
    recall: Recall
    people: People


class ContextReads:
    """The reads of one context. Each starts when it is first asked for, or with `start`, and is shared by all."""

    def __init__(self, sources: Sources, scope: Scope, recipe: Recipe, text: str, at: datetime | None) -> None:
        self.recipe = recipe
        self._sources = sources
        self._scope = scope
        self._text = text
        self._at = at
        self._started: list[asyncio.Future[Any]] = []
        self.search: Begun | None = None
        """The search for snippets, if it was started."""

    def start(self) -> None:
        """Start all reads at once: the search first, since it takes longest.

        With a window, nothing starts here: history, recent messages and the search are read one after the other.
        """
        if self.recipe.window:
            return
        if self.recipe.searches:
            self.search = self._sources.recall.begin(self._scope, self._text, within(self._scope), self._at)
        if "portrait" in self.recipe.order:
            _ = self.memories, self.summaries
        _ = self.newest, self.portrait, self.habits

    async def messages(self, limit: int, before: int | Position | None = None) -> list[Message]:
        """Return the newest messages of the conversation before a position, by when they were said, oldest first."""
        return await self._sources.store.read(
            questions.Messages(self._scope, within=conversation_within(self._scope), limit=limit, before=before)
        )

    async def messages_up_to(self, limit: int, seq: int) -> list[Message]:
        """Return a message of the conversation and those before it, oldest first."""
        found = await self._sources.store.read(
            questions.MessagesByNumber(self._scope, [seq], within=within(self._scope))
        )
        after = Position(found[0].position.at, seq + 1) if found else seq + 1
        return await self.messages(limit, before=after)

    async def name_of_user(self, messages: Sequence[Message]) -> str:
        """Return the last display name of the user, or else the id. `messages` are those that the context shows."""
        user = self._scope.user
        own = [message.name for message in messages if message.author == user]
        if own:
            return next(filter(None, reversed(own)), user)
        # Nothing of theirs is shown, as in a new thread: they may have a name all the same.
        names = await self._sources.store.read(questions.DisplayNames(self._scope.space, users=(user,)))
        return names.get(user, user)

    @cached_property
    def newest(self) -> asyncio.Future[list[Message]]:
        """The newest messages, one more than the recipe shows, oldest first."""
        return self._start(self.messages(self.recipe.recent + 1))

    @cached_property
    def last(self) -> asyncio.Future[Message | None]:
        """The newest message that a search may find."""
        return self._start(self._last())

    @cached_property
    def portrait(self) -> asyncio.Future[str | None]:
        """The portrait of the user."""
        return self._start(self._portrait())

    @cached_property
    def habits(self) -> asyncio.Future[str]:
        """How the user likes to talk."""
        return self._start(self._habits())

    @cached_property
    def memories(self) -> asyncio.Future[list[MemoryRecord]]:
        """All active memories of the user, the most important first."""
        return self._start(self._sources.store.read(questions.Memories(self._scope)))

    @cached_property
    def summaries(self) -> asyncio.Future[list[Summary]]:
        """All active summaries of the user."""
        return self._start(self._sources.store.read(questions.Summaries(self._scope)))

    def close(self) -> None:
        """Cancel reads that nobody waits for."""
        for each in self._started:
            each.cancel()
        if self.search is not None:
            self.search.cancel()

    def _start(self, read: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        started = begin(read)
        self._started.append(started)
        return started

    async def _last(self) -> Message | None:
        whole = within(self._scope)
        if conversation_within(self._scope) == whole:
            newest = await self.newest
        else:
            newest = await self._sources.store.read(questions.Messages(self._scope, within=whole, limit=1))
        return newest[-1] if newest else None

    async def _portrait(self) -> str | None:
        if "portrait" not in self.recipe.order:
            return None
        return await self._sources.people.portrait(self._scope, self.memories, self.summaries)

    async def _habits(self) -> str:
        return await self._sources.people.habits(self._scope) if "habits" in self.recipe.order else ""


def within(scope: Scope) -> Within:
    """Return where a search looks: in all messages of a user, or in all messages of a shared thread."""
    return "user" if is_direct(scope.thread) else "thread"


def conversation_within(scope: Scope) -> Within:
    """Return what the messages shown as turns are from: of a person's several chats, only the one that goes on.

    What was said in the others is found by the search, and shown as such.
    """
    return "thread" if is_chat(scope.thread) else within(scope)
