"""Routes for messages, attachments, threads, sessions and events."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import APIRouter, Header, Path, Query, Request, Response
from pydantic import BaseModel, Field
from starlette.responses import StreamingResponse

from aforesaid.domain.checks import Within
from aforesaid.domain.details import MOST_PARTS
from aforesaid.domain.report import AuditEntry
from aforesaid.errors import InvalidInput, NotFound, quoted
from aforesaid.extras import re
from aforesaid.front.handle import MOST_AT_ONCE
from aforesaid.memory import UserMemory
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
    Text,
    ToolCallBody,
    WithinQuery,
    Writer,
    cursor_of,
    number_of,
)
from aforesaid.server.authentication import MemoryDep, Reader, StateDep, is_still_valid
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
from aforesaid.server.state import AppState
from aforesaid.store.messages import MessagesAfter, UserLedger
from aforesaid.store.people import AuditRows

router = APIRouter(tags=["messages"])

Archived = Annotated[bool, Query(description="Include archived messages, which a summary covers.")]


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
    within: WithinQuery = "user",
    archived: Archived = True,
    versions: Annotated[bool, Query(description="Include older versions of messages.")] = False,
    cursor: Cursor = None,
    limit: Limit = PAGE,
) -> MessagePage:
    """Return the newest messages in order of time; `next` leads to earlier ones."""
    before = number_of(cursor)
    found = await person.history(limit, before=before, archived=archived, within=within, versions=versions, **where)
    more = cursor_of(found[0].seq) if len(found) == limit else None
    return MessagePage(messages=[MessageShape.model_validate(each) for each in found], next=more)


@router.post(
    "/messages",
    status_code=201,
    summary="Store a message",
    responses={200: {"description": "It had been stored before.", "model": ReceiptShape}},
)
async def add_message(writer: Writer, new: NewMessage, response: Response, key: IdempotencyKey = None) -> ReceiptShape:
    """Store a message. It is on disk when the response arrives (`durable`).

    Without an `id`, the Idempotency-Key becomes the message's id, so it is recognised as long as the message exists.
    """
    person = writer.user_of(new, new.session)
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
    within: WithinQuery = "user",
    archived: Archived = True,
) -> MessageCount:
    """Return the number of messages, of each only the newest version."""
    return MessageCount(count=await person.count(within=within, archived=archived, **where))


@router.post("/messages/batch", status_code=201, summary="Store many messages")
async def add_messages(writer: Writer, new: NewMessages, key: IdempotencyKey = None) -> BatchShape:
    """Store messages together: all of them, or none. They are on disk when the response arrives (`durable`).

    Without an `id`, the Idempotency-Key and its place in the batch become a message's id.
    """
    person = writer.user_of(new, new.session)
    given = new.arguments()
    for place, each in enumerate(given):
        if each["id"] is None and key is not None:
            each["id"] = f"{key}/{place}"
    return BatchShape.of(await person.add_many(given))


@router.patch("/messages", summary="Edit a message")
async def edit_message(writer: Writer, new: EditedMessage) -> ReceiptShape:
    """Store a new version of a message. Only the new version is shown and found; older ones stay in the log."""
    given = new.model_dump(exclude={"user", "thread", "chat", "id", "parts"}, exclude_none=True)
    person = writer.user_of(new)
    if new.parts is not None:
        by_hash = any(part.is_hash_alone for part in new.parts)
        known = {part.hash for part in (await person.message(new.id)).parts} if by_hash else ()
        given["parts"] = [part.argument(known) for part in new.parts]
    return ReceiptShape.model_validate(await person.edit(new.id, **given))


@router.post("/messages/take-back", summary="Take a message back")
async def take_back_message(writer: Writer, named: NamedMessage) -> ReceiptShape:
    """Remove a message from history, search, contexts, memories and summaries. Its versions stay in the log."""
    return ReceiptShape.model_validate(await writer.user_of(named).take_back(named.id))


@router.post("/messages/erase", summary="Erase messages")
async def erase_messages(writer: Writer, named: NamedMessages) -> ErasedShape:
    """Erase messages in all their versions, so that no byte of them is left in the store. This cannot be undone."""
    return ErasedShape.model_validate(await writer.user_of(named).erase(named.ids))


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
    within: WithinQuery = "user",
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
async def clear_thread(writer: Writer, which: ClearedThread) -> MessageCount:
    """Take back, or erase, all messages that the user has in a thread. Returns how many these were."""
    return MessageCount(count=await writer.user_of(which).clear(erase=which.erase))


events_router = APIRouter(tags=["events"])

_KEEP_ALIVE_SECONDS: Final = 15.0
"""Seconds without an event before a comment is sent, so that proxies keep the connection open."""
_NEWS_AT_ONCE: Final = 200
_MOST_CHANGES: Final = 10_000
"""Maximum changes that a client is sent when it comes back after a long time."""
_READS: Final = (".read", ".search")
"""Suffixes of audit actions that change nothing."""


@events_router.get(
    "/events",
    summary="Follow what changes",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "`message` for every stored message, `change` for every other change.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    },
)
async def events(
    request: Request,
    state: StateDep,
    who: Reader,
    person: Person,
    last_event_id: Annotated[
        str | None, Header(max_length=60, description="Continue after this event. Browsers send it automatically.")
    ] = None,
) -> StreamingResponse:
    """Stream the events of a user's memory: new messages, and changes of memories, facts and summaries.

    This includes changes by workers and other servers. A client that comes back with `Last-Event-ID` receives what it
    missed: all messages, and up to 10,000 changes. The stream ends when its key is revoked or expires. Only admin
    keys receive who changed and who viewed something.
    """
    await person.record_access("events.read", "events")
    if last_event_id is None:
        store = state.memory.store
        newest = await store.read(AuditRows(person.scope, limit=1))
        place = (await store.read(UserLedger(person.scope))).last_seq, newest[-1].id if newest else 0
    else:
        seq, _, entry = last_event_id.partition(".")
        if not (seq.isascii() and seq.isdecimal() and entry.isascii() and entry.isdecimal()):
            raise InvalidInput("Last-Event-ID is not the id of an event of this server", "last-event-id")
        place = int(seq), int(entry)
    follower = _Follower(state, person, *place, admin=who.may("admin"))
    stream = follower.events(request)
    return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


class _Follower:
    """A stream: its positions in the log and the audit log, and its permissions."""

    def __init__(self, state: AppState, person: UserMemory, seq: int, entry: int, *, admin: bool) -> None:
        self._state = state
        self._person = person
        self._seq = seq
        self._entry = entry
        self._admin = admin

    async def events(self, request: Request) -> AsyncIterator[bytes]:
        """Yield events until the server stops or the credential ends."""
        scope = self._person.scope
        feed, valid = self._state.feed, lambda: is_still_valid(request, self._state)
        with feed.follow(scope.space, scope.user, valid, accesses=True) as subscription:
            # An id without an event: a client that loses the connection before the first event continues from here.
            yield f": following\nid: {self._seq}.{self._entry}\n\n".encode()
            more = True  # What was stored since the last event, before the first wait.
            while not subscription.ended and not self._state.stopping.is_set():
                if more:
                    found = await self._news()
                    for event in found:
                        yield event
                    more = len(found) >= _NEWS_AT_ONCE
                elif await subscription.wait(_KEEP_ALIVE_SECONDS):
                    more = True
                else:
                    yield b": still here\n\n"

    async def _news(self) -> Sequence[bytes]:
        store, scope = self._state.memory.store, self._person.scope
        # Changes first: a message that was stored before one of them is among the messages then, and is sent before it.
        changes = await self._newest_changes()
        messages = await store.read(MessagesAfter(scope, self._seq, _NEWS_AT_ONCE))
        found = []
        for message in messages:
            self._seq = message.seq
            found.append(self._event("message", MessageShape.model_validate(message).model_dump(mode="json")))
        # Of many missed messages this is the first page: the changes wait for the last one.
        return found if len(messages) == _NEWS_AT_ONCE else [*found, *self._changes(changes)]

    async def _newest_changes(self) -> Sequence[AuditEntry]:
        """Return all changes since the last one that was sent, with some before it; at most the newest 10,000."""
        limit = _NEWS_AT_ONCE
        while True:
            found = await self._state.memory.store.read(AuditRows(self._person.scope, limit=limit))
            if len(found) < limit or found[0].id <= self._entry or limit >= _MOST_CHANGES:
                return found
            limit = min(limit * 4, _MOST_CHANGES)

    def _changes(self, entries: Sequence[AuditEntry]) -> Iterator[bytes]:
        for entry in entries:
            if entry.id <= self._entry:
                continue
            self._entry = entry.id
            shown = {"action": entry.action, "subject": entry.subject, "at": entry.at.isoformat()}
            if self._admin:
                yield self._event("change", shown | {"actor": entry.actor})
            elif not entry.action.endswith(_READS):
                yield self._event("change", shown)

    def _event(self, name: str, data: dict[str, Any]) -> bytes:
        number = f"{self._seq}.{self._entry}"
        return f"id: {number}\nevent: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
