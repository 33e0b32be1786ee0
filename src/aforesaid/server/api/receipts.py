"""Routes for receipts of contexts: what was sent to a model."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Self

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from aforesaid.domain.context_receipt import ContextReceipt, SentItem, SentKind, SentSource, is_receipt_id
from aforesaid.server.api.params import PAGE, Cursor, Limit, Moment, Person, cursor_of, text_of, unknown_cursor

router = APIRouter(tags=["receipts"])

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


class ContextReceiptShape(BaseModel):
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
        return cls(
            id=receipt.id,
            user=receipt.user,
            thread=receipt.thread,
            at=receipt.at,
            caller=receipt.caller,
            profile=receipt.profile,
            model=receipt.model,
            budget=receipt.budget,
            tokens=receipt.tokens,
            input_tokens=receipt.input_tokens,
            output_tokens=receipt.output_tokens,
            milliseconds=dict(receipt.milliseconds),
            limited=receipt.limited,
            reply=receipt.reply,
            knew=receipt.knew,
            sections=[
                SentSectionShape(name=name, tokens=tokens, items=[_item(each, sources) for each in items])
                for name, tokens, items in receipt.sections
            ],
        )


class ReceiptPage(BaseModel):
    """Receipts, newest first."""

    receipts: list[ContextReceiptShape]
    next: str | None = Field(description="The cursor of the next page; null at the end.")


@router.get("/receipts", summary="List what was sent to models")
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


@router.get("/receipts/{receipt}", summary="Read what was sent to a model")
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
