"""Routes for what is known: memories, facts, summaries, the timeline and people."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import date, datetime
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Depends, Header, Query, Response
from pydantic import AliasChoices, BaseModel, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from aforesaid.domain.checks import Category, CategoryOrKind, Kind, MemoryState
from aforesaid.domain.memory import LEAST_IMPORTANCE, MOST_IMPORTANCE, USUAL_IMPORTANCE, USUAL_PRIORITY, MemoryRecord
from aforesaid.domain.scope import direct_thread
from aforesaid.domain.summary import SummaryKind
from aforesaid.errors import InvalidInput, NotFound
from aforesaid.memory import Memory, UserMemory
from aforesaid.server.api.params import (
    PAGE,
    Body,
    Cursor,
    Idempotent,
    Identifier,
    IfMatch,
    Limit,
    Moment,
    Number,
    OfUser,
    Person,
    SpaceQuery,
    Text,
    UserQuery,
    Writer,
    cursor_of,
    etag,
    expected,
    number_of,
    unchanged,
)
from aforesaid.server.auth import Credential
from aforesaid.server.authentication import App, MemoryDep, Reader
from aforesaid.server.problems import declared
from aforesaid.server.schemas import (
    Happening,
    MemoryPage,
    MemoryShape,
    MemoryVersionShape,
    MessageShape,
    Shape,
    SummaryShape,
    all_shown,
    shown,
)

router = APIRouter(tags=["memories"])

BLANKLESS: Final = r"^[^\u0000]*[^\u0000\s][^\u0000]*$"
"""Describes a text without NUL characters that is not blank."""
Importance = Annotated[int, Field(ge=LEAST_IMPORTANCE, le=MOST_IMPORTANCE, examples=[8])]
Priority = Annotated[int, Field(ge=1, le=5)]
When = Annotated[str, Field(min_length=1, max_length=200, examples=["2026-12-03T10:00:00+01:00", "tomorrow at 9"])]
_WHEN = (
    "When it happens or reminds: a moment, or words such as `tomorrow at 9`. Without a time zone it is in the user's "
    "(`time_zone`). A reminder cannot lie in the past."
)
_ABOUT = "Whom it is about, if not the user: the id of another user, or a name."
Content = Annotated[
    str,
    # For the description only: `checks.filled_text` refuses NUL characters and blanks.
    Field(min_length=1, examples=["Dentist on Monday at 9am"], json_schema_extra={"pattern": BLANKLESS}),
]
Active = Annotated[bool | None, Query(description="Whether to return active or inactive ones. Default: true.")]
Every = Annotated[bool, Query(description="All states; `active` is ignored.")]
_CONTENT: Final = AliasChoices("content", "text")
_CONTENT_MEANING: Final = "What it says. `text` is another name of this field."


class NewMemory(Body):
    """A memory to store."""

    user_name: Identifier | None = Field(
        default=None,
        validation_alias=AliasChoices("user_name", "user"),
        description="The user. Not needed with a key for one user. `user` is another name of this field.",
        examples=["ann"],
    )
    category: CategoryOrKind = Field(
        description="The category, or the kind of what no category names (an event, a relationship, an instruction).",
        examples=["schedule"],
    )
    content: Content = Field(validation_alias=_CONTENT, description=_CONTENT_MEANING)
    importance: Importance = USUAL_IMPORTANCE
    tags: list[Identifier] = Field(default=[], max_length=100)
    priority: Priority = USUAL_PRIORITY
    when: When | None = Field(default=None, description=f"{_WHEN} Without it, what the content says counts.")
    expires_at: Moment | None = None
    about: Identifier | None = Field(default=None, description=_ABOUT, examples=["Tom"])


class MemoryEdit(Body):
    """Changes of a memory, at least one. Omitted fields stay unchanged."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    category: CategoryOrKind | None = None
    content: Content | None = Field(default=None, validation_alias=_CONTENT, description=_CONTENT_MEANING)
    importance: Importance | None = None
    tags: list[Identifier] | None = Field(default=None, max_length=100)
    priority: Priority | None = None
    when: When | None = Field(
        default=None, description=f"{_WHEN} Without it, new content that names another time moves the memory as well."
    )
    expires_at: Moment | None = None
    about: Identifier | None = Field(default=None, description=_ABOUT)
    active: bool | SkipJsonSchema[None] = Field(default=None, description="False deactivates it, true reactivates it.")


async def _whose(who: Credential, memory: Memory, number: int, space: str | None) -> UserMemory:
    """Return the user whom a memory is about. One of another space or user looks like none at all."""
    found = await memory.memory(number, space=who.space_of(space))
    if who.user not in (None, found.user):
        raise NotFound(f"there is no memory {number}")
    return who.person(memory, found.user, space=space)


class _Change:
    """One memory that a request changes; the answer is the memory afterwards, with its ETag."""

    def __init__(self, person: UserMemory, memory: Memory, match: str | None, response: Response) -> None:
        self.person = person
        self._memory = memory
        self._match = match
        self._response = response

    async def carry_out(
        self, act: Callable[..., Awaitable[MemoryRecord]], number: int, **arguments: object
    ) -> MemoryShape:
        """Change the memory, unless somebody else changed it before (412)."""
        with unchanged(self._match):
            made = await act(number, revision=expected(self._match), **arguments)
        self._response.headers["ETag"] = etag(made.revision)
        return await shown(self._memory, made)


async def _change(
    who: App, memory: MemoryDep, number: Number, response: Response, match: IfMatch = None, space: SpaceQuery = None
) -> _Change:
    return _Change(await _whose(who, memory, number, space), memory, match, response)


Change = Annotated[_Change, Depends(_change)]


@router.get("/memories", summary="List memories")
async def list_memories(
    who: Reader,
    memory: MemoryDep,
    user: UserQuery = None,
    category: Category | None = None,
    kind: Annotated[Kind | None, Query(description="Only memories of this kind. Finer than the category.")] = None,
    active: Active = None,
    state: Annotated[MemoryState | None, Query(description="Only memories in this state.")] = None,
    every: Every = False,
    q: Annotated[str | None, Query(max_length=1_000, description="Only memories that contain these words.")] = None,
    cursor: Cursor = None,
    limit: Limit = PAGE,
    space: SpaceQuery = None,
) -> MemoryPage:
    """Return the memories of the space or of one user, newest first."""
    found = await memory.memories(
        category,
        space=who.space_of(space),
        user=who.user_of(user),
        active=None if every else active is not False,
        state=state,
        kind=kind,
        containing=q,
        before=number_of(cursor),
        limit=limit,
        actor=who.actor,
    )
    more = cursor_of(found[-1].id) if len(found) == limit else None
    return MemoryPage(memories=await all_shown(memory, found), next=more)


@router.post("/memories", status_code=201, summary="Write a memory down")
async def create_memory(
    writer: Writer, memory: MemoryDep, once: Idempotent, new: NewMemory, response: Response
) -> MemoryShape:
    """Store a memory."""
    person = writer.user(new.user_name)

    async def write() -> MemoryShape:
        written = await person.note(
            new.category,
            new.content,
            importance=new.importance,
            tags=new.tags,
            priority=new.priority,
            when=new.when,
            expires=new.expires_at,
            about=new.about,
        )
        return await shown(memory, written)

    made = await once.carry_out(person.scope, new, MemoryShape, write)
    response.headers["ETag"] = etag(made.revision)
    response.headers["Location"] = f"/api/memories/{made.id}"
    return made


@router.get(
    "/memories/{number}",
    summary="Read one memory",
    response_model=MemoryShape,
    responses={304: {"description": "It is as the ETag says."}},
)
async def read_memory(
    who: Reader,
    memory: MemoryDep,
    number: Number,
    response: Response,
    if_none_match: Annotated[str | None, Header(max_length=100)] = None,
    space: SpaceQuery = None,
) -> MemoryShape | Response:
    """Return a memory in any state."""
    person = await _whose(who, memory, number, space)
    found = await person.read_memory(number)
    tag = etag(found.revision)
    if if_none_match is not None and if_none_match.strip() == tag:
        return Response(status_code=304, headers={"ETag": tag})
    response.headers["ETag"] = tag
    return await shown(memory, found)


@router.put("/memories/{number}", summary="Correct a memory", responses=declared(412))
async def edit_memory(
    change: Change, memory: MemoryDep, number: Number, edit: MemoryEdit, response: Response, match: IfMatch = None
) -> MemoryShape:
    """Change a memory. The earlier version is kept and can be restored."""
    person = change.person
    changes = edit.model_dump(exclude_unset=True, exclude={"active"})
    if not changes and edit.active is None:
        raise InvalidInput("the request changes nothing; send at least one field", "body")
    revision = expected(match)
    with unchanged(match):
        if changes:
            made = await person.edit_memory(
                number,
                text=edit.content,
                category=edit.category,
                importance=edit.importance,
                tags=edit.tags,
                priority=edit.priority,
                when=edit.when,
                expires=edit.expires_at,
                about=edit.about,
                revision=revision,
            )
            revision = made.revision
        if edit.active is False:
            made = await person.deactivate(number, revision=revision)
        elif edit.active is True:
            made = await person.reactivate(number, revision=revision)
    response.headers["ETag"] = etag(made.revision)
    return await shown(memory, made)


@router.delete("/memories/{number}", summary="Put a memory away", responses=declared(412))
async def delete_memory(
    who: App, memory: MemoryDep, number: Number, match: IfMatch = None, space: SpaceQuery = None
) -> MemoryShape:
    """Deactivate a memory, so that it is not used any more. `undo` restores it."""
    person = await _whose(who, memory, number, space)
    with unchanged(match):
        return await shown(memory, await person.deactivate(number, revision=expected(match)))


@router.get("/memories/{number}/history", summary="What a memory was before")
async def memory_history(
    who: Reader, memory: MemoryDep, number: Number, space: SpaceQuery = None
) -> list[MemoryVersionShape]:
    """Return the earlier versions of a memory, oldest first, and who changed each."""
    person = await _whose(who, memory, number, space)
    versions = await person.memory_history(number)
    before = await all_shown(memory, [version.before for version in versions])
    return [
        MemoryVersionShape(before=shape, action=version.action, actor=version.actor, at=version.at)
        for shape, version in zip(before, versions, strict=True)
    ]


@router.post("/memories/{number}/undo", summary="Undo the last change", responses=declared(412))
async def undo_change(change: Change, number: Number) -> MemoryShape:
    """Undo the last change of a memory. Undoing twice redoes it."""
    return await change.carry_out(change.person.undo, number)


@router.post("/memories/{number}/approve", summary="Approve a memory", responses=declared(412))
async def approve_memory(change: Change, number: Number) -> MemoryShape:
    """Activate a memory that waits for approval. Returns 409 for any other."""
    return await change.carry_out(change.person.approve, number)


@router.post("/memories/{number}/reject", summary="Reject a memory", responses=declared(412))
async def reject_memory(change: Change, number: Number) -> MemoryShape:
    """Deactivate a memory that waits for approval. Returns 409 for any other."""
    return await change.carry_out(change.person.reject, number)


@router.post("/memories/{number}/end", summary="End a memory", responses=declared(412))
async def end_memory(
    change: Change,
    number: Number,
    at: Annotated[
        Moment | None,
        Query(
            description="Since when it is no longer true: later than `valid_from`, not in the future. Default: now.",
            examples=["2026-03-01T00:00:00+01:00"],
        ),
    ] = None,
) -> MemoryShape:
    """Record that a memory is no longer true: its state becomes `expired`. Returns 409 for one that is not active."""
    return await change.carry_out(change.person.end_memory, number, at=at)


@router.post("/memories/{number}/reactivate", summary="Restore a memory", responses=declared(412))
async def reactivate_memory(change: Change, number: Number) -> MemoryShape:
    """Restore a memory that was deactivated, superseded or expired. Returns 409 for one that waits for approval."""
    return await change.carry_out(change.person.reactivate, number)


facts_router = APIRouter(tags=["facts"])


class Portrait(BaseModel):
    """The portrait of a user."""

    user: str
    portrait: str | None = Field(examples=["Ann lives in Berlin. She prefers tea."])


class FactsShape(Shape):
    """A version of the text of facts."""

    version: int
    text: str
    cause: str = Field(description="The words that led to it.")
    updated_at: datetime


class FactRequest(OfUser):
    """A fact to remember or to forget."""

    fact: Text = Field(min_length=1, examples=["prefers tea over coffee"])
    name: Text | None = Field(default=None, max_length=255, description="The user's name in sentences.")


class RememberRequest(FactRequest):
    """A fact to remember."""

    by: Identifier | None = Field(default=None, description="Who states the fact, if it is not the user.")


class RememberResult(BaseModel):
    """The outcome of remembering."""

    outcome: Literal["stored", "known", "quarantined"]
    facts: str = Field(description="The current text of facts.")
    reason: str = Field(description="Why it was quarantined.")
    memory: MemoryShape | None


class ForgetResult(BaseModel):
    """The outcome of forgetting."""

    found: bool = Field(description="Whether there was something to forget.")
    facts: str = Field(description="The remaining text of facts.")
    memories: list[MemoryShape]


@facts_router.get("/portrait", summary="Read the portrait")
async def read_portrait(
    person: Person,
    name: Annotated[Text | None, Query(max_length=255, description="The user's name in sentences.")] = None,
) -> Portrait:
    """Return what is known about a user as one text: facts, today, the days before. Null if nothing is known."""
    return Portrait(user=person.scope.user, portrait=await person.portrait(name=name))


@facts_router.get("/facts", summary="Read the facts")
async def read_facts(person: Person) -> list[FactsShape]:
    """Return all versions of the facts about a user, oldest first."""
    return [FactsShape.model_validate(each) for each in await person.facts()]


@facts_router.post("/remember", summary="Keep a fact in mind")
async def remember(writer: Writer, memory: MemoryDep, once: Idempotent, request: RememberRequest) -> RememberResult:
    """Store a fact. It replaces older facts that it contradicts."""
    person = writer.user_of(request)

    async def keep() -> RememberResult:
        kept = await person.remember(request.fact, by=request.by, name=request.name)
        single = None if kept.memory is None else await shown(memory, kept.memory)
        return RememberResult(outcome=kept.outcome, facts=kept.facts, reason=kept.reason, memory=single)

    return await once.carry_out(person.scope, request, RememberResult, keep)


@facts_router.post("/forget", summary="Forget a fact")
async def forget(writer: Writer, memory: MemoryDep, once: Idempotent, request: FactRequest) -> ForgetResult:
    """Forget a fact, and return whether it was known. It is not extracted again from earlier messages."""
    person = writer.user_of(request)

    async def drop() -> ForgetResult:
        gone = await person.forget(request.fact, name=request.name)
        return ForgetResult(found=gone.found, facts=gone.facts, memories=await all_shown(memory, gone.memories))

    return await once.carry_out(person.scope, request, ForgetResult, drop)


summaries_router = APIRouter(tags=["summaries"])


class Summaries(BaseModel):
    """Summaries, highest level first."""

    summaries: list[SummaryShape]


class SummaryWanted(OfUser):
    """The user whose messages to summarise."""


class SummaryEdit(Body):
    """The new text of a summary."""

    text: Text = Field(min_length=1, examples=["Ann moved to Berlin and likes it."])


@summaries_router.get("/summaries", summary="List summaries")
async def list_summaries(
    person: Person,
    active: Active = None,
    kind: SummaryKind | None = None,
    day: Annotated[date | None, Query(description="Only summaries of this day.")] = None,
    every: Every = False,
) -> Summaries:
    """Return a user's summaries, highest level first; with `thread` or `chat`, only those made there."""
    state = None if every else active is not False
    scope = person.scope
    thread = None if scope.thread == direct_thread(scope.user) else scope.thread
    found = await person.summaries(active=state, kind=kind, day=day, thread=thread)
    return Summaries(summaries=[SummaryShape.model_validate(each) for each in found])


@summaries_router.post("/summaries", summary="Summarise now")
async def summarize(writer: Writer, once: Idempotent, wanted: SummaryWanted) -> Summaries:
    """Summarise now, even a single message, and return the new summaries."""
    person = writer.user_of(wanted)

    async def make() -> Summaries:
        made = await person.summarize()
        return Summaries(summaries=[SummaryShape.model_validate(each) for each in made])

    return await once.carry_out(person.scope, wanted, Summaries, make)


@summaries_router.get("/summaries/{number}/messages", summary="Read the messages of a summary")
async def summary_messages(person: Person, number: Number) -> list[MessageShape]:
    """Return the messages below a summary of any level, oldest first."""
    return [MessageShape.model_validate(each) for each in await person.summary_messages(number)]


@summaries_router.put("/summaries/{number}", summary="Correct a summary")
async def edit_summary(writer: Writer, number: Number, edit: SummaryEdit, user: UserQuery = None) -> SummaryShape:
    """Correct an active summary. The new text is stored as the next version with a new id; the old version is kept.

    Editing a version that is not the newest is refused.
    """
    made = await writer.user(user).edit_summary(number, edit.text, editor=writer.who.actor)
    return SummaryShape.model_validate(made)


@summaries_router.post("/summaries/{number}/roll-back", summary="Take a summary back")
async def roll_back(writer: Writer, number: Number, user: UserQuery = None) -> SummaryShape:
    """Roll back a summary: its earlier version, or else the messages and summaries it covers, become active again."""
    return SummaryShape.model_validate(await writer.user(user).roll_back(number))


timeline_router = APIRouter(tags=["timeline"])

_MOST_LISTED = 100


class TimelineEntry(BaseModel):
    """Something that happened, or is to come."""

    at: Happening
    memory: MemoryShape


class Timeline(BaseModel):
    """What happened and what is to come, in the order in which it happened."""

    events: list[TimelineEntry]


class KnownPersonShape(Shape):
    """A person around a user."""

    name: str = Field(
        description="The name; of somebody of whom only the relation is known, that.", examples=["Sinéad"]
    )
    id: str | None = Field(description="The id, if the person is a user of the same space.")
    relation: str | None = Field(description="To the user.", examples=["sister"])
    first_mentioned: datetime
    last_mentioned: datetime
    memories: list[MemoryShape] = Field(description="What is known: active memories, those about the person first.")


class KnownPeople(BaseModel):
    """The people whom the memories of a user mention, those with most memories first."""

    people: list[KnownPersonShape]


@timeline_router.get("/timeline", summary="Read the timeline")
async def read_timeline(
    person: Person,
    memory: MemoryDep,
    since: Annotated[Moment | None, Query(description="Only what happened at this time or later.")] = None,
    until: Annotated[Moment | None, Query(description="Only what happened before this time.")] = None,
    about: Annotated[Identifier | None, Query(description="Only what mentions this person, by id or name.")] = None,
    q: Annotated[
        Text | None, Query(max_length=1_000, description="A topic or a question, such as `what happened in May?`.")
    ] = None,
    limit: Limit = _MOST_LISTED,
) -> Timeline:
    """Return dated memories in the order in which things happened: the first from `since` on, or else the last ones."""
    found = await person.timeline(since, until, about=about, query=q or None, limit=limit)
    shapes = await all_shown(memory, found)
    events = [
        TimelineEntry(at=Happening.model_validate(each.happened), memory=shape)
        for each, shape in zip(found, shapes, strict=True)
    ]
    return Timeline(events=events)


@timeline_router.get("/people", summary="Read who is around a user")
async def read_people(
    person: Person,
    memory: MemoryDep,
    name: Annotated[
        Text | None, Query(max_length=255, description="Only people called so: by name, id or relation.")
    ] = None,
    limit: Limit = _MOST_LISTED,
) -> KnownPeople:
    """Return the people whom the memories of a user mention, and what is known about each."""
    found = (await person.people(name or None))[:limit]
    people = [KnownPersonShape.taken_from(each, memories=await all_shown(memory, each.memories)) for each in found]
    return KnownPeople(people=people)
