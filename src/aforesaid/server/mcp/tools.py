"""The tools. Their descriptions are what an agent decides by."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated, Any, Final, Literal, ParamSpec, Self, TypeVar

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import AwareDatetime, BaseModel, Field

from aforesaid.domain.literals import Category, CategoryOrKind, Kind, MemoryState, Role
from aforesaid.domain.memory import MemoryRecord
from aforesaid.errors import AforesaidError, NotFound
from aforesaid.memory import UserMemory
from aforesaid.models.redact import redact
from aforesaid.server.mcp.who import AgentAccess
from aforesaid.server.shapes import MemoryShape, shown

_PAGE: Final = 20
"""Memories in a list unless the agent asks for more: about 5 kB of its context."""

P = ParamSpec("P")
T = TypeVar("T")

User = Annotated[str | None, Field(description="The user. Not needed if the connection is for one user.")]
Importance = Annotated[int, Field(ge=1, le=10, description="1 to 10; 5 is the default, 9 and 10 are critical.")]
Number = Annotated[int, Field(ge=1, description="The id of the memory, as get_memories returned it.")]


class SearchHit(BaseModel):
    """Something that was found."""

    kind: Literal["message", "summary", "memory", "session"]
    id: str
    text: str
    at: str
    score: float


class SearchResult(BaseModel):
    """What was found, best first."""

    hits: list[SearchHit]


class MemoryItem(BaseModel):
    """One memory in a list: what an agent needs to use or correct it."""

    id: int
    content: str
    category: Category
    kind: Kind
    about: str | None = Field(description="Whom it is about, if not the user.")
    importance: int
    state: MemoryState
    tags: list[str]
    when: datetime | None = Field(description="When it happens, or when its reminder is due.")
    created_at: datetime

    @classmethod
    def of(cls, memory: MemoryRecord) -> Self:
        """Show a memory in short."""
        event = None if memory.event is None else memory.event.start
        return cls(
            id=memory.id,
            content=memory.text,
            category=memory.category,
            kind=memory.kind,
            about=memory.about,
            importance=memory.importance,
            state=memory.state,
            tags=list(memory.tags),
            when=memory.remind_at or event,
            created_at=memory.created_at,
        )


class MemoryList(BaseModel):
    """A page of memories, newest first."""

    memories: list[MemoryItem]
    next: int | None = Field(description="Pass it as `before` to get the next page; null on the last one.")


class TimelineEvent(BaseModel):
    """Something that happened, or is to come."""

    memory: int = Field(description="The id of the memory that tells it.")
    when: datetime
    content: str


class TimelineList(BaseModel):
    """What happened and what is to come, in the order in which it happened."""

    events: list[TimelineEvent]


class PersonItem(BaseModel):
    """A person around the user."""

    name: str
    relation: str | None = Field(description="To the user, such as sister or boss.")
    first_mentioned: datetime
    last_mentioned: datetime
    known: list[str] = Field(description="What is known about the person.")


class PeopleList(BaseModel):
    """The people whom the memories of a user mention."""

    people: list[PersonItem]


class ContextText(BaseModel):
    """What should be known to answer a message."""

    text: str
    tokens: int


class PortraitText(BaseModel):
    """What is known about a user."""

    portrait: str | None


class RememberResult(BaseModel):
    """What became of a fact."""

    outcome: Literal["stored", "known", "quarantined"]
    reason: str
    facts: str


class ForgetResult(BaseModel):
    """What became of a wish to forget."""

    found: bool
    facts: str


def errors_told(tool: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Return errors of ours to the agent as sentences, instead of a failure of the server."""

    @functools.wraps(tool)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await tool(*args, **kwargs)
        except AforesaidError as error:
            raise ToolError(redact(str(error)).encode(errors="backslashreplace").decode()) from error

    return call


class Tools(AgentAccess):
    """What an agent can do."""

    @errors_told
    async def get_context(
        self,
        ctx: Context[Any, Any],
        text: Annotated[str, Field(description="The message that you are about to answer.")],
        budget: Annotated[int, Field(ge=256, le=200_000, description="Maximum tokens.")] = 4_000,
        user: User = None,
    ) -> ContextText:
        """Get everything that should be known to answer a message.

        That is what is known about the user, summaries of what was said, and the parts of past conversations that fit.
        Call this first, with the user's own words.
        """
        made = await self._person(ctx, user).context(text, budget)
        return ContextText(text=made.text, tokens=made.tokens)

    @errors_told
    async def search_memories(
        self,
        ctx: Context[Any, Any],
        query: Annotated[str, Field(description="What to look for: words, a question, a date such as 'last May'.")],
        limit: Annotated[int, Field(ge=1, le=100)] = 10,
        min_score: Annotated[
            float | None,
            Field(ge=0, le=1, description="Minimum score of a hit. Default: 0.25; 0 returns all."),
        ] = None,
        role: Annotated[Role | None, Field(description="Only messages of this role.")] = None,
        author: Annotated[str | None, Field(description="Only messages that this id wrote.")] = None,
        since: Annotated[AwareDatetime | None, Field(description="Only messages said at this time or later.")] = None,
        until: Annotated[AwareDatetime | None, Field(description="Only messages said before this time.")] = None,
        metadata: Annotated[
            dict[str, Any] | None, Field(description="Only messages whose metadata has these keys with equal values.")
        ] = None,
        user: User = None,
    ) -> SearchResult:
        """Search everything that was ever said or remembered, by words and by meaning.

        Use it when get_context was not enough, or when you look for something in particular.
        """
        person = self._person(ctx, user)
        hits = await person.search(
            query,
            limit,
            kinds=("message", "summary", "memory"),
            min_score=min_score,
            role=role,
            author=author,
            since=since,
            until=until,
            metadata=metadata,
        )
        return SearchResult(
            hits=[
                SearchHit(kind=hit.kind, id=hit.id, text=hit.text, at=hit.at.isoformat(), score=round(hit.score, 3))
                for hit in hits
            ]
        )

    @errors_told
    async def get_memories(
        self,
        ctx: Context[Any, Any],
        category: Annotated[Category | None, Field(description="Only memories of this category.")] = None,
        kind: Annotated[Kind | None, Field(description="Only memories of this kind, finer than the category.")] = None,
        state: Annotated[
            MemoryState | None, Field(description="Only memories in this state; 'quarantined' ones wait for approval.")
        ] = None,
        limit: Annotated[int, Field(ge=1, le=200, description="Memories per page.")] = _PAGE,
        before: Annotated[int | None, Field(ge=1, description="`next` of the page before.")] = None,
        user: User = None,
    ) -> MemoryList:
        """List single remembered things about a user, newest first, with their ids, a page at a time.

        They are facts, preferences, events, appointments, tasks, reminders, relationships and standing requests.
        """
        who = self._who(ctx)
        person = self._person(ctx, user)
        found = await self._memory.memories(
            category,
            space=person.scope.space,
            user=person.scope.user,
            state=state,
            kind=kind,
            limit=limit,
            before=before,
            actor=who.actor,
        )
        more = found[-1].id if len(found) == limit else None
        return MemoryList(memories=[MemoryItem.of(each) for each in found], next=more)

    @errors_told
    async def get_timeline(
        self,
        ctx: Context[Any, Any],
        query: Annotated[
            str | None, Field(description="A topic or a question: 'the kitchen', 'what happened in May?'.")
        ] = None,
        about: Annotated[str | None, Field(description="Only what mentions this person, by name.")] = None,
        since: Annotated[AwareDatetime | None, Field(description="Only what happened at this time or later.")] = None,
        until: Annotated[AwareDatetime | None, Field(description="Only what happened before this time.")] = None,
        limit: Annotated[int, Field(ge=1, le=200)] = 50,
        user: User = None,
    ) -> TimelineList:
        """Get what happened in the user's life and what is to come, in order, each with its date.

        Use it for questions about the order of events, a period, or how something went.
        """
        found = await self._person(ctx, user).timeline(since, until, about=about, query=query, limit=limit)
        dated = [(each, each.happened) for each in found]
        return TimelineList(
            events=[
                TimelineEvent(memory=each.id, when=when.start, content=each.text)
                for each, when in dated
                if when is not None
            ]
        )

    @errors_told
    async def get_people(
        self,
        ctx: Context[Any, Any],
        name: Annotated[
            str | None, Field(description="Only people called so: a name, or a relation such as 'sister'.")
        ] = None,
        limit: Annotated[int, Field(ge=1, le=100)] = 20,
        user: User = None,
    ) -> PeopleList:
        """Get the people around the user: family, friends, colleagues, and what is known about each."""
        found = (await self._person(ctx, user).people(name))[:limit]
        return PeopleList(
            people=[
                PersonItem(
                    name=each.name,
                    relation=each.relation,
                    first_mentioned=each.first_mentioned,
                    last_mentioned=each.last_mentioned,
                    known=[memory.text for memory in each.memories[:_PAGE]],
                )
                for each in found
            ]
        )

    @errors_told
    async def portrait(self, ctx: Context[Any, Any], user: User = None) -> PortraitText:
        """Get what is known about a user, in one text: facts, and what the last days were about."""
        return PortraitText(portrait=await self._person(ctx, user).portrait())

    @errors_told
    async def remember(
        self,
        ctx: Context[Any, Any],
        fact: Annotated[str, Field(min_length=1, description="One statement, such as: prefers tea over coffee.")],
        user: User = None,
    ) -> RememberResult:
        """Keep a statement about a user in mind. Newer information takes the place of older.

        What reads like an instruction to a model is kept apart ('quarantined') until a person approves it.
        """
        kept = await self._person(ctx, user, "app").remember(fact)
        return RememberResult(outcome=kept.outcome, reason=kept.reason, facts=kept.facts)

    @errors_told
    async def add_memory(
        self,
        ctx: Context[Any, Any],
        content: Annotated[str, Field(min_length=1, description="The text, such as: Dentist on Monday at 9am.")],
        category: Annotated[CategoryOrKind, Field(description="What it is.")] = "fact",
        importance: Importance = 5,
        tags: Annotated[list[str], Field(max_length=20, description="Topics.")] = [],  # noqa: B006 - never changed
        user: User = None,
    ) -> MemoryShape:
        """Write down one thing to remember: an appointment (schedule), a task, a reminder, a preference, a fact.

        Times in the content ('on Monday at 9am') are understood.
        """
        person = self._person(ctx, user, "app")
        return await shown(self._memory, await person.note(category, content, importance=importance, tags=tags))

    @errors_told
    async def update_memory(
        self,
        ctx: Context[Any, Any],
        id: Number,  # noqa: A002 - the name that agents know
        content: str | None = None,
        category: CategoryOrKind | None = None,
        importance: Importance | None = None,
        tags: list[str] | None = None,
        when: Annotated[str | None, Field(description="When it happens or reminds: 'tomorrow at 9'.")] = None,
    ) -> MemoryShape:
        """Correct a memory. What is not given stays as it is; what it was before is kept."""
        person = await self._whose(ctx, id)
        edited = await person.edit_memory(
            id, text=content, category=category, importance=importance, tags=tags, when=when
        )
        return await shown(self._memory, edited)

    @errors_told
    async def delete_memory(self, ctx: Context[Any, Any], id: Number) -> MemoryShape:  # noqa: A002
        """Put a memory away, so that it is not used any more. It is kept, and people can bring it back."""
        person = await self._whose(ctx, id)
        return await shown(self._memory, await person.deactivate(id))

    @errors_told
    async def forget(
        self,
        ctx: Context[Any, Any],
        fact: Annotated[str, Field(min_length=1, description="What to forget, in a few words: likes pizza.")],
        user: User = None,
    ) -> ForgetResult:
        """Forget something about a user, because they asked for it. Says whether there was something to forget."""
        gone = await self._person(ctx, user, "app").forget(fact)
        return ForgetResult(found=gone.found, facts=gone.facts)

    async def _whose(self, ctx: Context[Any, Any], number: int) -> UserMemory:
        who = self._who(ctx, "app")
        found = await self._memory.memory(number, space=who.space_of(None))
        if who.user not in (None, found.user):
            raise NotFound(f"there is no memory {number}")
        return who.person(self._memory, found.user)
