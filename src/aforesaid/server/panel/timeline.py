"""The log of a person: messages in order, archived ones too, and the sessions that they fall into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from fastapi import APIRouter
from starlette.responses import Response

from aforesaid.domain.message import Message
from aforesaid.domain.summary import Summary
from aforesaid.server.panel.view import Person, PersonView

router = APIRouter()

_PAGE: Final = 50
_SESSIONS: Final = 200


class Stretch(NamedTuple):
    """Messages in a row that went into the same archive, or into none."""

    chunk: int | None
    summary: Summary | None
    sittings: list[list[Message]]
    """The messages, session by session."""


@router.get("/person/timeline")
async def timeline(person: Person, before: int | None = None, around: int | None = None) -> Response:
    """Show messages in the order of the log; the newest ones, or those before or around one of them."""
    until = around + _PAGE // 2 if around is not None and around > 0 else before
    found = await person.memory.history(_PAGE, before=until if until is None else max(until, 1))
    await person.view.look_up(message.author for message in found)
    parts = stretches(found, await _by_chunk(person) if any(message.chunk for message in found) else {})
    more = found[0].seq if len(found) == _PAGE else None
    if person.view.partly:
        return person.part("part/stretches.html", stretches=parts, more=more, marked=None)
    return await person.page(
        "person/timeline.html", tab="timeline", stretches=parts, more=more, marked=around, newest=until is None
    )


@router.get("/person/sessions")
async def sessions(person: Person) -> Response:
    """Show the sessions, newest first."""
    found = await person.memory.sessions(_SESSIONS)
    most = max((each.messages for each in found), default=0)
    return await person.page("person/sessions.html", tab="sessions", sessions=found[::-1], most=most)


@router.get("/person/session")
async def session(person: Person, session: str) -> Response:
    """Show what was said in a session."""
    there = person.view.who.person(person.view.memory, person.user, space=person.view.space, session=session)
    found = await there.history(_PAGE * 10, within="session")
    await person.view.look_up(message.author for message in found)
    return person.part("part/messages.html", messages=found)


async def _by_chunk(person: PersonView) -> dict[int, Summary]:
    """Return the summary that each archive was made for: the lowest one, in its newest version."""
    found = await person.memory.summaries(active=None, kind="tree")
    kept = [summary for summary in found if summary.level == 1 and not summary.rolled_back]
    return {chunk: summary for summary in sorted(kept, key=lambda each: each.version) for chunk in summary.chunks}


def stretches(messages: Sequence[Message], summaries: Mapping[int, Summary]) -> list[Stretch]:
    """Take messages apart where a session ends and where an archive begins."""
    found: list[Stretch] = []
    for message in messages:
        if not found or found[-1].chunk != message.chunk:
            summary = None if message.chunk is None else summaries.get(message.chunk)
            found.append(Stretch(message.chunk, summary, []))
        sittings = found[-1].sittings
        if not sittings or sittings[-1][-1].session != message.session:
            sittings.append([])
        sittings[-1].append(message)
    return found
