"""Routes for contexts, receipts and searches."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Self

from fastapi import APIRouter, Depends, Path, Query
from pydantic import BaseModel, Field

from aforesaid.domain.checks import HitKind
from aforesaid.domain.context_receipt import ContextReceipt, SentItem, SentKind, SentSource, is_receipt_id
from aforesaid.front.messages import MOST_AROUND
from aforesaid.profiles.recipe import LEAST_BUDGET, MOST_TOKENS, SECTIONS, SectionName
from aforesaid.recall import DEFAULT_KINDS, Arms
from aforesaid.server.api.params import (
    PAGE,
    Asker,
    Cursor,
    Limit,
    MessageFilter,
    Moment,
    OfUser,
    Person,
    Text,
    WithinQuery,
    cursor_of,
    text_of,
    unknown_cursor,
)
from aforesaid.server.schemas import ContextShape, HitShape, Shape

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
async def make_context(asker: Annotated[Asker, Depends()], wanted: ContextWanted) -> ContextShape:
    """Return the context for answering a message, within the budget. No chat model is called."""
    person = asker.user_of(wanted)
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


receipts_router = APIRouter(tags=["receipts"])

_ID = r"^[0-9a-f]{32}$"


class SentItemShape(BaseModel):
    """One item of a context."""

    kind: SentKind
    id: int | None = Field(description="The number of the message, memory or summary; null for other texts.")
    tokens: int
    text: str | None = Field(default=None, description="What it says now; null for other texts and in lists.")
    erased: bool = Field(default=False, description="Whether it was erased or taken back since.")


class SentSectionShape(BaseModel):
    """One section of a context."""

    name: str
    tokens: int
    items: list[SentItemShape]


class ContextReceiptShape(Shape):
    """What was sent to a model to get one reply."""

    id: str
    user: str
    thread: str
    at: datetime
    caller: str = Field(description="Who asked: the name of a key, or `aforesaid`.")
    profile: str
    model: str | None
    budget: int
    tokens: int = Field(description="Tokens of all sections together.")
    input_tokens: int | None = Field(description="As the provider counted them.")
    output_tokens: int | None = Field(description="As the provider counted them.")
    milliseconds: dict[str, int] = Field(description="Durations: `context`, `first_byte`, `reply`.")
    limited: str | None = Field(description="Why the context may miss something; null if all sources were searched.")
    reply: int | None = Field(description="The number of the message that it led to.")
    knew: str = Field(description="What the model was told, in words.", examples=["14 messages and 3 memories"])
    sections: list[SentSectionShape]

    @classmethod
    def of(cls, receipt: ContextReceipt, sources: Mapping[tuple[SentKind, int], SentSource] | None = None) -> Self:
        """Show a receipt, with the texts of its items if their `sources` are given."""
        sections = [
            SentSectionShape(name=name, tokens=tokens, items=[_item(each, sources) for each in items])
            for name, tokens, items in receipt.sections
        ]
        return cls.taken_from(receipt, milliseconds=dict(receipt.milliseconds), sections=sections)


class ReceiptPage(BaseModel):
    """Receipts, newest first."""

    receipts: list[ContextReceiptShape]
    next: str | None = Field(description="The cursor of the next page; null at the end.")


@receipts_router.get("/receipts", summary="List what was sent to models")
async def list_receipts(
    person: Person,
    since: Annotated[Moment | None, Query(description="Only receipts of this time or later.")] = None,
    limit: Limit = PAGE,
    cursor: Cursor = None,
) -> ReceiptPage:
    """Return receipts of a user's contexts, newest first: the ids of what each showed to a model, without texts."""
    before = text_of(cursor)
    if before is not None and not is_receipt_id(before):
        raise unknown_cursor()
    found = await person.receipts(limit, since=since, before=before)
    following = cursor_of(found[-1].id) if len(found) == limit else None
    return ReceiptPage(receipts=[ContextReceiptShape.of(each) for each in found], next=following)


@receipts_router.get("/receipts/{receipt}", summary="Read what was sent to a model")
async def read_receipt(
    person: Person,
    receipt: Annotated[str, Path(pattern=_ID, description="The id, as in `X-Aforesaid-Receipt`.")],
) -> ContextReceiptShape:
    """Return one receipt with what its messages, memories and summaries say now. What was erased since has no text."""
    found = await person.receipt(receipt)
    return ContextReceiptShape.of(found, await person.receipt_sources(found))


def _item(item: SentItem, sources: Mapping[tuple[SentKind, int], SentSource] | None) -> SentItemShape:
    kind, number, tokens = item
    if kind == "text" or sources is None:
        return SentItemShape(kind=kind, id=number, tokens=tokens)
    source = None if number is None else sources.get((kind, number))
    text = None if source is None else source.text
    return SentItemShape(kind=kind, id=number, tokens=tokens, text=text, erased=source is None)


search_router = APIRouter(tags=["search"])


class SearchResults(BaseModel):
    """Hits, best first."""

    hits: list[HitShape]


@search_router.get("/search", summary="Search")
async def search(
    person: Person,
    where: MessageFilter,
    q: Annotated[str, Query(max_length=10_000, description="Words or a question.", examples=["Where does Ann live?"])],
    limit: Limit = 10,
    within: WithinQuery = "user",
    kinds: Annotated[list[HitKind] | None, Query(description="Kinds of hits. Default: messages.")] = None,
    arms: Annotated[Arms, Query(description="By words, by meaning, or both.")] = "all",
    around: Annotated[int, Query(ge=0, le=MOST_AROUND, description="Number of messages around each hit.")] = 0,
    similarity: Annotated[
        float | None, Query(ge=0, le=1, description="Minimum similarity of meaning; replaces the default of min_score.")
    ] = None,
    min_score: Annotated[
        float | None,
        Query(
            ge=0,
            le=1,
            description="Minimum score; 0 returns all hits. Default: 0.25 for words, 0.04 for questions; what has all "
            "words of the query is a hit with any score.",
        ),
    ] = None,
    at: Annotated[Moment | None, Query(description="The time of the question. Default: now.")] = None,
) -> SearchResults:
    """Search by words and meaning. Each hit says why it was found.

    With a role, an author, a time or metadata, only messages and sessions are searched.
    """
    hits = await person.search(
        q,
        limit,
        within=within,
        at=at,
        arms=arms,
        kinds=DEFAULT_KINDS if kinds is None else kinds,
        around=around,
        similarity=similarity,
        min_score=min_score,
        **where,
    )
    return SearchResults(hits=[HitShape.of(hit) for hit in hits])
