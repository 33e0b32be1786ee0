"""Schedules and reminders as iCalendar (RFC 5545), for any calendar program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, tzinfo
from typing import Final

from aforesaid.domain.checks import to_zone
from aforesaid.domain.memory import MemoryRecord

_LINE_BYTES: Final = 75
_PRIORITIES: Final = {10: 1, 9: 1, 8: 3, 7: 4, 6: 5, 5: 5, 4: 5, 3: 7, 2: 8, 1: 9}


def calendar(memories: Iterable[MemoryRecord], zone: tzinfo) -> str:
    """Return those memories that have a time as a calendar. Equal memories give equal texts.

    `zone` is the user's time zone: whole days begin at midnight there.
    """
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Aforesaid//memories//EN", "CALSCALE:GREGORIAN"]
    for memory in memories:
        if memory.event is not None or memory.remind_at is not None:
            lines += _event(memory, zone)
    lines.append("END:VCALENDAR")
    return "".join(f"{part}\r\n" for line in lines for part in _folded(line))


def _event(memory: MemoryRecord, zone: tzinfo) -> Iterator[str]:
    yield "BEGIN:VEVENT"
    yield f"UID:{_escaped(f'{memory.space}/{memory.user}/{memory.id}')}@aforesaid"
    yield f"DTSTAMP:{_moment(memory.created_at)}"
    event = memory.event
    if event is not None and not event.timed:
        yield f"DTSTART;VALUE=DATE:{to_zone(event.start, zone):%Y%m%d}"
        yield f"DTEND;VALUE=DATE:{to_zone(event.end, zone):%Y%m%d}"
    elif event is not None:
        yield f"DTSTART:{_moment(event.start)}"
        yield f"DTEND:{_moment(event.end)}"
    elif memory.remind_at is not None:
        yield f"DTSTART:{_moment(memory.remind_at)}"
    yield f"SUMMARY:{_escaped(memory.text)}"
    yield f"CATEGORIES:{','.join(_escaped(word).upper() for word in (memory.category, *memory.tags))}"
    yield f"PRIORITY:{_PRIORITIES[memory.importance]}"
    if memory.remind_at is not None:
        yield "BEGIN:VALARM"
        yield "ACTION:DISPLAY"
        yield f"DESCRIPTION:{_escaped(memory.text)}"
        yield f"TRIGGER;VALUE=DATE-TIME:{_moment(memory.remind_at)}"
        yield "END:VALARM"
    yield "END:VEVENT"


def _moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def _escaped(text: str) -> str:
    plain = text.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,")
    lines = "\\n".join(plain.splitlines())
    return "".join(character for character in lines if character.isprintable())


def _folded(line: str) -> Iterator[str]:
    """Break a line into parts of at most 75 bytes, never inside of a character; the second one begins with a space."""
    part = ""
    for character in line:
        if len((part + character).encode()) > _LINE_BYTES:
            yield part
            part = " "
        part += character
    yield part
