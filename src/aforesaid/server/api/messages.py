"""Routes for messages, attachments, threads and sessions."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, Field

from aforesaid.domain.checks import Within
from aforesaid.domain.details import MOST_PARTS
from aforesaid.errors import InvalidInput, NotFound, quoted
from aforesaid.front.handle import MOST_AT_ONCE
from aforesaid.server.api.params import (
    HASH,
    PAGE,
    Cursor,
    IdempotencyKey,
    Identifier,
    Limit,
    MessageBody,
    MessageFilter,
    OfUser,
    PartBody,
    Person,
    SpaceQuery,
    Text,
    ToolCallBody,
    cursor_of,
    number_of,
)
from aforesaid.server.auth.authentication import App, MemoryDep
from aforesaid.server.schemas import (
    BatchShape,
    ErasedShape,
    MessageCount,
    MessagePage,
    MessageShape,
    ReceiptShape,
    SessionShape,
    ThreadShape,
)

router = APIRouter(tags=["messages"])


class NewMessage(OfUser, MessageBody):
    """A message to store."""

    session: Identifier | None = Field(default=None, description="A session by name. Default: by time.")


class NewMessages(OfUser):
    """Messages to store together."""

    session: Identifier | None = Field(default=None, description="A session by name. Default: by time.")
    messages: list[MessageBody] = Field(max_length=MOST_AT_ONCE, description="The messages, in their order.")

    def arguments(self) -> list[dict[str, Any]]:
        """Return the messages as arguments of `add_many`. Raises InvalidInput, which names the message."""
        given = []
        for place, message in enumerate(self.messages):
            try:
                given.append(message.arguments())
            except InvalidInput as error:
                error.field = f"messages.{place}.{error.field}"
                raise
        return given


class EditedMessage(OfUser):
    """A new version of a message. What is not given stays as it was."""

    id: Identifier = Field(description="The id of the message.", examples=["#1"])
    text: Text | None = Field(default=None, examples=["I moved to Hamburg last week."])
    name: Text | None = Field(default=None, max_length=255, description="The speaker's display name.")
    parts: list[PartBody] | None = Field(default=None, max_length=MOST_PARTS)
    tool_calls: list[ToolCallBody] | None = Field(default=None, max_length=MOST_PARTS)
    metadata: dict[str, Any] | None = Field(default=None, description="Any JSON object.")
    reply_to: Identifier | None = Field(default=None, description="The id of the message that it replies to.")
    kind: Identifier | None = Field(default=None, description="The platform's kind of message.")
    language: Identifier | None = Field(default=None, description="Its language.")


class NamedMessage(OfUser):
    """A message by its id."""

    id: Identifier = Field(description="The id of the message.", examples=["#1"])


class NamedMessages(OfUser):
    """Messages by their ids."""

    ids: list[Identifier] = Field(
        min_length=1, max_length=MOST_AT_ONCE, description="The ids of the messages.", examples=[["#1"]]
    )


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
        **where,
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
    return ReceiptShape.model_validate(receipt)


@router.get("/messages/count", summary="Count messages")
async def count_messages(
    person: Person,
    where: MessageFilter,
    within: Annotated[Within, Query(description="The user's own messages, the whole thread, or one session.")] = "user",
    archived: Annotated[bool, Query(description="Include archived messages, which a summary covers.")] = True,
) -> MessageCount:
    """Return the number of messages, of each only the newest version."""
    return MessageCount(count=await person.count(within=within, archived=archived, **where))


@router.post("/messages/batch", status_code=201, summary="Store many messages")
async def add_messages(
    who: App, memory: MemoryDep, new: NewMessages, key: IdempotencyKey = None, space: SpaceQuery = None
) -> BatchShape:
    """Store messages together: all of them, or none. They are on disk when the response arrives (`durable`).

    Without an `id`, the Idempotency-Key and its place in the batch become a message's id.
    """
    person = new.person(who, memory, space, new.session)
    given = new.arguments()
    for place, each in enumerate(given):
        if each["id"] is None and key is not None:
            each["id"] = f"{key}/{place}"
    return BatchShape.of(await person.add_many(given))


@router.patch("/messages", summary="Edit a message")
async def edit_message(who: App, memory: MemoryDep, new: EditedMessage, space: SpaceQuery = None) -> ReceiptShape:
    """Store a new version of a message. Only the new version is shown and found; older ones stay in the log."""
    given = new.model_dump(exclude={"user", "thread", "chat", "id", "parts"}, exclude_none=True)
    person = new.person(who, memory, space)
    if new.parts is not None:
        by_hash = any(part.is_hash_alone for part in new.parts)
        known = {part.hash for part in (await person.message(new.id)).parts} if by_hash else ()
        given["parts"] = [part.argument(known) for part in new.parts]
    return ReceiptShape.model_validate(await person.edit(new.id, **given))


@router.post("/messages/take-back", summary="Take a message back")
async def take_back_message(who: App, memory: MemoryDep, named: NamedMessage, space: SpaceQuery = None) -> ReceiptShape:
    """Remove a message from history, search, contexts, memories and summaries. Its versions stay in the log."""
    return ReceiptShape.model_validate(await named.person(who, memory, space).take_back(named.id))


@router.post("/messages/erase", summary="Erase messages")
async def erase_messages(who: App, memory: MemoryDep, named: NamedMessages, space: SpaceQuery = None) -> ErasedShape:
    """Erase messages in all their versions, so that no byte of them is left in the store. This cannot be undone."""
    return ErasedShape.model_validate(await named.person(who, memory, space).erase(named.ids))


_BYTES: Final = "application/octet-stream"
_MEDIA_TYPE: Final = re.compile(r"[\w.+-]+/[\w.+-]+", re.ASCII)


@router.get(
    "/attachments/{hash}",
    summary="Download an attachment",
    response_class=Response,
    responses={200: {"description": "The bytes.", "content": {_BYTES: {"schema": {"type": "string"}}}}},
)
async def download_attachment(
    person: Person,
    memory: MemoryDep,
    hash: Annotated[str, Path(pattern=HASH, description="The hash of the part.")],  # noqa: A002 - the field of a part
    message: Annotated[Identifier, Query(description="The id of the message that has the part.", examples=["#1"])],
    within: Annotated[Within, Query(description="Whose message: the user's own, or the whole thread's.")] = "user",
    versions: Annotated[bool, Query(description="Read the version with this id, not the newest one.")] = False,
) -> Response:
    """Return the bytes of a part of a message that the key may read, with its media type, as a download.

    The part is named by its `hash`. Bytes that are elsewhere (`url`) are not served.
    """
    found = await person.message(message, within=within, versions=versions)
    part = next((each for each in found.parts if each.hash == hash and each.url is None), None)
    if part is None:
        raise NotFound(f"message {quoted(message)} has no attachment {hash}")
    data = await memory.attachment(hash)
    given = part.media_type or ""
    name = quote(part.name or hash, safe="")
    return Response(
        data,
        media_type=given if _MEDIA_TYPE.fullmatch(given) else _BYTES,
        headers={"Content-Disposition": f"attachment; filename*=UTF-8''{name}"},
    )


sessions_router = APIRouter(tags=["sessions"])


class SessionList(BaseModel):
    """Sessions, oldest first."""

    sessions: list[SessionShape]


@sessions_router.get("/sessions", summary="List sessions")
async def list_sessions(
    person: Person,
    memory: MemoryDep,
    within: Annotated[Within, Query(description="The user's own messages, the whole thread, or one session.")] = "user",
    limit: Limit = PAGE,
) -> SessionList:
    """Return the newest sessions, oldest first, each active, idle or closed."""
    found = await person.sessions(limit, within=within)
    names = await memory.names(person.scope.space, users={each.user for each in found})
    return SessionList(sessions=[SessionShape.of(each, names.get(each.user)) for each in found])


threads_router = APIRouter(tags=["threads"])


class ThreadList(BaseModel):
    """Threads, the one with the newest message first."""

    threads: list[ThreadShape]


class ClearedThread(OfUser):
    """A thread to clear."""

    erase: bool = Field(default=False, description="Erase the messages, so that no byte of them is left.")


@threads_router.get("/threads", summary="List threads")
async def list_threads(
    person: Person,
    limit: Limit = PAGE,
    before: Annotated[
        Identifier | None,
        Query(description="The id of the last thread of the page before; without it, the first page."),
    ] = None,
) -> ThreadList:
    """Return the threads that the user has messages in, the one with the newest message first."""
    found = await person.threads(limit, before=before)
    return ThreadList(threads=[ThreadShape.model_validate(each) for each in found])


@threads_router.post("/threads/clear", summary="Clear a thread")
async def clear_thread(who: App, memory: MemoryDep, which: ClearedThread, space: SpaceQuery = None) -> MessageCount:
    """Take back, or erase, all messages that the user has in a thread. Returns how many these were."""
    return MessageCount(count=await which.person(who, memory, space).clear(erase=which.erase))
