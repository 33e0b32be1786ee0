"""People: who is remembered, and what is known about one of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Annotated, Final, NamedTuple

from fastapi import APIRouter, Form
from starlette.responses import Response

from aforesaid.domain.memory import Facts
from aforesaid.server.dependencies import App, Overseer
from aforesaid.server.panel import forms
from aforesaid.server.panel.view import Looking, Person

router = APIRouter()

_PAGE: Final = 100
_WORD: Final = re.compile(r"\s+|[^\s]+")
_MOST_COMPARED: Final = 4_000
"""Longer texts are shown without what changed in them: comparing takes time that grows with their square."""


@router.get("/people")
async def everybody(view: Looking, text: str = "", skip: int = 0) -> Response:
    """Show who is remembered, last active first."""
    wanted = text.strip().casefold()
    people = await view.people()
    found = [user for user in people if wanted in user.id.casefold() or wanted in (user.name or "").casefold()]
    start = max(skip, 0)
    return view.page(
        "people.html",
        people=found[start : start + _PAGE],
        total=len(found),
        text=text.strip(),
        spaces=[] if people else await view.spaces(),
        further=start + _PAGE if len(found) > start + _PAGE else None,
    )


@router.get("/spaces")
async def spaces(view: Looking, who: Overseer) -> Response:
    """Show the spaces, last active first."""
    await view.memory.record_access("users.read", "users", actor=who.actor)
    return view.page("spaces.html", spaces=await view.spaces())


@router.get("/person")
async def person(person: Person) -> Response:
    """Show what is known about somebody."""
    return await person.page(
        "person/portrait.html",
        tab="portrait",
        versions=list(reversed(list(compared(await person.memory.facts())))),
        preferences=await person.memory.preferences(),
        memories=(await person.memory.memories())[:6],
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
        "stored": "Remembered.",
        "known": "That was known already.",
        "quarantined": f"Kept apart until somebody approves it: {told.reason}.",
    }[told.outcome]
    del who
    return person.view.done(said, person.address("/person"))


@router.post("/person/forget")
async def forget(person: Person, who: App, fact: Annotated[str, Form()]) -> Response:
    """Forget a fact."""
    del who
    forgotten = await person.memory.forget(forms.text(fact).strip())
    said = "Forgotten." if forgotten else "Nothing like that was known."
    return person.view.done(said, person.address("/person"))


@router.get("/person/reminders")
async def reminders(person: Person) -> Response:
    """Show what a person is to be reminded of, and what is scheduled."""
    waiting = await person.memory.reminders()
    await person.view.look_up(memory.speaker for memory in waiting)
    return await person.page(
        "person/reminders.html",
        tab="reminders",
        reminders=waiting,
        schedule=[memory for memory in await person.memory.schedule() if memory.remind_at is None],
    )


@router.get("/person/events")
async def events(person: Person, text: str = "") -> Response:
    """Show what happened in a person's life and what is to come, in order."""
    found = await person.memory.timeline(query=text.strip() or None)
    await person.view.look_up(memory.speaker for memory in found)
    return await person.page("person/events.html", tab="events", events=found, text=text.strip())


@router.get("/person/people")
async def around(person: Person) -> Response:
    """Show the people around a person, and what is known about each."""
    found = await person.memory.people()
    await person.view.look_up(memory.speaker for known in found for memory in known.memories)
    return await person.page("person/people.html", tab="people", people=found[:_PAGE])


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
