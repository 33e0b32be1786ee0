"""Routes for what happened in a user's life, and for the people around them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from aforesaid.domain.memory import MemoryRecord
from aforesaid.facts.people import KnownPerson
from aforesaid.server.api.params import Identifier, Limit, Moment, Person, Text
from aforesaid.server.dependencies import MemoryDep
from aforesaid.server.shapes import Happening, MemoryShape, all_shown

router = APIRouter(tags=["timeline"])

_MOST = 100


class TimelineEntry(BaseModel):
    """Something that happened, or is to come."""

    at: Happening
    memory: MemoryShape


class Timeline(BaseModel):
    """What happened and what is to come, in the order in which it happened."""

    events: list[TimelineEntry]


class KnownPersonShape(BaseModel):
    """A person around a user."""

    name: str = Field(
        description="The name; of somebody of whom only the relation is known, that.", examples=["Sinéad"]
    )
    id: str | None = Field(description="The id, if the person is a user of the same space.")
    relation: str | None = Field(description="To the user.", examples=["sister"])
    first_mentioned: datetime
    last_mentioned: datetime
    memories: list[MemoryShape] = Field(description="What is known: active memories, those about the person first.")

    @classmethod
    def of(cls, person: KnownPerson, memories: list[MemoryShape]) -> Self:
        """Show a person with their memories."""
        return cls(
            name=person.name,
            id=person.id,
            relation=person.relation,
            first_mentioned=person.first_mentioned,
            last_mentioned=person.last_mentioned,
            memories=memories,
        )


class KnownPeople(BaseModel):
    """The people whom the memories of a user mention, those with most memories first."""

    people: list[KnownPersonShape]


@router.get("/timeline", summary="Read the timeline")
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
    return Timeline(
        events=[TimelineEntry(at=_when(each), memory=shape) for each, shape in zip(found, shapes, strict=True)]
    )


@router.get("/people", summary="Read who is around a user")
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
    return KnownPeople(people=[KnownPersonShape.of(each, await all_shown(memory, each.memories)) for each in found])


def _when(memory: MemoryRecord) -> Happening:
    return Happening.model_validate(memory.happened)
