"""What changes, as it changes: server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header
from starlette.responses import StreamingResponse

from aforesaid.errors import InvalidInput
from aforesaid.memory import UserMemory
from aforesaid.server.api.params import Person
from aforesaid.server.dependencies import StateDep
from aforesaid.server.shapes import MessageShape
from aforesaid.server.state import AppState
from aforesaid.store import Store

router = APIRouter(tags=["events"])

_EVERY_SECONDS: Final = 1.0
_KEEP_ALIVE: Final = 15
"""After so many quiet looks a comment is sent, so that nobody on the way takes the connection for dead."""
_AT_ONCE: Final = 200


@router.get(
    "/events",
    summary="Follow what changes",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "`message` for everything that is stored, `change` for everything else that somebody did.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    },
)
async def events(
    here: StateDep,
    person: Person,
    last_event_id: Annotated[
        str | None, Header(max_length=60, description="Go on after this event, as browsers do by themselves.")
    ] = None,
) -> StreamingResponse:
    """Follow a user's memory: messages as they are stored, and memories, facts and summaries as they change.

    Whatever process stored it is followed, also by workers and other servers. An event's id leads on from there.
    """
    place = await _start(here.memory.store, person) if last_event_id is None else _place(last_event_id)
    stream = _follow(here, person, *place)
    return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def _follow(here: AppState, person: UserMemory, seq: int, entry: int) -> AsyncIterator[bytes]:
    """Look again and again, from where the caller was."""
    store = here.memory.store
    quiet = 0
    yield b": following\n\n"
    while not here.stopping.is_set():
        news = False
        for message in await store.following(person.scope, seq, _AT_ONCE):
            seq, news = message.seq, True
            yield _event("message", f"{seq}.{entry}", MessageShape.model_validate(message).model_dump(mode="json"))
        for change in await store.audit(person.scope, limit=_AT_ONCE):
            if change.id > entry:
                entry, news = change.id, True
                what = {"action": change.action, "subject": change.subject, "actor": change.actor}
                yield _event("change", f"{seq}.{entry}", what | {"at": change.at.isoformat()})
        quiet = 0 if news else quiet + 1
        if quiet >= _KEEP_ALIVE:
            quiet = 0
            yield b": still here\n\n"
        try:
            await asyncio.wait_for(here.stopping.wait(), _EVERY_SECONDS)
        except TimeoutError:
            continue


async def _start(store: Store, person: UserMemory) -> tuple[int, int]:
    """Return where the log and the audit log end now."""
    newest = await store.audit(person.scope, limit=1)
    return (await store.ledger(person.scope)).last_seq, newest[-1].id if newest else 0


def _place(last: str) -> tuple[int, int]:
    seq, _, entry = last.partition(".")
    if not (seq.isascii() and seq.isdecimal() and entry.isascii() and entry.isdecimal()):
        raise InvalidInput("Last-Event-ID is none that this server gave out")
    return int(seq), int(entry)


def _event(name: str, number: str, data: dict[str, Any]) -> bytes:
    return f"id: {number}\nevent: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
