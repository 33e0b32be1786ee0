"""Routes for summaries and the timeline."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from aforesaid.domain.scope import direct_thread
from aforesaid.domain.summary import SummaryKind
from aforesaid.server.api.params import (
    Body,
    IdempotencyKey,
    IdempotentRequest,
    Identifier,
    Limit,
    Moment,
    Number,
    OfUser,
    Person,
    SpaceQuery,
    Text,
    UserQuery,
    named,
)
from aforesaid.server.auth.authentication import App, MemoryDep
from aforesaid.server.schemas import Happening, MemoryShape, MessageShape, Shape, SummaryShape, all_shown

router = APIRouter(tags=["summaries"])


class Summaries(BaseModel):
    """Summaries, highest level first."""

    summaries: list[SummaryShape]


class SummaryWanted(OfUser):
    """The user whose messages to summarise."""


class SummaryEdit(Body):
    """The new text of a summary."""

    text: Text = Field(min_length=1, examples=["Ann moved to Berlin and likes it."])


@router.get("/summaries", summary="List summaries")
async def list_summaries(
    person: Person,
    active: Annotated[
        bool | None, Query(description="Whether to return active or inactive ones. Default: true.")
    ] = None,
    kind: SummaryKind | None = None,
    day: Annotated[date | None, Query(description="Only summaries of this day.")] = None,
    every: Annotated[bool, Query(description="All states; `active` is ignored.")] = False,
) -> Summaries:
    """Return a user's summaries, highest level first; with `thread` or `chat`, only those made there."""
    state = None if every else active is not False
    scope = person.scope
    thread = None if scope.thread == direct_thread(scope.user) else scope.thread
    found = await person.summaries(active=state, kind=kind, day=day, thread=thread)
    return Summaries(summaries=[SummaryShape.model_validate(each) for each in found])


@router.post("/summaries", summary="Summarise now")
async def summarize(
    who: App,
    memory: MemoryDep,
    wanted: SummaryWanted,
    response: Response,
    key: IdempotencyKey = None,
    space: SpaceQuery = None,
) -> Summaries:
    """Summarise now, even a single message, and return the new summaries."""
    person = wanted.person(who, memory, space)

    async def make() -> Summaries:
        made = await person.summarize()
        return Summaries(summaries=[SummaryShape.model_validate(each) for each in made])

    return await IdempotentRequest(memory.store, who, person.scope, key, wanted).carry_out(Summaries, make, response)


@router.get("/summaries/{number}/messages", summary="Read the messages of a summary")
async def summary_messages(person: Person, number: Number) -> list[MessageShape]:
    """Return the messages below a summary of any level, oldest first."""
    return [MessageShape.model_validate(each) for each in await person.summary_messages(number)]


@router.put("/summaries/{number}", summary="Correct a summary")
async def edit_summary(
    who: App, memory: MemoryDep, number: Number, edit: SummaryEdit, user: UserQuery = None, space: SpaceQuery = None
) -> SummaryShape:
    """Correct an active summary. The new text is stored as the next version with a new id; the old version is kept.

    Editing a version that is not the newest is refused.
    """
    person = who.person(memory, named(who, user), space=space)
    return SummaryShape.model_validate(await person.edit_summary(number, edit.text, editor=who.actor))


@router.post("/summaries/{number}/roll-back", summary="Take a summary back")
async def roll_back(
    who: App, memory: MemoryDep, number: Number, user: UserQuery = None, space: SpaceQuery = None
) -> SummaryShape:
    """Roll back a summary: its earlier version, or else the messages and summaries it covers, become active again."""
    person = who.person(memory, named(who, user), space=space)
    return SummaryShape.model_validate(await person.roll_back(number))


timeline_router = APIRouter(tags=["timeline"])

_MOST = 100


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
    limit: Limit = _MOST,
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
    limit: Limit = _MOST,
) -> KnownPeople:
    """Return the people whom the memories of a user mention, and what is known about each."""
    found = (await person.people(name or None))[:limit]
    people = [KnownPersonShape.taken_from(each, memories=await all_shown(memory, each.memories)) for each in found]
    return KnownPeople(people=people)
