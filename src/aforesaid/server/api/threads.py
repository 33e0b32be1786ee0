"""Routes for threads."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from aforesaid.server.api.params import PAGE, Identifier, Limit, OfUser, Person, SpaceQuery
from aforesaid.server.dependencies import App, MemoryDep
from aforesaid.server.shapes import MessageCount, ThreadShape

router = APIRouter(tags=["threads"])


class ThreadList(BaseModel):
    """Threads, the one with the newest message first."""

    threads: list[ThreadShape]


class ClearedThread(OfUser):
    """A thread to clear."""

    erase: bool = Field(default=False, description="Erase the messages, so that no byte of them is left.")


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


@router.post("/threads/clear", summary="Clear a thread")
async def clear_thread(who: App, memory: MemoryDep, which: ClearedThread, space: SpaceQuery = None) -> MessageCount:
    """Take back, or erase, all messages that the user has in a thread. Returns how many these were."""
    return MessageCount(count=await which.person(who, memory, space).clear(erase=which.erase))
