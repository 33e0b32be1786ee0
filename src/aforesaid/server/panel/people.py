"""Pages about one person: data, reminders, summaries, timeline, erasure."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from difflib import SequenceMatcher
from typing import Annotated, Final, NamedTuple
from urllib.parse import quote

from fastapi import APIRouter, Form, HTTPException
from starlette.responses import Response

from aforesaid.domain.checks import to_zone
from aforesaid.domain.hit import MessageFilter
from aforesaid.domain.memory import Facts, MemoryRecord
from aforesaid.domain.message import Message, Position
from aforesaid.domain.summary import Summary
from aforesaid.errors import InvalidInput, NotFound
from aforesaid.extras import re
from aforesaid.server.authentication import Admin, App, Overseer
from aforesaid.server.languages import plural, translate
from aforesaid.server.panel.conversation import shown_messages, start_of
from aforesaid.server.panel.data import confirmed_name, erase_person, sent_export
from aforesaid.server.panel.view import Looking, Person, not_a_day, reason, typed_text
from aforesaid.store.memories import FactsVersions, Memories
from aforesaid.store.messages import Messages, UserLedger
from aforesaid.store.summaries import Summaries

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
    await view.memory.record_access("users.read", "users", actor=who.viewer)
    return view.page("spaces.html", spaces=await view.spaces())


@router.get("/person")
async def person(person: Person) -> Response:
    memory = person.memory
    now = datetime.now(UTC)
    said = [each for each in await memory.history(_RECENT * 3) if each.role != "tool" and each.text]
    recent = list({(each.author, each.text): each for each in said}.values())[-_RECENT:]
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
async def remember(person: Person, _: App, fact: Annotated[str, Form()]) -> Response:
    told = await person.memory.remember(typed_text(fact).strip(), by=None)
    said = {
        "stored": translate("Remembered."),
        "known": translate("That was known already."),
        "quarantined": translate("Waits for approval: {reason}.", reason=reason(told.reason)),
    }[told.outcome]
    return person.done(said, "/person")


@router.post("/person/forget")
async def forget(person: Person, _: App, fact: Annotated[str, Form()]) -> Response:
    forgotten = await person.memory.forget(typed_text(fact).strip())
    said = translate("Forgotten.") if forgotten else translate("Nothing like that was known.")
    return person.done(said, "/person")


@router.get("/person/people")
async def around(person: Person) -> Response:
    found = await person.memory.people()
    await person.view.look_up(memory.speaker for known in found for memory in known.memories)
    await person.view.look_up_zones([person.user])
    return await person.page("person/people.html", tab="people", people=found[:_MOST_PEOPLE])


class Changed(NamedTuple):
    """A stretch of words, and whether a version added it or dropped it."""

    kind: str
    text: str


def compared(versions: list[Facts]) -> Iterator[tuple[Facts, list[Changed]]]:
    before = ""
    for version in versions:
        after, changes = version.text, []
        if not before or len(before) + len(after) > _MOST_COMPARED:
            changes.append(Changed("same", after))
        else:
            old, new = _WORD.findall(before), _WORD.findall(after)
            for kind, start, end, from_, to in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
                dropped, added = "".join(old[start:end]).strip(), "".join(new[from_:to])
                if kind == "equal":
                    changes.append(Changed("same", added))
                    continue
                changes += [Changed("dropped", dropped)] if dropped else []
                changes += [Changed("added", added)] if added else []
        yield version, changes
        before = after


_THREADS: Final = 500


@router.get("/person/data")
async def data(person: Person, _: Admin) -> Response:
    store, scope = person.view.memory.store, person.memory.scope
    stored = {
        "messages": (await store.read(UserLedger(scope))).messages,
        "summaries": len(await store.read(Summaries(scope, active=None))),
        "memories": len(await store.read(Memories(scope, active=None))),
        "facts": len(await store.read(FactsVersions(scope))),
        "threads": len(await person.memory.threads(_THREADS)),
    }
    people = [each for each in await person.view.offered() if each.id != person.user]
    return await person.page("person/data.html", tab="data", stored=stored, people=people)


@router.get("/person/export")
async def export(person: Person, who: Admin) -> Response:
    name = quote(f"{person.name}-{datetime.now(UTC):%Y-%m-%d}.jsonl.gz".replace("/", "_"), safe="")
    space = person.view.space
    return await sent_export(person.view, f"filename*=UTF-8''{name}", user=person.user, space=space, actor=who.actor)


@router.post("/person/erase")
async def erase(person: Person, _: Admin, confirm: Annotated[str, Form()] = "") -> Response:
    return await erase_person(person.view, person.user, confirm, "confirm")


@router.post("/person/merge")
async def merge(
    person: Person, who: Admin, into: Annotated[str, Form()], confirm_merge: Annotated[str, Form()] = ""
) -> Response:
    """Make this person another one, after their name was typed."""
    view = person.view
    if view.who.user is not None:
        raise HTTPException(403, translate("This key is for one person; merging concerns two."))
    await confirmed_name(view, person.user, confirm_merge, "confirm_merge")
    other = await view.find(into)
    try:
        merged = await view.memory.merge(person.user, other, space=view.space, actor=who.actor)
    except NotFound as error:
        raise InvalidInput(str(error), "into") from error
    said = translate(
        "Merged: {messages} and {memories} of {name}.",
        messages=plural("{count} message", "{count} messages", merged.messages),
        memories=plural("{count} memory", "{count} memories", merged.memories),
        name=person.name,
    )
    return view.done(said, view.address("/person", user=other), leave=True)


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
    _: App,
    text: Annotated[str, Form()],
    at: Annotated[str, Form()] = "",
    words: Annotated[str, Form()] = "",
) -> Response:
    """Set a reminder: at a time that was chosen, or described in words."""
    field = "at" if at.strip() else "words"
    when = _when(at, words, field)
    memory = await _explained(person.memory.note("reminder", typed_text(text).strip(), when=when), field)
    return person.done(translate("Reminder set: {text}", text=memory.text), "/person/reminders")


@router.post("/person/reminders/{number}/move")
async def move(person: Person, _: App, number: int, at: Annotated[str, Form()]) -> Response:
    memory = await _explained(person.memory.edit_memory(number, when=_when(at, "", "at")), "at")
    return person.done(translate("Moved: {text}", text=memory.text), "/person/reminders")


@router.post("/person/reminders/{number}/done")
async def done(person: Person, _: App, number: int) -> Response:
    """Take a reminder off the list: it was delivered, or is done."""
    await person.memory.delivered(number)
    memory = await person.memory.read_memory(number)
    return person.done(translate("Done: {text}", text=memory.text), "/person/reminders")


@router.post("/person/reminders/{number}/cancel")
async def cancel(person: Person, _: App, number: int) -> Response:
    """Cancel a reminder. It can be brought back."""
    memory = await person.memory.deactivate(number)
    return person.done(translate("Cancelled: {text}", text=memory.text), "/person/reminders", undo=(memory,))


def planned(memories: Sequence[MemoryRecord], zone: tzinfo) -> list[Planned]:
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


@router.get("/person/summaries")
async def tree(person: Person) -> Response:
    found = await person.memory.summaries()
    below = {source for summary in found if summary.kind != "tree" for source in summary.sources}
    return await person.page(
        "person/summaries.html",
        tab="summaries",
        archives=[summary for summary in found if summary.kind == "tree"],
        views=[summary for summary in found if summary.kind != "tree" and summary.id not in below],
    )


@router.get("/person/summaries/{number}")
async def below(person: Person, number: int) -> Response:
    everything = await person.memory.summaries(active=None)
    summary = _named(everything, number)
    sources = [each for each in everything if each.id in summary.sources]
    messages = [] if sources else await person.memory.summary_messages(number)
    shown = await shown_messages(person, messages)
    by_id, earlier, version = {each.id: each for each in everything}, [], summary
    while version.version > 1 and version.replaces in by_id:
        version = by_id[version.replaces]
        earlier.append(version)
    return person.part("part/below.html", summary=summary, sources=sources, earlier=earlier, **shown)


@router.get("/person/summaries/{number}/edit")
async def edit(person: Person, number: int) -> Response:
    return person.part("part/edit_summary.html", summary=_named(await person.memory.summaries(active=None), number))


@router.get("/person/summaries/{number}/text")
async def text(person: Person, number: int) -> Response:
    return person.part("part/summary_text.html", summary=_named(await person.memory.summaries(active=None), number))


@router.post("/person/summaries/{number}")
async def correct(person: Person, who: App, number: int, text: Annotated[str, Form()]) -> Response:
    """Correct a summary: the new text is its next version."""
    summary = await person.memory.edit_summary(number, typed_text(text).strip(), editor=who.actor)
    return person.done(translate("Corrected; this is version {number}.", number=summary.version), "/person/summaries")


@router.post("/person/summaries/{number}/back")
async def roll_back(person: Person, _: App, number: int) -> Response:
    await person.memory.roll_back(number)
    return person.done(translate("Taken back: what it stood for is active again."), "/person/summaries")


@router.post("/person/summarise")
async def summarise(person: Person, _: App) -> Response:
    made = await person.memory.summarize()
    nothing = translate("There was nothing new to summarise.")
    said = plural("{count} made.", "{count} made.", len(made)) if made else nothing
    return person.done(said, "/person/summaries")


def _named(summaries: list[Summary], number: int) -> Summary:
    found = next((summary for summary in summaries if summary.id == number), None)
    if found is None:
        raise NotFound(f"there is no summary {number}")
    return found


_MOST_IN_WEEK: Final = 2_000
"""Maximum messages that are counted for a week."""
_WORDS_OF_DAY: Final = 3
"""Messages of the person that stand for a day without a summary."""


class ReadDay(NamedTuple):
    """A day in the person's time zone, to be read."""

    day: date
    summary: Summary | None
    messages: int
    said: list[Message]
    memories: list[MemoryRecord]


@router.get("/person/days")
async def days(person: Person, day: str = "") -> Response:
    """Show a week day by day: its summaries, what was learned and how much was said. Without a day, the last week."""
    store, scope, zone = person.view.memory.store, person.memory.scope, await person.memory.time_zone()

    async def one(*, before: Position | None = None, after: Position | None = None) -> date | None:
        found = await store.read(Messages(scope, "user", 1, before=before, after=after))
        return to_zone(found[0].at, zone).date() if found else None

    shown = _day(day) if day.strip() else await one() or to_zone(datetime.now(UTC), zone).date()
    monday = shown - timedelta(days=shown.weekday())
    begin, end = start_of(monday, zone), start_of(monday + timedelta(days=7), zone)
    week = MessageFilter(since=begin.at, until=end.at)
    said = await store.read(Messages(scope, "user", _MOST_IN_WEEK, after=begin, where=week))
    await person.memory.record_access("messages.read", "history")
    written = {each.day: each for each in await person.memory.summaries(kind="day")}
    learned = await person.memory.memories()
    await person.view.look_up(message.author for message in said)
    found = []
    for place in range(6, -1, -1):
        when = monday + timedelta(days=place)
        messages = [message for message in said if to_zone(message.at, zone).date() == when]
        memories = [memory for memory in learned if to_zone(memory.said_at, zone).date() == when]
        if messages or memories or when in written:
            own = [message for message in messages if message.role == "user" and message.text][:_WORDS_OF_DAY]
            found.append(ReadDay(when, written.get(when), len(messages), own, memories))
    weeks = [each for each in await person.memory.summaries(kind="week") if monday <= _ended(each, zone) <= shown]
    return await person.page(
        "person/days.html",
        tab="days",
        days=found,
        week=weeks[-1] if weeks else None,
        monday=monday,
        sunday=monday + timedelta(days=6),
        shown=shown,
        earlier=await one(before=begin),
        later=await one(after=end),
        writes=person.view.memory.profile.summaries == "calendar",
        zone=zone,
    )


@router.post("/person/days/write")
async def write_day(person: Person, _: App, day: Annotated[str, Form()]) -> Response:
    made = await person.memory.day(_day(day))
    said = translate("Written.") if made else translate("There is nothing to summarise on this day.")
    return person.done(said, "/person/days")


def _day(typed: str) -> date:
    try:
        return date.fromisoformat(typed.strip())
    except ValueError:
        raise InvalidInput(not_a_day(typed), "day") from None


def _ended(summary: Summary, zone: tzinfo) -> date:
    return summary.day or to_zone(summary.ended_at, zone).date()


_MOST: Final = 500
"""Maximum events on the page. With more, a topic or a period narrows them down."""


class Happening(NamedTuple):
    """A memory with a date, in the person's time zone."""

    memory: MemoryRecord
    start: datetime
    last_day: date
    timed: bool


class Month(NamedTuple):
    first: date
    events: list[Happening]


@router.get("/person/timeline")
async def timeline(person: Person, text: str = "") -> Response:
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
