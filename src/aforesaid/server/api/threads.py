"""Routes for threads."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from aforesaid.server.api.params import PAGE, Identifier, Limit, Person
from aforesaid.server.shapes import ThreadShape

router = APIRouter(tags=["threads"])


class ThreadList(BaseModel):
    """Threads, the one with the newest message first."""

    threads: list[ThreadShape]


@router.get("/threads", summary="List threads")
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
