"""What happened to a user and what is to come, by date, also as iCalendar (RFC 5545)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from aforesaid.domain.checks import to_zone
from aforesaid.domain.memory import DOUBTED, ENDED, Event, MemoryRecord
from aforesaid.domain.scope import Scope
from aforesaid.profiles import Profile
from aforesaid.profiles.effective import settings_of, zone_from
from aforesaid.store import Store
from aforesaid.text.times.find import When, find_times


def timeline(
    memories: Sequence[MemoryRecord], since: datetime | None = None, until: datetime | None = None
) -> list[MemoryRecord]:
    """Return the dated memories that lie in a period, in the order in which things happened.

    These are events and all others with a date, except reminders, which have the date on which they ring. What was
    replaced, deactivated or forgotten is left out; what has merely expired is not. An event that was over when a newer
    one superseded it did happen; one that was still to come was moved.
    """
    dated = [(memory.happened, memory) for memory in memories if _counts(memory)]
    found = [(event, memory) for event, memory in dated if event is not None and overlaps(event, since, until)]
    return [memory for _, memory in sorted(found, key=lambda each: (each[0].start, each[1].id))]


def overlaps(event: Event, since: datetime | None, until: datetime | None) -> bool:
    """Return whether an event lies in a period, at least in part. None: the period is open on that side."""
    ends_before = since is not None and (event.end <= since if event.end > event.start else event.start < since)
    return not ends_before and (until is None or event.start < until)


def _counts(memory: MemoryRecord) -> bool:
    if memory.kind == "reminder" or memory.reason == DOUBTED or _was_cancelled(memory):
        return False
    return memory.state in {"active", "expired"} or (memory.state == "superseded" and _was_over(memory))


def _was_cancelled(memory: MemoryRecord) -> bool:
    event, ended = memory.happened, memory.valid_to
    return memory.reason == ENDED and event is not None and ended is not None and ended < event.start


def _was_over(memory: MemoryRecord) -> bool:
    event, superseded = memory.happened, memory.valid_to
    return memory.kind == "event" and event is not None and superseded is not None and event.end <= superseded


_DAY: Final = timedelta(days=1)
_SCHEDULED: Final = frozenset({"schedule", "task", "reminder"})


def happening(memories: Sequence[MemoryRecord], asked: datetime, when: str | None) -> list[MemoryRecord]:
    """Return the memories with an event in the times that `when` names, soonest first; by default, all future ones."""
    dated = [
        (memory.event, memory) for memory in memories if memory.event is not None and memory.category in _SCHEDULED
    ]
    times = _times(when, asked) if when else []
    if times:
        found = [(event, memory) for event, memory in dated if any(_overlap(event, each) for each in times)]
    else:
        found = [(event, memory) for event, memory in dated if event.end > asked]
    return [memory for _, memory in sorted(found, key=lambda each: (each[0].start, each[1].id))]


def _times(when: str, asked: datetime) -> list[When]:
    """Return the times that a question names. "Monday", asked on a Monday, means both today and a week from now."""
    found = find_times(when, asked, "future")
    try:
        yesterday = find_times(when, asked - _DAY, "future")
    except OverflowError:  # the first day of the calendar
        return found
    if len(yesterday) == len(found):
        found += [old for old, new in zip(yesterday, found, strict=True) if new.start - old.start == 7 * _DAY]
    return found


def _overlap(event: Event, when: When) -> bool:
    return event.start < when.end and event.end > when.start


async def zone_of(store: Store, profile: Profile, scope: Scope) -> tzinfo:
    """Return the time zone of a user: their setting, or else the one of their space."""
    return zone_from(await settings_of(store, scope), profile, scope.space)


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
