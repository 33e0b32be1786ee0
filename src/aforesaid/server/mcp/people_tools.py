"""The tools for what is known about the user and the people around them, and for what happened when."""

from __future__ import annotations

from datetime import datetime
from textwrap import shorten
from typing import Annotated, Any, ClassVar, Final, Self

from mcp.server.mcpserver import Context
from pydantic import AwareDatetime, BaseModel, Field

from aforesaid.domain.memory import MemoryRecord
from aforesaid.facts.people import KnownPerson
from aforesaid.front.handle import MOST_AT_ONCE
from aforesaid.server.mcp.memory_tools import SearchHit
from aforesaid.server.mcp.message_tools import AgentAccess, AnswerLimit, CursorArgument, Item, Limit, NextCursor, User

_EVENTS: Final = 50
_PEOPLE: Final = 20
_KNOWN: Final = 5
"""Statements about each person in a list of people; recall_person has all of them."""
_STATEMENT: Final = 300
"""Maximum characters of a statement in a list of people."""
_SAID: Final = 5
"""Messages about a person that recall_person returns."""


class TimelineEvent(Item):
    """Something that happened, or is to come."""

    LONG: ClassVar[str] = "content"

    memory: int = Field(description="The id of the memory that tells it.")
    when: datetime
    content: str

    @classmethod
    def of(cls, memory: MemoryRecord) -> Self:
        happened = memory.happened
        return cls(memory=memory.id, when=memory.said_at if happened is None else happened.start, content=memory.text)


class TimelineList(BaseModel):
    """What happened and what is to come, in the order in which it happened."""

    events: list[TimelineEvent]
    next: NextCursor


class PersonItem(Item):
    """A person around the user."""

    LONG: ClassVar[str] = "name"

    name: str
    relation: str | None = Field(description="To the user, such as sister or boss.")
    first_mentioned: datetime
    last_mentioned: datetime
    known: list[str] = Field(description="The most important statements about the person.")

    @classmethod
    def of(cls, person: KnownPerson) -> Self:
        known = [shorten(memory.text, _STATEMENT, placeholder=" …") for memory in person.memories[:_KNOWN]]
        return cls.taken_from(person, cut=None, known=known)


class PeopleList(BaseModel):
    """The people whom the memories of a user mention."""

    people: list[PersonItem]
    next: NextCursor


class Statement(Item):
    """One statement about a person."""

    LONG: ClassVar[str] = "content"

    memory: int = Field(description="The id of the memory.")
    content: str
    when: datetime | None = Field(description="When it happened, if it is dated.")
    said_at: datetime

    @classmethod
    def of(cls, memory: MemoryRecord) -> Self:
        happened = memory.happened
        when = None if happened is None else happened.start
        return cls(memory=memory.id, content=memory.text, when=when, said_at=memory.said_at)


class RecalledPerson(BaseModel):
    """Everything that is known about one person."""

    found: bool = Field(description="Whether the memory knows somebody who is called so.")
    name: str | None
    relation: str | None = Field(description="To the user, such as sister or boss.")
    last_mentioned: datetime | None
    others: list[str] = Field(description="Other people who could be meant. Call again with the name of one of them.")
    statements: list[Statement] = Field(description="What is known, the most important first.")
    said: list[SearchHit] = Field(description="Messages that mention the person.")
    next: NextCursor


class PortraitText(BaseModel):
    """What is known about a user."""

    portrait: str | None = Field(description="Null if nothing is known.")
    next: NextCursor


class PeopleTools(AgentAccess):
    async def portrait(self, ctx: Context[Any, Any], cursor: CursorArgument = None, user: User = None) -> PortraitText:
        """Get what is known about the user themselves, in one text: facts, and what the last days were about.

        Use recall_person for other people in the user's life.
        """
        text = await self._person(ctx, user).portrait()
        if text is None:
            return PortraitText(portrait=None, next=None)
        part, after = self._limit.part(text, cursor)
        return PortraitText(portrait=part, next=after)

    async def recall_person(
        self,
        ctx: Context[Any, Any],
        name: Annotated[
            str, Field(min_length=1, description="A name, or the relation to the user: 'Tom', 'my sister'.")
        ],
        cursor: CursorArgument = None,
        user: User = None,
    ) -> RecalledPerson:
        """Recall everything about one person in the user's life: who they are, what is known, what was said last.

        Use it for "who is Tom?", "what does my sister like?". Use portrait for the user themselves, get_people for a
        list.
        """
        asked = self._person(ctx, user)
        people = await asked.people(name)
        if not people:
            return RecalledPerson(
                found=False, name=None, relation=None, last_mentioned=None, others=[], statements=[], said=[], next=None
            )
        person, *others = people
        said = await asked.search(person.name, _SAID, kinds=("message",)) if cursor is None else []
        half = AnswerLimit(self._limit.tokens // 2)
        statements, after = half.page(person.memories, cursor, Statement.of)
        return RecalledPerson(
            found=True,
            name=person.name,
            relation=person.relation,
            last_mentioned=person.last_mentioned,
            others=[each.name for each in others[:_PEOPLE]],
            statements=statements,
            said=half.fit(map(SearchHit.of, said)),
            next=after,
        )

    async def get_people(
        self,
        ctx: Context[Any, Any],
        name: Annotated[
            str | None, Field(description="Only people called so: a name, or a relation such as 'sister'.")
        ] = None,
        limit: Limit = _PEOPLE,
        cursor: CursorArgument = None,
        user: User = None,
    ) -> PeopleList:
        """List the people around the user: family, friends, colleagues, each with what matters most about them.

        Use recall_person for everything about one of them.
        """
        found = await self._person(ctx, user).people(name)
        people, after = self._limit.page(found, cursor, PersonItem.of, most=limit)
        return PeopleList(people=people, next=after)

    async def get_timeline(
        self,
        ctx: Context[Any, Any],
        query: Annotated[
            str | None, Field(description="A topic or a question: 'the kitchen', 'what happened in May?'.")
        ] = None,
        about: Annotated[str | None, Field(description="Only what mentions this person, by name.")] = None,
        since: Annotated[AwareDatetime | None, Field(description="Only what happened at this time or later.")] = None,
        until: Annotated[AwareDatetime | None, Field(description="Only what happened before this time.")] = None,
        limit: Limit = _EVENTS,
        cursor: CursorArgument = None,
        user: User = None,
    ) -> TimelineList:
        """Get what happened in the user's life and what is to come, in order, each with its date.

        Use it for questions about the order of events, a period, or how something went. With `since`, the first page
        has the earliest events; without it, the latest.
        """
        found = await self._person(ctx, user).timeline(since, until, about=about, query=query, limit=MOST_AT_ONCE)
        if since is not None:
            events, after = self._limit.page(found, cursor, TimelineEvent.of, most=limit)
        else:
            events, after = self._limit.page(found[::-1], cursor, TimelineEvent.of, most=limit)
            events.reverse()
        return TimelineList(events=events, next=after)
