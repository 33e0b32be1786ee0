"""Routes for messages."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from aforesaid.domain.literals import Within
from aforesaid.front.handle import MOST_AT_ONCE
from aforesaid.server.api.message_params import MessageBody, MessageFilter
from aforesaid.server.api.once import IdempotencyKey
from aforesaid.server.api.params import (
    PAGE,
    Cursor,
    Identifier,
    Limit,
    OfUser,
    Person,
    SpaceQuery,
    cursor_of,
    number_of,
)
from aforesaid.server.dependencies import App, MemoryDep
from aforesaid.server.shapes import BatchShape, MessageCount, MessagePage, MessageShape, ReceiptShape

router = APIRouter(tags=["messages"])


class NewMessage(OfUser, MessageBody):
    """A message to store."""

    session: Identifier | None = Field(default=None, description="A session by name. Default: by time.")


class NewMessages(OfUser):
    """Messages to store together."""

    session: Identifier | None = Field(default=None, description="A session by name. Default: by time.")
    messages: list[MessageBody] = Field(max_length=MOST_AT_ONCE, description="The messages, in their order.")


@router.get("/messages", summary="Read the log")
async def list_messages(
    person: Person,
    where: MessageFilter,
    within: Annotated[Within, Query(description="The user's own messages, the whole thread, or one session.")] = "user",
    archived: Annotated[bool, Query(description="Include archived messages, which a summary covers.")] = True,
    versions: Annotated[bool, Query(description="Include older versions of messages.")] = False,
    cursor: Cursor = None,
    limit: Limit = PAGE,
) -> MessagePage:
    """Return the newest messages in order of time; `next` leads to earlier ones."""
    found = await person.history(
        limit,
        before=number_of(cursor),
        archived=archived,
        within=within,
        versions=versions,
        **where.arguments(),
    )
    more = cursor_of(found[0].seq) if len(found) == limit else None
    return MessagePage(messages=[MessageShape.model_validate(each) for each in found], next=more)


@router.post(
    "/messages",
    status_code=201,
    summary="Store a message",
    responses={200: {"description": "It had been stored before.", "model": ReceiptShape}},
)
async def add_message(
    who: App,
    memory: MemoryDep,
    new: NewMessage,
    response: Response,
    key: IdempotencyKey = None,
    space: SpaceQuery = None,
) -> ReceiptShape:
    """Store a message. It is on disk when the response arrives (`durable`).

    Without an `id`, the Idempotency-Key becomes the message's id, so it is recognised as long as the message exists.
    """
    person = new.person(who, memory, space, new.session)
    given = new.arguments()
    if new.id is None:
        given["id"] = key
    receipt = await person.add(**given)
    if receipt.duplicate:
        response.status_code = 200
    return ReceiptShape(
        message=MessageShape.model_validate(receipt.message),
        durable=receipt.durable,
        duplicate=receipt.duplicate,
        notices=list(receipt.notices),
    )


@router.get("/messages/count", summary="Count messages")
async def count_messages(
    person: Person,
    where: MessageFilter,
    within: Annotated[Within, Query(description="The user's own messages, the whole thread, or one session.")] = "user",
    archived: Annotated[bool, Query(description="Include archived messages, which a summary covers.")] = True,
) -> MessageCount:
    """Return the number of messages, of each only the newest version."""
    return MessageCount(count=await person.count(within=within, archived=archived, **where.arguments()))


@router.post("/messages/batch", status_code=201, summary="Store many messages")
async def add_messages(
    who: App, memory: MemoryDep, new: NewMessages, key: IdempotencyKey = None, space: SpaceQuery = None
) -> BatchShape:
    """Store messages together: all of them, or none. They are on disk when the response arrives (`durable`).

    Without an `id`, the Idempotency-Key and its place in the batch become a message's id.
    """
    person = new.person(who, memory, space, new.session)
    given = [message.arguments() for message in new.messages]
    for place, each in enumerate(given):
        if each["id"] is None and key is not None:
            each["id"] = f"{key}/{place}"
    return BatchShape.of(await person.add_many(given))
