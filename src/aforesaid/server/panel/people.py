"""People: who is remembered, and what is known about one of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from difflib import SequenceMatcher
from typing import Annotated, Final, NamedTuple

from fastapi import APIRouter, Form
from starlette.responses import Response

from aforesaid.domain.memory import Facts
from aforesaid.server.dependencies import App, Overseer
from aforesaid.server.languages import translate
from aforesaid.server.panel import forms
from aforesaid.server.panel.shown import reason
from aforesaid.server.panel.view import Looking, Person

router = APIRouter()

_PAGE: Final = 60
_RECENT: Final = 4
_MOST_IMPORTANT: Final = 6
_AROUND: Final = 8
_MOST_PEOPLE: Final = 100
_COMING: Final = 3
_WORD: Final = re.compile(r"\s+|[^\s]+")
_MOST_COMPARED: Final = 4_000
"""Longer texts are shown without what changed in them: comparing takes time that grows with their square."""


@router.get("/people")
async def everybody(view: Looking, text: str = "", skip: int = 0) -> Response:
    """Show who is remembered, last active first."""
    wanted, start = text.strip(), max(skip, 0)
    found = await view.page_of_people(_PAGE + 1, start, wanted)
    totals = await view.totals()
    return view.page(
        "people.html",
        people=found[:_PAGE],
        first=start + 1,
        totals=totals,
        text=wanted,
        spaces=[] if totals else await view.spaces(),
        newer=max(start - _PAGE, 0) if start else None,
        older=start + _PAGE if len(found) > _PAGE else None,
    )


@router.get("/spaces")
async def spaces(view: Looking, who: Overseer) -> Response:
    """Show the spaces, last active first."""
    await view.memory.record_access("users.read", "users", actor=who.viewer)
    return view.page("spaces.html", spaces=await view.spaces())


@router.get("/person")
async def person(person: Person) -> Response:
    """Show what is known about somebody, at a glance."""
    memory = person.memory
    now = datetime.now(UTC)
    recent = [each for each in await memory.history(_RECENT * 3) if each.role != "tool" and each.text][-_RECENT:]
    await person.view.look_up(message.author for message in recent)
    return await person.page(
        "person/about.html",
        tab="about",
        versions=list(reversed(list(compared(await memory.facts())))),
        preferences=await memory.preferences(),
        memories=(await memory.memories())[:_MOST_IMPORTANT],
        people=(await memory.people())[:_AROUND],
        coming=[each for each in await memory.reminders() if each.remind_at is None or each.remind_at > now][:_COMING],
        recent=recent,
        zone=await memory.time_zone(),
    )


@router.get("/person/portrait")
async def portrait(person: Person) -> Response:
    """Write the portrait. A model may have to do it, so the page does not wait for it."""
    return person.part("part/portrait.html", portrait=await person.memory.portrait())


@router.post("/person/remember")
async def remember(person: Person, who: App, fact: Annotated[str, Form()]) -> Response:
    """Keep a fact in mind."""
    told = await person.memory.remember(forms.text(fact).strip(), by=None)
    said = {
        "stored": translate("Remembered."),
        "known": translate("That was known already."),
        "quarantined": translate("Waits for approval: {reason}.", reason=reason(told.reason)),
    }[told.outcome]
    del who
    return person.view.done(said, person.address("/person"))


@router.post("/person/forget")
async def forget(person: Person, who: App, fact: Annotated[str, Form()]) -> Response:
    """Forget a fact."""
    del who
    forgotten = await person.memory.forget(forms.text(fact).strip())
    said = translate("Forgotten.") if forgotten else translate("Nothing like that was known.")
    return person.view.done(said, person.address("/person"))


@router.get("/person/people")
async def around(person: Person) -> Response:
    """Show the people around a person, and what is known about each."""
    found = await person.memory.people()
    await person.view.look_up(memory.speaker for known in found for memory in known.memories)
    await person.view.look_up_zones([person.user])
    return await person.page("person/people.html", tab="people", people=found[:_MOST_PEOPLE])


class Changed(NamedTuple):
    """A stretch of words, and whether a version added it or dropped it."""

    kind: str
    text: str


def compared(versions: list[Facts]) -> Iterator[tuple[Facts, list[Changed]]]:
    """Give each version with what changed in it since the one before."""
    before = ""
    for version in versions:
        yield version, list(_changes(before, version.text))
        before = version.text


def _changes(before: str, after: str) -> Iterator[Changed]:
    if not before or len(before) + len(after) > _MOST_COMPARED:
        yield Changed("same", after)
        return
    old, new = _WORD.findall(before), _WORD.findall(after)
    for kind, start, end, from_, to in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            yield Changed("same", "".join(new[from_:to]))
            continue
        if dropped := "".join(old[start:end]).strip():
            yield Changed("dropped", dropped)
        if added := "".join(new[from_:to]):
            yield Changed("added", added)
