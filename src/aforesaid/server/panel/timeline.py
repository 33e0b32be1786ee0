"""The timeline of a person: what happened and what is to come, month by month."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta, tzinfo
from typing import Final, NamedTuple

from fastapi import APIRouter
from starlette.responses import Response

from aforesaid.domain.checks import to_zone
from aforesaid.domain.memory import MemoryRecord
from aforesaid.server.panel.view import Person

router = APIRouter()

_MOST: Final = 500
"""Maximum events on the page. With more, a topic or a period narrows them down."""


class Happening(NamedTuple):
    """A memory with a date, in the person's time zone."""

    memory: MemoryRecord
    start: datetime
    last_day: date
    timed: bool


class Month(NamedTuple):
    """The events of a month."""

    first: date
    events: list[Happening]


@router.get("/person/timeline")
async def timeline(person: Person, text: str = "") -> Response:
    """Show what happened in a person's life and what is to come, in order."""
    zone = await person.memory.time_zone()
    found = await person.memory.timeline(query=text.strip() or None, limit=_MOST)
    await person.view.look_up(memory.speaker for memory in found)
    return await person.page(
        "person/timeline.html",
        tab="timeline",
        months=months(found, zone),
        count=len(found),
        most=_MOST,
        text=text.strip(),
        today=to_zone(datetime.now(zone), zone).date(),
        zone=zone,
    )


def months(memories: Sequence[MemoryRecord], zone: tzinfo) -> list[Month]:
    """Return dated memories month by month, oldest first."""
    found: list[Month] = []
    for memory in memories:
        event = memory.happened
        if event is None:
            continue
        start, end = to_zone(event.start, zone), to_zone(event.end, zone)
        first = start.date().replace(day=1)
        if not found or found[-1].first != first:
            found.append(Month(first, []))
        # The end is exclusive: a day ends when the next one begins.
        last = (end - timedelta(microseconds=1)).date() if end > start else start.date()
        found[-1].events.append(Happening(memory, start, last, event.timed))
    return found
