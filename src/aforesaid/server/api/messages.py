"""Routes for messages."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from aforesaid.domain.literals import Role, Within
from aforesaid.server.api.once import IdempotencyKey
from aforesaid.server.api.params import (
    PAGE,
    Cursor,
    Identifier,
    Limit,
    Moment,
    OfUser,
    Person,
    SpaceQuery,
    Text,
    cursor_of,
    number_of,
)
from aforesaid.server.dependencies import App, MemoryDep
from aforesaid.server.shapes import MessagePage, MessageShape, ReceiptShape

router = APIRouter(tags=["messages"])


class NewMessage(OfUser):
    """A message to store."""

    role: Role = Field(examples=["user"])
    text: Text = Field(min_length=1, examples=["I moved to Berlin last week."])
    session: Identifier | None = Field(default=None, description="A session by name. Default: by time.")
    at: Moment | None = Field(default=None, description="When it was said. Default: now.")
    id: Identifier | None = Field(
        default=None,
        description="The platform's message id. An id that the thread already has is not stored again.",
    )
    author: Identifier | None = Field(default=None, description="The speaker, if it is not the user or the assistant.")
    name: Text | None = Field(default=None, max_length=255, description="The speaker's display name.")
    replaces: Identifier | None = Field(
        default=None, description="The id of the message in the thread that this is a new version of."
    )


@router.get("/messages", summary="Read the log")
async def list_messages(
    person: Person,
    within: Annotated[Within, Query(description="The user's own messages, the whole thread, or one session.")] = "user",
    archived: Annotated[bool, Query(description="Include archived messages, which a summary covers.")] = True,
    versions: Annotated[bool, Query(description="Include older versions of messages.")] = False,
    cursor: Cursor = None,
    limit: Limit = PAGE,
) -> MessagePage:
    """Return the newest messages in order of time; `next` leads to earlier ones."""
    found = await person.history(limit, before=number_of(cursor), archived=archived, within=within, versions=versions)
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
    receipt = await person.add(
        new.role,
        new.text,
        at=new.at,
        id=new.id if new.id is not None else key,
        author=new.author,
        name=new.name,
        replaces=new.replaces,
    )
    if receipt.duplicate:
        response.status_code = 200
    return ReceiptShape(
        message=MessageShape.model_validate(receipt.message),
        durable=receipt.durable,
        duplicate=receipt.duplicate,
        notices=list(receipt.notices),
    )
