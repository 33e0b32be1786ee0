"""Searching a person's memory, with what made each hit a hit."""

from __future__ import annotations

from typing import Annotated, Final, cast

from fastapi import APIRouter, Query
from starlette.responses import Response

from aforesaid.domain.hit import Hit
from aforesaid.domain.literals import HitKind
from aforesaid.errors import InvalidInput, quoted
from aforesaid.recall import ARMS, DEFAULT_KINDS, KINDS
from aforesaid.server.panel.view import Looking

router = APIRouter()

_LIMITS: Final = (5, 10, 20, 50)


@router.get("/search")
async def search(
    view: Looking,
    text: str = "",
    user: str = "",
    kind: Annotated[list[str] | None, Query()] = None,
    arms: str = "all",
    limit: int = 10,
    weak: bool = False,
) -> Response:
    """Search, and say why each thing was found."""
    kinds = kind or list(DEFAULT_KINDS)
    if arms not in ARMS:
        raise InvalidInput(f"unknown arms={quoted(arms)}; use one of {', '.join(ARMS)}", "arms")
    people = await view.offered()
    whose = await view.find(user) or (people[0].id if people else "")
    found: list[Hit] | None = None
    if text.strip() and whose:
        found = await view.person(whose).search(
            text, limit, kinds=tuple(cast("HitKind", each) for each in kinds), arms=arms, min_score=0 if weak else None
        )
    await view.look_up([whose, *(hit.message.author for hit in found or () if hit.message is not None)])
    return view.page(
        "search.html",
        text=text,
        user=whose,
        people=people,
        hits=found,
        kinds=kinds,
        all_kinds=KINDS,
        arms=arms,
        all_arms=ARMS,
        limit=limit,
        limits=_LIMITS,
        weak=weak,
        longest=max((abs(value) for hit in found or () for _, value in hit.reasons()), default=1.0) or 1.0,
    )
