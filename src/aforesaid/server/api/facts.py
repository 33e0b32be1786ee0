"""What is known about a user in one text: told, forgotten, read."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from aforesaid.server.api.once import IdempotencyKey, Once
from aforesaid.server.api.params import Identifier, OfUser, Person, SpaceQuery, Text
from aforesaid.server.dependencies import App, MemoryDep
from aforesaid.server.shapes import MemoryShape, Shape, all_shown, shown

router = APIRouter(tags=["facts"])


class Portrait(BaseModel):
    """What should be known about a user."""

    user: str
    portrait: str | None = Field(examples=["Ann lives in Berlin. She prefers tea."])


class FactsShape(Shape):
    """A version of the text of facts."""

    version: int
    text: str
    cause: str = Field(description="The words that led to it.")
    updated_at: datetime


class Told(OfUser):
    """Something to keep in mind, or to forget."""

    fact: Text = Field(min_length=1, examples=["prefers tea over coffee"])
    name: Text | None = Field(default=None, max_length=255, description="What the user is called in sentences.")


class ToldByOthers(Told):
    """Something to keep in mind."""

    by: Identifier | None = Field(default=None, description="Who says so, if not the user.")


class Remembered(BaseModel):
    """What became of it."""

    outcome: Literal["stored", "known", "quarantined"]
    facts: str = Field(description="The text of facts, as it is now.")
    reason: str = Field(description="Why it was kept apart.")
    memory: MemoryShape | None


class Forgotten(BaseModel):
    """What was forgotten."""

    found: bool = Field(description="Whether there was something to forget.")
    facts: str = Field(description="The text of facts that is left.")
    memories: list[MemoryShape]


@router.get("/portrait", summary="Read the portrait")
async def read_portrait(
    person: Person,
    name: Annotated[Text | None, Query(max_length=255, description="What the user is called in sentences.")] = None,
) -> Portrait:
    """Return what should be known about a user, in one text: facts, today, the days before. Null if nothing is."""
    return Portrait(user=person.scope.user, portrait=await person.portrait(name=name))


@router.get("/facts", summary="Read the facts")
async def read_facts(person: Person) -> list[FactsShape]:
    """Return all versions of the text of what people stated about a user, oldest first."""
    return [FactsShape.model_validate(each) for each in await person.facts()]


@router.post("/remember", summary="Keep a fact in mind")
async def remember(
    who: App,
    memory: MemoryDep,
    told: ToldByOthers,
    response: Response,
    key: IdempotencyKey = None,
    space: SpaceQuery = None,
) -> Remembered:
    """Keep a fact in mind. Newer information takes the place of older."""
    person = told.person(who, memory, space)

    async def keep() -> Remembered:
        kept = await person.remember(told.fact, by=told.by, name=told.name)
        single = None if kept.memory is None else await shown(memory, kept.memory)
        return Remembered(outcome=kept.outcome, facts=kept.facts, reason=kept.reason, memory=single)

    return await Once(memory.store, who, person.scope, key, told).carry_out(Remembered, keep, response)


@router.post("/forget", summary="Forget a fact")
async def forget(
    who: App, memory: MemoryDep, told: Told, response: Response, key: IdempotencyKey = None, space: SpaceQuery = None
) -> Forgotten:
    """Forget a fact, and say whether it was there. It is not learned again from what had been said until now."""
    person = told.person(who, memory, space)

    async def drop() -> Forgotten:
        gone = await person.forget(told.fact, name=told.name)
        return Forgotten(found=gone.found, facts=gone.facts, memories=await all_shown(memory, gone.memories))

    return await Once(memory.store, who, person.scope, key, told).carry_out(Forgotten, drop, response)
