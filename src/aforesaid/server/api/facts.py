"""Routes for the facts about a user: remember, forget, read."""

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


@router.get("/portrait", summary="Read the portrait")
async def read_portrait(
    person: Person,
    name: Annotated[Text | None, Query(max_length=255, description="The user's name in sentences.")] = None,
) -> Portrait:
    """Return what is known about a user as one text: facts, today, the days before. Null if nothing is known."""
    return Portrait(user=person.scope.user, portrait=await person.portrait(name=name))


@router.get("/facts", summary="Read the facts")
async def read_facts(person: Person) -> list[FactsShape]:
    """Return all versions of the facts about a user, oldest first."""
    return [FactsShape.model_validate(each) for each in await person.facts()]


@router.post("/remember", summary="Keep a fact in mind")
async def remember(
    who: App,
    memory: MemoryDep,
    request: RememberRequest,
    response: Response,
    key: IdempotencyKey = None,
    space: SpaceQuery = None,
) -> RememberResult:
    """Store a fact. It replaces older facts that it contradicts."""
    person = request.person(who, memory, space)

    async def keep() -> RememberResult:
        kept = await person.remember(request.fact, by=request.by, name=request.name)
        single = None if kept.memory is None else await shown(memory, kept.memory)
        return RememberResult(outcome=kept.outcome, facts=kept.facts, reason=kept.reason, memory=single)

    return await Once(memory.store, who, person.scope, key, request).carry_out(RememberResult, keep, response)


@router.post("/forget", summary="Forget a fact")
async def forget(
    who: App,
    memory: MemoryDep,
    request: FactRequest,
    response: Response,
    key: IdempotencyKey = None,
    space: SpaceQuery = None,
) -> ForgetResult:
    """Forget a fact, and return whether it was known. It is not extracted again from earlier messages."""
    person = request.person(who, memory, space)

    async def drop() -> ForgetResult:
        gone = await person.forget(request.fact, name=request.name)
        return ForgetResult(found=gone.found, facts=gone.facts, memories=await all_shown(memory, gone.memories))

    return await Once(memory.store, who, person.scope, key, request).carry_out(ForgetResult, drop, response)
