"""Tools for memories, reminders, the people around a user, and what happened when."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from textwrap import shorten
from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import AwareDatetime, BaseModel, Field

from aforesaid.domain.checks import Category, CategoryOrKind, HitKind, Kind, MemoryState, to_zone
from aforesaid.domain.hit import Hit
from aforesaid.domain.memory import MemoryRecord
from aforesaid.errors import NotFound
from aforesaid.facts.describing import KnownPerson
from aforesaid.front.handle import MOST_AT_ONCE
from aforesaid.memory import UserMemory
from aforesaid.server.api.params import cursor_of, number_of
from aforesaid.server.mcp.message_tools import (
    CALLER,
    AgentAccess,
    AnswerLimit,
    Author,
    Chat,
    CursorArgument,
    Item,
    Limit,
    Metadata,
    NextCursor,
    OfRole,
    Since,
    Thread,
    Until,
    User,
)

_KINDS: Final[tuple[HitKind, ...]] = ("message", "summary", "memory")
_HITS: Final = 10
_PAGE: Final = 20
_MOST_HITS: Final = 500
"""Maximum hits over all pages of a search: what is further down the ranking is noise."""

Importance = Annotated[int, Field(ge=1, le=10, description="1 to 10; 5 is the default, 9 and 10 are critical.")]
MemoryId = Annotated[int, Field(ge=1, description="The id of the memory, as get_memories returned it.")]


class SearchHit(Item):
    """Something that was found."""

    kind: Literal["message", "summary", "memory", "session"]
    id: str
    text: str
    at: datetime = Field(description="When it was said.")
    score: float = Field(description="0 to 1. Below 0.5 it is more likely to be unrelated.")

    @classmethod
    def of(cls, hit: Hit) -> Self:
        return cls.taken_from(hit, cut=None, score=round(hit.score, 3))


class SearchResult(BaseModel):
    """What was found, best first."""

    hits: list[SearchHit]
    next: NextCursor


class MemoryItem(Item):
    """One memory: what an agent needs to use or correct it."""

    LONG: ClassVar[str] = "content"

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
        event = None if memory.event is None else memory.event.start
        return cls.taken_from(memory, cut=None, content=memory.text, when=memory.remind_at or event)


class MemoryList(BaseModel):
    """A page of memories, newest first."""

    memories: list[MemoryItem]
    next: NextCursor


class ContextText(BaseModel):
    """What should be known to answer a message."""

    text: str
    tokens: int


class RememberResult(BaseModel):
    """What became of a fact."""

    outcome: Literal["stored", "known", "quarantined"]
    reason: str
    facts: str = Field(description="All facts that are known about the user now; the beginning if there are many.")


class ForgetResult(BaseModel):
    """What became of a wish to forget."""

    found: bool
    facts: str = Field(description="The facts that are left; the beginning if there are many.")


class MemoryTools(AgentAccess):
    async def get_context(
        self,
        text: Annotated[str, Field(description="The message that you are about to answer.")],
        budget: Annotated[
            int | None, Field(ge=256, le=200_000, description="Maximum tokens. Default: as many as an answer may have.")
        ] = None,
        thread: Thread = None,
        chat: Chat = None,
        user: User = None,
    ) -> ContextText:
        """Get everything that should be known to answer a message.

        That is what is known about the user, summaries of what was said, and the parts of past conversations that fit.
        Call this first, with the user's own words.
        """
        person = self._person(user, thread=thread, chat=chat)
        made = await person.context(text, min(budget or self._limit.tokens, self._limit.tokens))
        return ContextText(text=made.text, tokens=made.tokens)

    async def search_memories(
        self,
        query: Annotated[str, Field(description="What to look for: words, a question, a date such as 'last May'.")],
        limit: Limit = _HITS,
        min_score: Annotated[
            float | None,
            Field(
                ge=0,
                le=1,
                description="Minimum score of a hit; 0 returns all. Default: 0.25 for words, 0.04 for questions.",
            ),
        ] = None,
        role: OfRole = None,
        author: Author = None,
        since: Since = None,
        until: Until = None,
        metadata: Metadata = None,
        cursor: CursorArgument = None,
        user: User = None,
    ) -> SearchResult:
        """Search everything that was ever said or remembered, by words and by meaning.

        Use it when get_context was not enough, or when you look for something in particular.
        """
        seen = number_of(cursor) or 0
        hits = await self._person(user).search(
            query,
            min(seen + limit + 1, _MOST_HITS),
            kinds=_KINDS,
            min_score=min_score,
            role=role,
            author=author,
            since=since,
            until=until,
            metadata=metadata,
        )
        found, after = self._limit.page(hits, cursor, SearchHit.of, most=limit)
        return SearchResult(hits=found, next=after)

    async def get_memories(
        self,
        category: Annotated[Category | None, Field(description="Only memories of this category.")] = None,
        kind: Annotated[Kind | None, Field(description="Only memories of this kind, finer than the category.")] = None,
        state: Annotated[
            MemoryState | None, Field(description="Only memories in this state; 'quarantined' ones wait for approval.")
        ] = None,
        limit: Limit = _PAGE,
        cursor: CursorArgument = None,
        user: User = None,
    ) -> MemoryList:
        """List single remembered things about a user, newest first, with the ids that update_memory needs.

        They are facts, preferences, events, appointments, tasks, reminders, relationships and standing requests. To
        find something in particular, use search_memories.
        """
        scope = self._person(user).scope
        found = await self._memory.memories(
            category,
            space=scope.space,
            user=scope.user,
            state=state,
            kind=kind,
            limit=limit,
            before=number_of(cursor),
            actor=CALLER.get().actor,
        )
        page = self._limit.fit(map(MemoryItem.of, found))
        last = page and (len(page) < len(found) or len(found) == limit)
        return MemoryList(memories=page, next=cursor_of(page[-1].id) if last else None)

    async def remember(
        self,
        fact: Annotated[str, Field(min_length=1, description="One statement, such as: prefers tea over coffee.")],
        user: User = None,
    ) -> RememberResult:
        """Keep a statement about a user in mind. Newer information takes the place of older.

        What reads like an instruction to a model is kept apart ('quarantined') until a person approves it. For
        appointments and tasks use add_memory, for reminders set_reminder.
        """
        kept = await self._person(user).remember(fact)
        return RememberResult(outcome=kept.outcome, reason=kept.reason, facts=self._limit.part(kept.facts, None)[0])

    async def add_memory(
        self,
        content: Annotated[str, Field(min_length=1, description="The text, such as: Dentist on Monday at 9am.")],
        category: Annotated[CategoryOrKind, Field(description="What it is.")] = "fact",
        importance: Importance = 5,
        tags: Annotated[list[str], Field(max_length=20, description="Topics.")] = [],  # noqa: B006 - never changed
        about: Annotated[
            str | None, Field(description="Whom it is about, if not the user: a name, such as Tom.")
        ] = None,
        user: User = None,
    ) -> MemoryItem:
        """Write down one thing to remember: an appointment (schedule), a task, a preference, a fact about somebody.

        Times in the content ('on Monday at 9am') are understood.
        """
        person = self._person(user)
        return MemoryItem.of(await person.note(category, content, importance=importance, tags=tags, about=about))

    async def update_memory(
        self,
        id: MemoryId,  # noqa: A002 - the name that agents know
        content: Annotated[str | None, Field(description="The new text.")] = None,
        category: Annotated[CategoryOrKind | None, Field(description="What it is.")] = None,
        importance: Importance | None = None,
        tags: Annotated[list[str] | None, Field(description="The new topics.")] = None,
        when: Annotated[str | None, Field(description="When it happens or reminds: 'tomorrow at 9'.")] = None,
    ) -> MemoryItem:
        """Correct a memory. What is not given stays as it is; what it was before is kept."""
        person = await self._owner(id)
        return MemoryItem.of(
            await person.edit_memory(id, text=content, category=category, importance=importance, tags=tags, when=when)
        )

    async def end_memory(
        self,
        id: MemoryId,  # noqa: A002
        at: Annotated[
            AwareDatetime | None,
            Field(description="Since when it is not true any more; not in the future. Default: now."),
        ] = None,
    ) -> MemoryItem:
        """Record that a memory was true and is not any more: they moved, changed jobs, stopped liking it.

        It stays part of the past. If it never was true, use delete_memory.
        """
        person = await self._owner(id)
        return MemoryItem.of(await person.end_memory(id, at=at))

    async def delete_memory(self, id: MemoryId) -> MemoryItem:  # noqa: A002
        """Put a memory away, so that it is not used any more. It is kept, and people can bring it back."""
        person = await self._owner(id)
        return MemoryItem.of(await person.deactivate(id))

    async def forget(
        self,
        fact: Annotated[str, Field(min_length=1, description="What to forget, in a few words: likes pizza.")],
        user: User = None,
    ) -> ForgetResult:
        """Forget something about a user, because they asked for it. Says whether there was something to forget."""
        gone = await self._person(user).forget(fact)
        return ForgetResult(found=gone.found, facts=self._limit.part(gone.facts, None)[0])


When = Annotated[
    str,
    Field(
        min_length=1,
        description="When to remind: words ('tomorrow at 9', 'in two hours', 'on 3 December at 17:00') in the user's "
        "language and time zone, or a time such as 2026-12-03T17:00:00+01:00. It must not be in the past.",
    ),
]
ReminderId = Annotated[int, Field(ge=1, description="The id of the reminder, as list_reminders returned it.")]


class Reminder(Item):
    """A reminder that has not been delivered."""

    id: int
    text: str
    when: datetime | None = Field(description="When it is due, in the user's time zone; null if it has no time yet.")
    day: str | None = Field(description="The day and time in words, to confirm to the user.")
    due: bool = Field(description="Whether its time has come.")

    @classmethod
    def of(cls, memory: MemoryRecord, zone: tzinfo) -> Self:
        if memory.remind_at is None:
            return cls(id=memory.id, text=memory.text, when=None, day=None, due=False)
        at = to_zone(memory.remind_at, zone)
        day = f"{at:%A}, {at.day} {at:%B %Y} at {at:%H:%M} ({zone})"
        return cls(id=memory.id, text=memory.text, when=at, day=day, due=memory.remind_at <= datetime.now(UTC))


class ReminderList(BaseModel):
    """Reminders that have not been delivered, soonest first."""

    reminders: list[Reminder]
    next: NextCursor


class ReminderTools(AgentAccess):
    async def list_reminders(
        self,
        due: Annotated[bool, Field(description="Only reminders whose time has come.")] = False,
        cursor: CursorArgument = None,
        user: User = None,
    ) -> ReminderList:
        """List the reminders that the user has set, soonest first, with the ids to move or cancel them.

        Use get_timeline for appointments and other events.
        """
        person = self._person(user)
        zone = await person.time_zone()
        found, after = self._limit.page(
            await person.reminders(due=due), cursor, lambda memory: Reminder.of(memory, zone)
        )
        return ReminderList(reminders=found, next=after)

    async def set_reminder(
        self,
        text: Annotated[str, Field(min_length=1, description="What to remind the user of, such as: call mum.")],
        when: When,
        user: User = None,
    ) -> Reminder:
        """Remind the user of something once, at a time that they asked for. Confirm the returned day and time to them.

        A bot of the user delivers it. Use add_memory for appointments that need no reminder.
        """
        person = self._person(user)
        return Reminder.of(await person.note("reminder", text, when=when), await person.time_zone())

    async def move_reminder(
        self,
        id: ReminderId,  # noqa: A002 - the name that agents know
        when: When,
    ) -> Reminder:
        """Move a reminder to another time. Confirm the returned day and time to the user."""
        person = await self._of_reminder(id)
        return Reminder.of(await person.edit_memory(id, when=when), await person.time_zone())

    async def cancel_reminder(self, id: ReminderId) -> Reminder:  # noqa: A002
        """Cancel a reminder, so that the user is not reminded. Returns the reminder that was cancelled."""
        person = await self._of_reminder(id)
        return Reminder.of(await person.deactivate(id), await person.time_zone())

    async def _of_reminder(self, number: int) -> UserMemory:
        """Return the memory of the user whose reminder has this id. Raises NotFound for other memories."""
        missing = NotFound(f"there is no reminder {number} that is still to come; list_reminders has those that are")
        try:
            person = await self._owner(number)
        except NotFound:
            raise missing from None
        if number not in {memory.id for memory in await person.reminders()}:
            raise missing
        return person


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
    async def portrait(self, cursor: CursorArgument = None, user: User = None) -> PortraitText:
        """Get what is known about the user themselves, in one text: facts, and what the last days were about.

        Use recall_person for other people in the user's life.
        """
        text = await self._person(user).portrait()
        if text is None:
            return PortraitText(portrait=None, next=None)
        part, after = self._limit.part(text, cursor)
        return PortraitText(portrait=part, next=after)

    async def recall_person(
        self,
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
        asked = self._person(user)
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
        found = await self._person(user).people(name)
        people, after = self._limit.page(found, cursor, PersonItem.of, most=limit)
        return PeopleList(people=people, next=after)

    async def get_timeline(
        self,
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
        found = await self._person(user).timeline(since, until, about=about, query=query, limit=MOST_AT_ONCE)
        if since is not None:
            events, after = self._limit.page(found, cursor, TimelineEvent.of, most=limit)
        else:
            events, after = self._limit.page(found[::-1], cursor, TimelineEvent.of, most=limit)
            events.reverse()
        return TimelineList(events=events, next=after)
