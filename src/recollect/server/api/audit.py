"""Who saw and who changed what is known about a user."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter
from pydantic import BaseModel

from recollect.server.api.asking import Limit, SpaceQuery, UserQuery, named
from recollect.server.needs import Admin, TheMemory
from recollect.server.shapes import Shape

router = APIRouter(tags=["audit"])


class Entry(Shape):
    """One thing that somebody did. It names what was seen or changed, and never repeats it."""

    id: int
    at: datetime
    space: str
    user: str
    actor: str
    action: str
    subject: str


class Audit(BaseModel):
    """The newest entries, oldest first."""

    entries: list[Entry]


@router.get("/audit", summary="Read the audit log")
async def read_audit(
    who: Admin, memory: TheMemory, user: UserQuery = None, limit: Limit = 100, space: SpaceQuery = None
) -> Audit:
    """Return who saw and who changed what is known about a user, oldest first."""
    person = who.person(memory, named(who, user), space=space)
    return Audit(entries=[Entry.model_validate(each) for each in await person.audit(limit)])
