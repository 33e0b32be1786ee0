"""Tells open pages that something has changed, so that they show it without a reload."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import StreamingResponse

from aforesaid.server.authentication import is_still_valid
from aforesaid.server.dependencies import StateDep
from aforesaid.server.panel.view import Looking, View
from aforesaid.server.state import AppState
from aforesaid.store import questions

router = APIRouter()

_KEEP_ALIVE_SECONDS: Final = 15.0
_RETRY_MILLISECONDS: Final = 2_000
_NEWEST: Final = 50
"""Memories and people that are compared when another process has changed something."""
_VIEWED: Final = (".read", ".search")


@router.get("/live")
async def live(request: Request, view: Looking, here: StateDep, user: str = "") -> StreamingResponse:
    """Stream an event without content for each change in the space, or of one person.

    The browser then asks for its own page again, with its own permissions. Nothing is sent while nothing changes, but
    for a comment every 15 seconds. The stream ends when the browser is signed out.
    """
    whose = view.who.user_of(view.memory.known_ids.spelled(user) or None)
    stream = _events(request, view, here, whose)
    return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def _events(request: Request, view: View, here: AppState, user: str | None) -> AsyncIterator[bytes]:
    with here.feed.watch(view.space, user, lambda: is_still_valid(request, here)) as subscription:
        yield f"retry: {_RETRY_MILLISECONDS}\nevent: ready\ndata: now\n\n".encode()
        seen = await _digest(view, user)
        while not subscription.ended and not here.stopping.is_set():
            if not await subscription.wait(_KEEP_ALIVE_SECONDS):
                yield b": still here\n\n"
                continue
            certain, subscription.certain = subscription.certain, False
            before, seen = seen, await _digest(view, user)
            if certain or seen != before:
                yield b"event: change\ndata: now\n\n"


async def _digest(view: View, user: str | None) -> object:
    """Return a value that differs once messages or memories have changed, whoever changed them."""
    store = view.memory.store
    memories = await store.read(questions.MemoriesOfSpace(view.space, user=user, active=None, limit=_NEWEST))
    newest = tuple((memory.id, memory.revision, memory.state) for memory in memories)
    if user is None:
        people = await store.read(questions.UsersPage(view.space, limit=_NEWEST))
        return newest, tuple((each.user.id, each.user.messages) for each in people)
    scope = view.memory.user(user, space=view.space).scope
    rows = await store.read(questions.AuditRows(scope, limit=_NEWEST))
    changes = [row.id for row in rows if not row.action.endswith(_VIEWED)]
    return newest, (await store.read(questions.UserLedger(scope))).last_seq, changes[-1:]
