"""Reminders in a chat: set, listed, moved and cancelled, always confirmed with day, hour and time zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final
from zoneinfo import available_timezones

from aforesaid.assistant.answer import Answer
from aforesaid.domain.checks import to_zone
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.message import Message
from aforesaid.errors import InvalidInput, NotFound
from aforesaid.models.offline.requests import AGAIN_AND_AGAIN, REMINDED_OF
from aforesaid.profiles.effective import TIME_ZONE
from aforesaid.text.times.find import read_requested_time
from aforesaid.text.words import fold

if TYPE_CHECKING:
    from aforesaid.memory import UserMemory

PENDING: Final = "reminder_setup"
"""The setting with the id of a reminder without a time, while the bot waits for the answer to "When?"."""
_EXAMPLE: Final = "/remind call mum tomorrow at 9"
_WHEN: Final = 'Name a day and an hour, such as "tomorrow at 9", "on 3 December at 17:00" or "in two hours".'
_MOST_WORDS: Final = 1
"""Maximum other words in an answer to "When?", such as "please". With more it is another message."""
_CANCEL: Final = frozenset({"cancel", "delete", "remove", "stop"})
_MOVE: Final = frozenset({"move", "change", "set"})
_SHOWN: Final = 50
_SUGGESTED: Final = 3


async def set_reminder(user: UserMemory, text: str, *, source: Message | None = None) -> Answer:
    """Set a reminder at the time in a text; ask for the time if there is none."""
    zone = await user.time_zone()
    said = datetime.now(zone)
    requested = read_requested_time(text, said)
    what = _without_joint(text if requested is None else requested.rest)
    if not what:
        return Answer(f"Remind you of what? Like this: {_EXAMPLE}")
    if requested is None:
        return await _ask_when(user, what, source, f"When should I remind you: {what}? {_WHEN}")
    try:
        memory = await user.note("reminder", what, when=text, source=source)
    except InvalidInput as error:
        question = f"I cannot remind you then: {error}. When should I remind you: {what}?"
        return await _ask_when(user, what, source, question)
    return await _confirmed(user, memory, text, assumed=requested.assumed)


async def _ask_when(user: UserMemory, what: str, source: Message | None, question: str) -> Answer:
    """Store the reminder without a time, so that it is not extracted from the message again, and ask."""
    memory = await user.note("reminder", what, source=source)
    await user.set(PENDING, memory.id)
    return Answer(question)


async def _confirmed(user: UserMemory, memory: MemoryRecord, text: str, *, assumed: bool) -> Answer:
    """Return the confirmation of a reminder that was set from a text."""
    zone = await user.time_zone()
    lines = [f"I will remind you on {await _when(user, memory.remind_at, zone)}: {memory.text}"]
    if assumed and _unclear_half(memory, zone):
        other = _other_half(memory, zone)
        lines.append(f"Did you mean {other:%H:%M}? Then send /reminders move {memory.id} {other:%Y-%m-%d %H:%M}")
    if AGAIN_AND_AGAIN.search(fold(text)):
        lines.append("I remind you once: I cannot repeat a reminder.")
    return Answer("\n".join(lines))


async def answer_when(user: UserMemory, text: str) -> Answer | None:
    """Handle the answer to "When should I remind you?"; return None if nothing was asked or it names no time."""
    number = (await user.settings()).get(PENDING)
    if number is None:
        return None
    await user.set(PENDING, None)
    requested = read_requested_time(text, datetime.now(await user.time_zone()))
    if requested is None or len(requested.rest.split()) > _MOST_WORDS:
        return None
    try:
        memory = await user.edit_memory(int(str(number)), when=text)
    except InvalidInput as error:
        await user.set(PENDING, number)
        return Answer(f"I cannot remind you then: {error}. {_WHEN}")
    except NotFound:
        # It was cancelled or deleted since.
        return None
    return await _confirmed(user, memory, text, assumed=requested.assumed)


async def manage(user: UserMemory, rest: str) -> Answer:
    """List reminders, cancel one (`cancel 12`) or move one (`move 12 tomorrow at 10`)."""
    action, _, more = rest.partition(" ")
    number, _, when = more.strip().lstrip("#").partition(" ")
    if not rest:
        return await _listed(user)
    if not number.isdecimal() or action.lower() not in _CANCEL | _MOVE:
        return Answer("Use /reminders, /reminders cancel 12, or /reminders move 12 tomorrow at 10.")
    waiting = {memory.id: memory for memory in await user.reminders()}
    memory = waiting.get(int(number))
    if memory is None:
        return Answer(f"You have no reminder {number}. /reminders lists them.")
    if action.lower() in _CANCEL:
        await user.deactivate(memory.id)
        return Answer(f"Cancelled: {memory.text}")
    if not when.strip():
        return Answer(f"Move it to when? Like this: /reminders move {number} tomorrow at 10")
    try:
        moved = await user.edit_memory(memory.id, when=when)
    except (InvalidInput, NotFound) as error:
        return Answer(f"It stays as it is: {error}.")
    zone = await user.time_zone()
    return Answer(f"I will remind you on {await _when(user, moved.remind_at, zone)}: {moved.text}")


async def set_time_zone(user: UserMemory, rest: str) -> Answer:
    """Show or set the time zone of a person, by its full name or the name of its city."""
    if not rest:
        zone = await user.time_zone()
        return Answer(
            f"Your time zone is {zone}: it is {datetime.now(zone):%A, %H:%M} for you. "
            "To change it: /timezone Europe/Berlin"
        )
    named = _zone_named(rest)
    if isinstance(named, list):
        offered = f" Did you mean {', '.join(named)}?" if named else " Use a name such as Europe/Berlin."
        return Answer(f"There is no time zone {rest[:60]!r}.{offered}")
    await user.set(TIME_ZONE, named)
    zone = await user.time_zone()
    lines = [f"Your time zone is {named} now: it is {datetime.now(zone):%A, %H:%M} for you."]
    if any(memory.remind_at for memory in await user.reminders()):
        lines.append("Reminders that are set already ring at the same moment as before; /reminders shows when that is.")
    return Answer("\n".join(lines))


async def _listed(user: UserMemory) -> Answer:
    zone = await user.time_zone()
    found = await user.reminders()
    if not found:
        return Answer(f"There is nothing to remind you of. To set a reminder: {_EXAMPLE}")
    lines = [_line(memory, zone) for memory in found[:_SHOWN]]
    if len(found) > _SHOWN:
        lines.append(f"… and {len(found) - _SHOWN} more")
    first = found[0].id
    lines.append(f"Times: {zone}. To change one: /reminders cancel {first}, /reminders move {first} tomorrow at 10")
    return Answer("\n".join(lines))


def _line(memory: MemoryRecord, zone: tzinfo) -> str:
    if memory.remind_at is None:
        return f"{memory.id}. no time yet  {memory.text}"
    at = to_zone(memory.remind_at, zone)
    return f"{memory.id}. {at:%a} {at.day} {at:%b %Y, %H:%M}  {memory.text}"


async def _when(user: UserMemory, at: datetime | None, zone: tzinfo) -> str:
    """Return day, hour and time zone, and how to set the zone if the person has none."""
    local = to_zone(at or datetime.now(UTC), zone)
    hint = "" if TIME_ZONE in await user.settings() else "; /timezone sets yours"
    return f"{local:%A}, {local.day} {local:%B %Y} at {local:%H:%M} ({zone}{hint})"


def _unclear_half(memory: MemoryRecord, zone: tzinfo) -> bool:
    """Return whether an hour is common in both halves of the day: "at 7", but not "at 10"."""
    return memory.remind_at is not None and to_zone(memory.remind_at, zone).hour % 12 in range(4, 9)


def _other_half(memory: MemoryRecord, zone: tzinfo) -> datetime:
    """Return the same hour in the other half of the day; the next one if that is over."""
    at = to_zone(memory.remind_at or datetime.now(UTC), zone)
    other = at.replace(hour=(at.hour + 12) % 24)
    return other if other.timestamp() > datetime.now(UTC).timestamp() else other + timedelta(days=1)


def _without_joint(text: str) -> str:
    """Return the subject of a reminder: "to call mum" without its "to"."""
    words = text.strip()
    if words.lower().startswith("me "):
        words = words[3:]
    joint = REMINDED_OF.match(words.lower())
    return words[joint.end() if joint else 0 :].strip(" ,:")


def _zone_named(name: str) -> str | list[str]:
    """Return the time zones that match a name."""
    wanted = "_".join(name.split()).casefold()
    known = {zone.casefold(): zone for zone in available_timezones()}
    if wanted in known:
        return known[wanted]
    cities = sorted(zone for folded, zone in known.items() if folded.rpartition("/")[2] == wanted)
    if len(cities) == 1:
        return cities[0]
    return cities[:_SUGGESTED] or [known[each] for each in get_close_matches(wanted, known, n=_SUGGESTED, cutoff=0.75)]
