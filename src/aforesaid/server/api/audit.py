"""Routes for the audit log."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter
from pydantic import BaseModel, Field, field_validator

from aforesaid.domain.setting import EVERYBODY
from aforesaid.server.api.params import Limit, SpaceQuery, UserQuery
from aforesaid.server.dependencies import Admin, MemoryDep
from aforesaid.server.shapes import Shape

router = APIRouter(tags=["audit"])


class Entry(Shape):
    """An entry of the audit log. It names what was viewed or changed, without its content."""

    id: int
    at: datetime
    space: str
    user: str | None = Field(description="Null for what concerns the whole space: settings, exports, keys, sign-ins.")
    name: str | None = Field(default=None, description="The display name that the user used last.")
    actor: str
    action: str
    subject: str

    @field_validator("user", mode="before")
    @classmethod
    def _everybody_is_nobody_in_particular(cls, user: str) -> str | None:
        return None if user == EVERYBODY else user


class Audit(BaseModel):
    """The newest entries, oldest first."""

    entries: list[Entry]


@router.get("/audit", summary="Read the audit log")
async def read_audit(
    who: Admin, memory: MemoryDep, user: UserQuery = None, limit: Limit = 100, space: SpaceQuery = None
) -> Audit:
    """Return who viewed and who changed a user's data; without a user, changes of the whole space.

    The newest entries, oldest first.
    """
    whose = who.user_of(user)
    if whose is None:
        found = await memory.audit(limit, space=who.space_of(space), actor=who.actor)
    else:
        found = await who.person(memory, whose, space=space).audit(limit)
    entries = [Entry.model_validate(each) for each in found]
    names = await memory.names(who.space_of(space), users={each.user for each in entries if each.user is not None})
    return Audit(entries=[each.model_copy(update={"name": names.get(each.user or "")}) for each in entries])
