"""Who is remembered."""

from __future__ import annotations

from bisect import bisect_right

from fastapi import APIRouter

from aforesaid.server.api.params import PAGE, Cursor, Limit, SpaceQuery, cursor_of, text_of
from aforesaid.server.dependencies import MemoryDep, Reader
from aforesaid.server.shapes import UserPage, UserShape

router = APIRouter(tags=["users"])


@router.get("/users", summary="List users")
async def list_users(
    who: Reader, memory: MemoryDep, cursor: Cursor = None, limit: Limit = PAGE, space: SpaceQuery = None
) -> UserPage:
    """Return everybody in the space who owns something, by name."""
    found = [user for user in await memory.users(who.space_of(space), actor=who.actor) if who.user in (None, user.id)]
    after = text_of(cursor)
    start = 0 if after is None else bisect_right([user.id for user in found], after)
    page = found[start : start + limit]
    more = cursor_of(page[-1].id) if start + limit < len(found) else None
    return UserPage(users=[UserShape.model_validate(user) for user in page], next=more)
