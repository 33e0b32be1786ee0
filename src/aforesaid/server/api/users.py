"""Routes for users."""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter

from fastapi import APIRouter

from aforesaid.server.api.params import PAGE, Cursor, Limit, SpaceQuery, cursor_of, text_of, unknown_cursor
from aforesaid.server.dependencies import MemoryDep, Reader
from aforesaid.server.shapes import UserPage, UserShape

router = APIRouter(tags=["users"])


@router.get("/users", summary="List users")
async def list_users(
    who: Reader, memory: MemoryDep, cursor: Cursor = None, limit: Limit = PAGE, space: SpaceQuery = None
) -> UserPage:
    """Return the users of the space by id. Without `space`, a key for all spaces gets the users of all of them."""
    where = None if space is None and who.space is None else who.space_of(space)
    found = [user for user in await memory.users(where, actor=who.actor) if who.user in (None, user.id)]
    found.sort(key=attrgetter("space", "id"))
    after = _place(cursor)
    start = 0 if after is None else bisect_right([(user.space, user.id) for user in found], after)
    page = found[start : start + limit]
    more = cursor_of(f"{page[-1].space}\n{page[-1].id}") if start + limit < len(found) else None
    return UserPage(users=[UserShape.model_validate(user) for user in page], next=more)


def _place(cursor: str | None) -> tuple[str, str] | None:
    """Return the space and the id of the last user of the page before. Neither can contain a line break."""
    text = text_of(cursor)
    if text is None:
        return None
    space, separator, user = text.partition("\n")
    if not separator:
        raise unknown_cursor()
    return space, user
