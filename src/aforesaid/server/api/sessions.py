"""Routes for sessions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from aforesaid.domain.checks import Within
from aforesaid.server.api.params import PAGE, Limit, Person
from aforesaid.server.dependencies import MemoryDep
from aforesaid.server.shapes import SessionShape

router = APIRouter(tags=["sessions"])


class SessionList(BaseModel):
    """Sessions, oldest first."""

    sessions: list[SessionShape]


@router.get("/sessions", summary="List sessions")
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
