"""Routes for server-sent events."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Request
from starlette.responses import StreamingResponse

from aforesaid.domain.report import AuditEntry
from aforesaid.errors import InvalidInput
from aforesaid.memory import UserMemory
from aforesaid.server.api.params import Person
from aforesaid.server.auth.authentication import Reader, StateDep, is_still_valid
from aforesaid.server.schemas import MessageShape
from aforesaid.server.state import AppState
from aforesaid.store.messages import MessagesAfter, UserLedger
from aforesaid.store.people import AuditRows

router = APIRouter(tags=["events"])

_KEEP_ALIVE_SECONDS: Final = 15.0
"""Seconds without an event before a comment is sent, so that proxies keep the connection open."""
_PAGE: Final = 200
_MOST_CHANGES: Final = 10_000
"""Maximum changes that a client is sent when it comes back after a long time."""
_READS: Final = (".read", ".search")
"""Suffixes of audit actions that change nothing."""


@router.get(
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
        with self._state.feed.follow(scope, lambda: is_still_valid(request, self._state)) as subscription:
            # An id without an event: a client that loses the connection before the first event continues from here.
            yield f": following\nid: {self._seq}.{self._entry}\n\n".encode()
            more = True  # What was stored since the last event, before the first wait.
            while not subscription.ended and not self._state.stopping.is_set():
                if more:
                    found = await self._news()
                    for event in found:
                        yield event
                    more = len(found) >= _PAGE
                elif await subscription.wait(_KEEP_ALIVE_SECONDS):
                    more = True
                else:
                    yield b": still here\n\n"

    async def _news(self) -> Sequence[bytes]:
        store, scope = self._state.memory.store, self._person.scope
        # Changes first: a message that was stored before one of them is among the messages then, and is sent before it.
        changes = await self._newest_changes()
        messages = await store.read(MessagesAfter(scope, self._seq, _PAGE))
        found = []
        for message in messages:
            self._seq = message.seq
            found.append(self._event("message", MessageShape.model_validate(message).model_dump(mode="json")))
        # Of many missed messages this is the first page: the changes wait for the last one.
        return found if len(messages) == _PAGE else [*found, *self._changes(changes)]

    async def _newest_changes(self) -> Sequence[AuditEntry]:
        """Return all changes since the last one that was sent, with some before it; at most the newest 10,000."""
        limit = _PAGE
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
