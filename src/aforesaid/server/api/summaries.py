"""Routes for summaries: list, make, edit, roll back."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from aforesaid.domain.scope import direct_thread
from aforesaid.domain.summary import SummaryKind
from aforesaid.server.api.once import IdempotencyKey, Once
from aforesaid.server.api.params import Body, Number, OfUser, Person, SpaceQuery, Text, UserQuery, named
from aforesaid.server.dependencies import App, MemoryDep
from aforesaid.server.shapes import MessageShape, SummaryShape

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

    return await Once(memory.store, who, person.scope, key, wanted).carry_out(Summaries, make, response)


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
