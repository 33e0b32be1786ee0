"""Routes for search."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from aforesaid.domain.checks import HitKind, Within
from aforesaid.front.messages import MOST_AROUND
from aforesaid.recall import DEFAULT_KINDS, Arms
from aforesaid.server.api.message_params import MessageFilter
from aforesaid.server.api.params import Limit, Moment, Person
from aforesaid.server.shapes import HitShape

router = APIRouter(tags=["search"])


class SearchResults(BaseModel):
    """Hits, best first."""

    hits: list[HitShape]


@router.get("/search", summary="Search")
async def search(
    person: Person,
    where: MessageFilter,
    q: Annotated[str, Query(max_length=10_000, description="Words or a question.", examples=["Where does Ann live?"])],
    limit: Limit = 10,
    within: Annotated[Within, Query(description="The user's own messages, the whole thread, or one session.")] = "user",
    kinds: Annotated[list[HitKind] | None, Query(description="Kinds of hits. Default: messages.")] = None,
    arms: Annotated[Arms, Query(description="By words, by meaning, or both.")] = "all",
    around: Annotated[int, Query(ge=0, le=MOST_AROUND, description="Number of messages around each hit.")] = 0,
    similarity: Annotated[
        float | None, Query(ge=0, le=1, description="Minimum similarity of meaning; replaces the default of min_score.")
    ] = None,
    min_score: Annotated[
        float | None,
        Query(
            ge=0,
            le=1,
            description="Minimum score; 0 returns all hits. Default: 0.25 for words, 0.04 for questions; what has all "
            "words of the query is a hit with any score.",
        ),
    ] = None,
    at: Annotated[Moment | None, Query(description="The time of the question. Default: now.")] = None,
) -> SearchResults:
    """Search by words and meaning. Each hit says why it was found.

    With a role, an author, a time or metadata, only messages and sessions are searched.
    """
    hits = await person.search(
        q,
        limit,
        within=within,
        at=at,
        arms=arms,
        kinds=DEFAULT_KINDS if kinds is None else kinds,
        around=around,
        similarity=similarity,
        min_score=min_score,
        **where.arguments(),
    )
    return SearchResults(hits=[HitShape.of(hit) for hit in hits])
