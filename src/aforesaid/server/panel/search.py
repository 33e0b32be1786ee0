"""Searching the memory of one person or of everybody, with what made each hit a hit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import chain
from time import monotonic
from typing import Annotated, Any, Final, NamedTuple, cast
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from starlette.responses import Response

from aforesaid.domain.checks import HitKind, Role
from aforesaid.domain.hit import Hit
from aforesaid.errors import InvalidInput
from aforesaid.recall import ARMS, DEFAULT_KINDS, KINDS, Turn
from aforesaid.server.languages import translate
from aforesaid.server.panel import forms
from aforesaid.server.panel.view import Looking, Parts, View

router = APIRouter()

_LIMITS: Final = (5, 10, 20, 50)
_PEOPLE_AT_ONCE: Final = 48
"""People searched before a page is shown with what was found, last active first. It leads on to the next ones."""
SECONDS: Final = 2.0
"""Time in which further people are searched while nothing was found. There is no index of a whole space."""
_SIDE_BY_SIDE: Final = 16
"""Of them searched at the same time."""
_NOTABLE: Final = 0.25
"""Minimum contribution of a reason that is named in a hit's sentence."""
_SPEAKERS: Final[dict[str, Role]] = {"person": "user", "assistant": "assistant", "tool": "tool"}


class PersonHit(NamedTuple):
    """A hit, and whose memory it is in."""

    user: str
    hit: Hit


@dataclass(frozen=True, slots=True)
class Limits:
    """What limits a search beside the words: time, speaker, kinds."""

    since: str
    until: str
    speaker: str
    kinds: tuple[HitKind, ...]

    @property
    def arguments(self) -> dict[str, Any]:
        """The limits as arguments of a search. Raises InvalidInput."""
        if self.speaker and self.speaker not in _SPEAKERS:
            raise InvalidInput(forms.unknown(self.speaker, _SPEAKERS), "speaker")
        until = _day(self.until, "until")
        limits: dict[str, Any] = {
            "role": _SPEAKERS.get(self.speaker),
            "since": _day(self.since, "since"),
            "until": None if until is None else until + timedelta(days=1),
        }
        if limits["since"] and limits["until"] and limits["since"] >= limits["until"]:
            raise InvalidInput(translate("this is before the first day"), "until")
        given = {name: value for name, value in limits.items() if value is not None}
        kinds = self.kinds
        if given:
            # Times and speakers are those of messages.
            kinds = tuple(kind for kind in kinds if kind in {"message", "session"}) or ("message",)
        return given | {"kinds": kinds}


@router.get("/search")
async def search(
    view: Looking,
    text: str = "",
    user: str = "",
    kind: Annotated[list[str] | None, Query()] = None,
    arms: str = "all",
    limit: int = 10,
    weak: bool = False,
    since: str = "",
    until: str = "",
    speaker: str = "",
    skip: int = 0,
) -> Response:
    """Search, and say why each thing was found. Without a person, everybody's memory is searched."""
    kinds = tuple(cast("HitKind", each) for each in kind or DEFAULT_KINDS)
    if others := [each for each in kinds if each not in KINDS]:
        raise InvalidInput(forms.unknown(others[0], KINDS), "kind")
    if arms not in ARMS:
        raise InvalidInput(forms.unknown(arms, ARMS), "arms")
    limits = Limits(since.strip(), until.strip(), speaker, kinds)
    whose = view.who.user_of(await view.find(user) or None) or ""
    asked: dict[str, Any] = {"arms": arms, "min_score": 0 if weak else None, **limits.arguments}
    found: list[PersonHit] | None = None
    searched, total = 1, 1
    if text.strip() and whose:
        found = [PersonHit(whose, hit) for hit in await view.person(whose).search(text, limit, **asked)]
    elif text.strip():
        found, searched = await _everybody(view, text, limit, max(skip, 0), asked)
        totals = await view.totals()
        total = 0 if totals is None else totals.users
    authors = [each.hit.message.author for each in found or () if each.hit.message is not None]
    await view.look_up([whose, *authors, *(each.user for each in found or ())])
    reached = max(skip, 0) + searched
    again: dict[str, Parts] = {"text": text, "arms": arms, "limit": limit, "since": limits.since, "until": limits.until}
    again |= {"speaker": speaker, "weak": "1" if weak else None, "skip": reached}
    chosen = urlencode([("kind", each) for each in kinds])
    return view.page(
        "search.html",
        text=text,
        user=whose,
        people=await view.offered(),
        found=found,
        searched=searched,
        reached=reached,
        total=total,
        next_people=f"{view.address('/search', **again)}&{chosen}" if reached < total and searched else None,
        limits=limits,
        left_out=[each for each in kinds if each not in asked["kinds"]],
        all_kinds=KINDS,
        speakers=tuple(_SPEAKERS),
        arms=arms,
        all_arms=ARMS,
        limit=limit,
        all_limits=_LIMITS,
        weak=weak,
        longest=max((abs(value) for each in found or () for _, value in each.hit.reasons()), default=1.0) or 1.0,
    )


async def _everybody(
    view: View, text: str, limit: int, skip: int, asked: dict[str, Any]
) -> tuple[list[PersonHit], int]:
    """Search the memories of people until something is found; return the best hits, and how many people were searched.

    Hits of all people are ordered by their scores. The audit log names those of whom something is shown.
    """
    found: list[PersonHit] = []
    searched, until = 0, monotonic() + SECONDS
    while users := [each.user.id for each in await view.page_of_people(_PEOPLE_AT_ONCE, skip + searched)]:
        found = await _search(view, users, text, limit, asked)
        searched += len(users)
        if found or len(users) < _PEOPLE_AT_ONCE or monotonic() >= until:
            break
    best = sorted(found, key=lambda each: -each.hit.score)[:limit]
    for user in dict.fromkeys(each.user for each in best):
        await view.person(user).record_access("memory.search", "search")
    return best, searched


async def _search(view: View, users: Sequence[str], text: str, limit: int, asked: dict[str, Any]) -> list[PersonHit]:
    found: list[PersonHit] = []

    async def search(user: str, turn: Turn) -> list[PersonHit]:
        person = view.who.person(view.memory, user, space=view.space, audited=False)
        with turn.shared():
            return [PersonHit(user, hit) for hit in await person.search(text, limit, **asked)]

    # All of them in one turn, so that others wait for one search. What several of them read, the store reads together.
    async with view.memory.recall_queue.turn() as turn:
        for first in range(0, len(users), _SIDE_BY_SIDE):
            some = await asyncio.gather(*(search(user, turn) for user in users[first : first + _SIDE_BY_SIDE]))
            found += chain.from_iterable(some)
    return found


def _day(typed: str, field: str) -> datetime | None:
    """Return the start of a day (UTC). Raises InvalidInput for the field."""
    if not typed:
        return None
    try:
        return datetime.combine(date.fromisoformat(typed), time(), UTC)
    except ValueError:
        raise InvalidInput(forms.not_a_day(typed), field) from None


def notable(reasons: Sequence[tuple[str, float]]) -> list[str]:
    """Return the reasons that speak for a hit and count most, in words."""
    return [reason for reason, value in reasons if value >= _NOTABLE][:3]
