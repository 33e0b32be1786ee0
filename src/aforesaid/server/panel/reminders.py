"""Reminders of a person, in their own time zone: set, moved, done and cancelled."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Form
from starlette.responses import Response

from aforesaid.domain.checks import to_zone
from aforesaid.domain.memory import MemoryRecord
from aforesaid.errors import InvalidInput
from aforesaid.server.dependencies import App
from aforesaid.server.languages import translate
from aforesaid.server.panel import forms
from aforesaid.server.panel.view import Person, PersonView

router = APIRouter()


class Planned(NamedTuple):
    """A reminder or something scheduled, with its time in the person's time zone."""

    memory: MemoryRecord
    at: datetime | None
    is_due: bool
    timed: bool
    """Whether the time of day is known; otherwise it is a whole day."""

    @property
    def typed(self) -> str:
        """The time as a field for a date and a time has it."""
        return "" if self.at is None else f"{self.at:%Y-%m-%dT%H:%M}"


@router.get("/person/reminders")
async def reminders(person: Person) -> Response:
    """Show what a person is to be reminded of, and what is scheduled."""
    zone = await person.memory.time_zone()
    waiting = await person.memory.reminders()
    schedule = [memory for memory in await person.memory.schedule() if memory.remind_at is None]
    await person.view.look_up(memory.speaker for memory in (*waiting, *schedule))
    return await person.page(
        "person/reminders.html",
        tab="reminders",
        reminders=planned(waiting, zone),
        schedule=planned(schedule, zone),
        zone=zone,
        now=to_zone(datetime.now(UTC), zone),
    )


@router.post("/person/reminders")
async def set_reminder(
    person: Person,
    who: App,
    text: Annotated[str, Form()],
    at: Annotated[str, Form()] = "",
    words: Annotated[str, Form()] = "",
) -> Response:
    """Set a reminder: at a time that was chosen, or described in words."""
    del who
    when = _when(at, words, "words" if not at.strip() else "at")
    memory = await _explained(
        person.memory.note("reminder", forms.text(text).strip(), when=when), "at" if at.strip() else "words"
    )
    return _done(person, translate("Reminder set: {text}", text=memory.text))


@router.post("/person/reminders/{number}/move")
async def move(person: Person, who: App, number: int, at: Annotated[str, Form()]) -> Response:
    """Move a reminder to another time."""
    del who
    memory = await _explained(person.memory.edit_memory(number, when=_when(at, "", "at")), "at")
    return _done(person, translate("Moved: {text}", text=memory.text))


@router.post("/person/reminders/{number}/done")
async def done(person: Person, who: App, number: int) -> Response:
    """Take a reminder off the list: it was delivered, or is done."""
    del who
    await person.memory.delivered(number)
    memory = await person.memory.read_memory(number)
    return _done(person, translate("Done: {text}", text=memory.text))


@router.post("/person/reminders/{number}/cancel")
async def cancel(person: Person, who: App, number: int) -> Response:
    """Cancel a reminder. It can be brought back."""
    del who
    memory = await person.memory.deactivate(number)
    return _done(person, translate("Cancelled: {text}", text=memory.text), undo=(memory,))


def planned(memories: Sequence[MemoryRecord], zone: tzinfo) -> list[Planned]:
    """Return memories with their times in a time zone."""
    now = datetime.now(UTC)
    found = []
    for memory in memories:
        at = memory.remind_at or (memory.event.start if memory.event else None)
        timed = memory.remind_at is not None or memory.event is None or memory.event.timed
        found.append(Planned(memory, None if at is None else to_zone(at, zone), at is not None and at <= now, timed))
    return found


def _when(at: str, words: str, field: str) -> datetime | str:
    """Return the time that was chosen, without a zone: it is the person's. Raises InvalidInput for the field."""
    if at.strip():
        try:
            return datetime.fromisoformat(at.strip())
        except ValueError:
            return at.strip()
    if not words.strip():
        raise InvalidInput(translate("say when: choose a date and a time, or describe them in words"), field)
    return words.strip()


async def _explained(change: Awaitable[MemoryRecord], field: str) -> MemoryRecord:
    """Make a change; what is wrong with its time is said beside the field of this page that names it."""
    try:
        return await change
    except InvalidInput as error:
        if error.field == "when":
            error.field = field
        raise


def _done(person: PersonView, said: str, *, undo: Sequence[MemoryRecord] = ()) -> Response:
    return person.view.done(said, person.address("/person/reminders"), undo=undo)
