"""Commands for memories, facts, portraits, reminders, people and the timeline."""

from __future__ import annotations

import sys
from datetime import tzinfo
from functools import partial
from typing import Annotated, cast

from rich.text import Text
from typer import Argument, Option

from aforesaid.cli.options import (
    Person,
    Space,
    Stored,
    command,
    harmless,
    local_time,
    moment,
    must_exist,
    note_pending_work,
)
from aforesaid.domain.checks import Category, CategoryOrKind, Kind, MemoryState, to_zone
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.errors import InvalidInput
from aforesaid.facts import calendar

_CATEGORY = (
    "The category: schedule, fact, task, preference, reminder or other; or the kind event, relationship or instruction."
)
_STYLES = {"grey": "bright_black", "blue": "blue", "orange": "yellow", "red": "red"}

Name = Annotated[
    str | None,
    Option("--name", help="The user's name in sentences. Default: their last display name, or id. Example: --name Ann"),
]


@command
def remember(
    fact: Annotated[str, Argument(help='The fact. Example: "prefers tea"')],
    place: Person,
    *,
    by: Annotated[str | None, Option(help="Who states it. Default: the user. Example: --by bob")] = None,
    name: Name = None,
) -> None:
    """Store a fact about a user. A newer fact replaces one that it contradicts.

    Example:
        aforesaid remember "prefers tea over coffee" --user ann
    """
    with place.write(embedder="none") as memory:
        result = place.of(memory).remember(fact, by=by, name=name)
    done = "remembered" if result.outcome == "stored" else "already known"
    if result.outcome == "quarantined":
        number = "" if result.memory is None else f" {result.memory.id}"
        done = f"quarantined as memory{number} until somebody approves it: {result.reason}"
    place.show(result, [done])


@command
def forget(
    fact: Annotated[str, Argument(help='The fact to forget. Example: "likes pizza"')],
    place: Person,
    name: Name = None,
) -> None:
    """Forget a fact about a user, and print whether it was known.

    Example:
        aforesaid forget "likes pizza" --user ann
    """
    with place.read(embedder="none") as memory:
        forgotten = place.of(memory).forget(fact, name=name)
    place.show(forgotten, ["forgotten" if forgotten.found else "nothing like that was known"])


@command
def portrait(place: Person, *, name: Name = None) -> None:
    """Print what is known about a user, as one text.

    Example:
        aforesaid portrait --user ann
    """
    with place.read() as memory:
        note_pending_work(memory)
        text = place.of(memory).portrait(name=name)
    place.show({"portrait": text}, [harmless(text or f"nothing is known about {place.user}")])


@command
def memories(
    *,
    category: Annotated[
        str | None,
        Option("--category", "-c", help="Only: schedule, fact, task, preference, reminder or other. Default: all."),
    ] = None,
    kind: Annotated[
        str | None,
        Option(
            "--kind",
            "-k",
            help="Only: fact, preference, event, schedule, task, reminder, relationship or instruction. Default: all.",
        ),
    ] = None,
    state: Annotated[
        str | None, Option(help="active, superseded, deactivated, quarantined, expired or all. Default: active.")
    ] = None,
    at: Annotated[
        str | None,
        Option(
            help="What was known at this time; with --end, since when it is no longer true. Default: now. "
            "Example: 2026-03-01"
        ),
    ] = None,
    approve: Annotated[int | None, Option(help="Approve the quarantined memory with this id. Example: 7")] = None,
    reject: Annotated[int | None, Option(help="Reject a memory, also when it is stated again.")] = None,
    deactivate: Annotated[int | None, Option(help="Deactivate a memory.")] = None,
    end: Annotated[int | None, Option(help="Record that a memory is no longer true.")] = None,
    reactivate: Annotated[int | None, Option(help="Reactivate a memory.")] = None,
    undo: Annotated[int | None, Option(help="Undo a memory's last change.")] = None,
    place: Person,
) -> None:
    """Print memories, most important first; or approve, reject, deactivate, end, reactivate or undo one.

    Example:
        aforesaid memories --user ann --state quarantined
        aforesaid memories --user ann --approve 7
        aforesaid memories --user ann --end 8 --at 2026-03-01
    """
    with place.read() as memory:
        person = place.of(memory, actor="command line")
        changes = (
            (approve, person.approve),
            (reject, person.reject),
            (deactivate, person.deactivate),
            (end, partial(person.end_memory, at=moment(at))),
            (reactivate, person.reactivate),
            (undo, person.undo),
        )
        shown = [change(number) for number, change in changes if number is not None]
        if not shown:
            note_pending_work(memory)
            every = state == "all"
            shown = person.memories(
                cast("Category | None", category),
                active=None if every else True,
                state=None if every else cast("MemoryState | None", state),
                at=moment(at),
                kind=cast("Kind | None", kind),
            )
    place.show(shown, [memory_line(each) for each in shown] or ["no memories found"])


@command
def note(
    category: Annotated[str, Argument(help=_CATEGORY)],
    text: Annotated[str, Argument(help="The text.")],
    *,
    importance: Annotated[int, Option("--importance", "-i", help="Importance, 1 to 10.")] = 5,
    priority: Annotated[int, Option(help="Priority, 1 to 5.")] = 3,
    tags: Annotated[list[str] | None, Option("--tag", help="A tag; repeatable. Example: --tag health")] = None,
    when: Annotated[
        str | None,
        Option(
            help="When it happens, or when to remind: words or a time, in the user's time zone. Default: the time in "
            'the text. Examples: "tomorrow at 9", 2026-03-01T09:00'
        ),
    ] = None,
    expires: Annotated[str | None, Option(help="When it expires. Default: never. Example: 2026-12-31")] = None,
    about: Annotated[
        str | None, Option(help="Whom it is about, by id or name. Default: the user. Example: --about Tom")
    ] = None,
    place: Person,
) -> None:
    """Store a memory.

    Example:
        aforesaid note schedule "Dentist on Monday at 9am" --importance 8 --user ann
    """
    with place.write(embedder="none") as memory:
        written = place.of(memory, actor="command line").note(
            cast("CategoryOrKind", category),
            text,
            importance=importance,
            priority=priority,
            tags=tags or (),
            when=when,
            expires=moment(expires),
            about=about,
        )
    lines = [memory_line(written)]
    if written.remind_at is not None:
        lines.append(Text(f"       reminds at {local_time(written.remind_at)} (this machine's time zone)", style="dim"))
    place.show(written, lines)


@command
def reminders(
    place: Stored,
    *,
    user: Annotated[
        str | None,
        Option("--user", "-u", envvar="AFORESAID_USER", help="The user's id. Default: due reminders of all users."),
    ] = None,
    due: Annotated[bool, Option("--due", help="Only reminders that are due.")] = False,
    deliver: Annotated[bool, Option("--deliver", help="Mark the printed reminders as delivered.")] = False,
    ical: Annotated[bool, Option("--ical", help="Print schedules and reminders as iCalendar; needs --user.")] = False,
    space: Space = DEFAULT_SPACE,
) -> None:
    """Print undelivered reminders, soonest first; or everything with a time, as iCalendar.

    Example:
        aforesaid reminders --user ann
        aforesaid reminders --user ann --ical > ann.ics
    """
    must_exist(place.store)
    if ical and user is None:
        raise InvalidInput("--ical needs a user: pass --user")
    zone: tzinfo | None = None
    with place.read() as memory:
        note_pending_work(memory)
        if user is None:
            found = memory.reminders()
        elif ical:
            handle = memory.user(user, space=space)
            found, zone = handle.memories(), handle.time_zone()
        else:
            found = memory.user(user, space=space).reminders(due=due)
        if deliver and not ical:
            found = [each for each in found if memory.user(each.user, space=each.space).delivered(each.id)]
    if zone is not None:
        sys.stdout.write(calendar(sorted(found, key=lambda each: each.id), zone))
        return
    lines = []
    for each in found:
        whose = "" if user is not None else f"{harmless(each.user)}: "
        when = "no time" if each.remind_at is None else local_time(each.remind_at)
        lines.append(Text.assemble((f"{when:<16}  ", "dim"), f"{whose}{harmless(each.text)}"))
    place.show(found, lines or ["no reminders"])


def memory_line(memory: MemoryRecord) -> Text:
    """Format a memory as a line: id, category, text, importance, and why it is not active."""
    state = "" if memory.state == "active" else f"  ({memory.state}{': ' + memory.reason if memory.reason else ''})"
    times = "" if memory.times == 1 else f"  ×{memory.times}"
    return Text.assemble(
        (f"{memory.id:>5}  ", "dim"),
        (f"[{memory.category.upper()}] ", _STYLES[memory.band.colour]),
        (harmless(memory.text), "" if memory.active else "dim"),
        (f"  {memory.importance}/10{times}{harmless(state)}", "dim"),
    )


_KNOWN = 5
"""Memories printed for each person, unless one person is asked for."""


@command
def timeline(
    query: Annotated[
        str | None, Argument(help='A topic or a question. Default: everything. Example: "what happened in May?"')
    ] = None,
    *,
    about: Annotated[
        str | None, Option(help="Only what mentions this person, by id or name. Example: --about Tom")
    ] = None,
    since: Annotated[str | None, Option(help="Only from this time on. Example: 2026-05-01")] = None,
    until: Annotated[str | None, Option(help="Only before this time. Example: 2026-06-01")] = None,
    limit: Annotated[int, Option("--limit", "-n", min=1, help="Maximum number of events.")] = 100,
    place: Person,
) -> None:
    """Print what happened and what is to come, in the order in which it happened.

    Example:
        aforesaid timeline --user ann --since 2026-05-01
        aforesaid timeline "how did the kitchen project go?" --user ann
    """
    with place.read() as memory:
        note_pending_work(memory)
        person = place.of(memory)
        found = person.timeline(moment(since), moment(until), about=about, query=query, limit=limit)
        zone = person.time_zone()
    lines = []
    for each in found:
        when = ""
        if each.happened is not None:
            start = to_zone(each.happened.start, zone)
            when = f"{start:%Y-%m-%d %H:%M}" if each.happened.timed else f"{start:%Y-%m-%d}"
        lines.append(Text.assemble((f"{when:<16}  ", "dim"), harmless(each.text)))
    place.show(found, lines or ["no dated events found"])


@command
def people(
    name: Annotated[
        str | None, Argument(help="Only people called so: by name, id or relation. Example: Sinéad")
    ] = None,
    *,
    place: Person,
) -> None:
    """Print the people around a user, and what is known about each.

    Example:
        aforesaid people --user ann
        aforesaid people "my sister" --user ann
    """
    with place.read() as memory:
        note_pending_work(memory)
        found = place.of(memory).people(name)
    lines = []
    for person in found:
        relation = f" ({person.relation})" if person.relation not in (None, person.name) else ""
        seen = f"  first mentioned {person.first_mentioned:%Y-%m-%d}, last {person.last_mentioned:%Y-%m-%d}"
        known = person.memories if name is not None else person.memories[:_KNOWN]
        lines.append(Text.assemble(f"{harmless(person.name)}{relation}", (seen, "dim")))
        lines += [Text(f"    {harmless(each.text)}") for each in known]
    place.show(found, lines or ["nobody found"])
