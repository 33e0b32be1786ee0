"""Routes for contexts."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import Field

from aforesaid.profiles.recipe import LEAST_BUDGET, MOST_TOKENS, SECTIONS, SectionName
from aforesaid.server.api.params import Moment, OfUser, SpaceQuery, Text
from aforesaid.server.dependencies import MemoryDep, Reader
from aforesaid.server.shapes import ContextShape

router = APIRouter(tags=["context"])


class ContextWanted(OfUser):
    """A request for a context."""

    text: Text = Field(min_length=1, description="The message to answer.", examples=["Where do I live?"])
    budget: int | None = Field(
        default=None, ge=LEAST_BUDGET, le=MOST_TOKENS, description="Maximum tokens. Default: the profile's."
    )
    system: Text | None = Field(default=None, description="Your system prompt.")
    persona: Text | None = Field(default=None, description="The persona of the bot.")
    at: Moment | None = Field(default=None, description="The time of the question. Default: now.")
    model: Text | None = Field(
        default=None, max_length=255, description="The model whose tokens to count.", examples=["gpt-4o"]
    )
    sent: bool = Field(
        default=False, description="Whether you send it to a model: then a receipt says which messages it showed."
    )
    without: list[SectionName] = Field(
        default=[],
        max_length=len(SECTIONS),
        description="Sections to leave out, such as `recent` if your app sends the conversation itself.",
        json_schema_extra={"items": {"enum": [name for name in SECTIONS if name != "current"], "type": "string"}},
    )


@router.post("/context", summary="Make a context")
async def make_context(who: Reader, memory: MemoryDep, wanted: ContextWanted, space: SpaceQuery = None) -> ContextShape:
    """Return the context for answering a message, within the budget. No chat model is called."""
    person = wanted.person(who, memory, space)
    made = await person.context(
        wanted.text,
        wanted.budget,
        system=wanted.system,
        persona=wanted.persona,
        at=wanted.at,
        model=wanted.model,
        without=wanted.without,
        tools=False,  # the messages of this answer are texts
    )
    if wanted.sent:
        await person.sent(made)
    return ContextShape.of(made)
