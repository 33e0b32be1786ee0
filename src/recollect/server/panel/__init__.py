"""The control panel: pages to look at and to correct what is remembered."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from recollect.server.needs import Reader, TheMemory
from recollect.server.pages import page

router = APIRouter(include_in_schema=False)


@router.get("/")
async def overview(request: Request, who: Reader, memory: TheMemory) -> Response:
    """Show who is remembered."""
    return page(request, "overview.html", users=await memory.users(who.space_of(None)))
