"""Commands for memories, facts, portraits, reminders, people and the timeline."""

from __future__ import annotations

import sys
from datetime import tzinfo
from functools import partial
from typing import Annotated, cast

import typer
from rich.text import Text

import aforesaid
from aforesaid.cli.options import (
    ME,
    AsJson,
    Space,
    Store,
    UserOption,
    announce_new_folder,
    harmless,
    local_time,
    moment,
    must_exist,
    note_pending_work,
    print_json,
    say,
)
from aforesaid.domain.checks import Category, CategoryOrKind, Kind, MemoryState, to_zone
from aforesaid.domain.memory import Event, MemoryRecord
from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.errors import InvalidInput
from aforesaid.facts import calendar

_CATEGORY = (
    "The category: schedule, fact, task, preference, reminder or other; or the kind event, relationship or instruction."
)
_STYLES = {"grey": "bright_black", "blue": "blue", "orange": "yellow", "red": "red"}

Name = Annotated[
    str | None,
    typer.Option(
        "--name", help="The user's name in sentences. Default: their last display name, or id. Example: --name Ann"
    ),
]


def remember(
    fact: Annotated[str, typer.Argument(help='The fact. Example: "prefers tea"')],
    store: Store = None,
    user: UserOption = ME,
    space: Space = DEFAULT_SPACE,
    by: Annotated[str | None, typer.Option("--by", help="Who states it. Default: the user. Example: --by bob")] = None,
    name: Name = None,
    as_json: AsJson = False,
) -> None:
    """Store a fact about a user. A newer fact replaces one that it contradicts.

    Example:
        aforesaid remember "prefers tea over coffee" --user ann
    """
    announce_new_folder(store)
    with aforesaid.open(store, embedder="none") as memory:
        result = memory.user(user, space=space).remember(fact, by=by, name=name)
    if as_json:
        print_json(result)
    elif result.outcome == "quarantined":
        number = "" if result.memory is None else f" {result.memory.id}"
        say(f"quarantined as memory{number} until somebody approves it: {result.reason}")
    else:
        say("remembered" if result.outcome == "stored" else "already known")


def forget(
    fact: Annotated[str, typer.Argument(help='The fact to forget. Example: "likes pizza"')],
    store: Store = None,
    user: UserOption = ME,
    space: Space = DEFAULT_SPACE,
    name: Name = None,
    as_json: AsJson = False,
) -> None:
    """Forget a fact about a user, and print whether it was known.

    Example:
        aforesaid forget "likes pizza" --user ann
    """
    must_exist(store)
    with aforesaid.open(store, embedder="none") as memory:
        forgotten = memory.user(user, space=space).forget(fact, name=name)
    if as_json:
        print_json(forgotten)
    else:
        say("forgotten" if forgotten.found else "nothing like that was known")


def portrait(
    store: Store = None, user: UserOption = ME, space: Space = DEFAULT_SPACE, name: Name = None, as_json: AsJson = False
) -> None:
    """Print what is known about a user, as one text.

    Example:
        aforesaid portrait --user ann
    """
    must_exist(store)
    with aforesaid.open(store) as memory:
        note_pending_work(memory)
        text = memory.user(user, space=space).portrait(name=name)
    if as_json:
        print_json({"portrait": text})
    else:
        say(harmless(text) if text else f"nothing is known about {harmless(user)}")


def memories(
    store: Store = None,
    user: UserOption = ME,
    category: Annotated[
        str | None,
        typer.Option(
            "--category", "-c", help="Only: schedule, fact, task, preference, reminder or other. Default: all."
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            "-k",
            help="Only: fact, preference, event, schedule, task, reminder, relationship or instruction. Default: all.",
        ),
    ] = None,
    state: Annotated[
        str | None,
        typer.Option("--state", help="active, superseded, deactivated, quarantined, expired or all. Default: active."),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            help="What was known at this time; with --end, since when it is no longer true. Default: now. "
            "Example: 2026-03-01",
        ),
    ] = None,
    approve: Annotated[
        int | None, typer.Option("--approve", help="Approve the quarantined memory with this id. Example: 7")
    ] = None,
    reject: Annotated[
        int | None, typer.Option("--reject", help="Reject a memory, also when it is stated again.")
    ] = None,
    deactivate: Annotated[int | None, typer.Option("--deactivate", help="Deactivate a memory.")] = None,
    end: Annotated[int | None, typer.Option("--end", help="Record that a memory is no longer true.")] = None,
    reactivate: Annotated[int | None, typer.Option("--reactivate", help="Reactivate a memory.")] = None,
    undo: Annotated[int | None, typer.Option("--undo", help="Undo a memory's last change.")] = None,
    space: Space = DEFAULT_SPACE,
    as_json: AsJson = False,
) -> None:
    """Print memories, most important first; or approve, reject, deactivate, end, reactivate or undo one.

    Example:
        aforesaid memories --user ann --state quarantined
        aforesaid memories --user ann --approve 7
        aforesaid memories --user ann --end 8 --at 2026-03-01
    """
    must_exist(store)
    with aforesaid.open(store) as memory:
        person = memory.user(user, space=space, actor="command line")
        changes = (
            (approve, person.approve),
            (reject, person.reject),
            (deactivate, person.deactivate),
            (end, partial(person.end_memory, at=moment(at))),
            (reactivate, person.reactivate),
            (undo, person.undo),
        )
        changed = [change(number) for number, change in changes if number is not None]
        if not changed:
            note_pending_work(memory)
            every = state == "all"
            found = person.memories(
                cast("Category | None", category),
                active=None if every else True,
                state=None if every else cast("MemoryState | None", state),
                at=moment(at),
                kind=cast("Kind | None", kind),
            )
    shown = changed or found
    if as_json:
        print_json(shown)
    elif not shown:
        say("no memories found")
    for each in () if as_json else shown:
        say(memory_line(each))


def note(
    category: Annotated[str, typer.Argument(help=_CATEGORY)],
    text: Annotated[str, typer.Argument(help="The text.")],
    store: Store = None,
    user: UserOption = ME,
    importance: Annotated[int, typer.Option("--importance", "-i", help="Importance, 1 to 10.")] = 5,
    priority: Annotated[int, typer.Option("--priority", help="Priority, 1 to 5.")] = 3,
    tags: Annotated[list[str] | None, typer.Option("--tag", help="A tag; repeatable. Example: --tag health")] = None,
    when: Annotated[
        str | None,
        typer.Option(
            "--when",
            help="When it happens, or when to remind: words or a time, in the user's time zone. Default: the time in "
            'the text. Examples: "tomorrow at 9", 2026-03-01T09:00',
        ),
    ] = None,
    expires: Annotated[
        str | None, typer.Option("--expires", help="When it expires. Default: never. Example: 2026-12-31")
    ] = None,
    about: Annotated[
        str | None,
        typer.Option("--about", help="Whom it is about, by id or name. Default: the user. Example: --about Tom"),
    ] = None,
    space: Space = DEFAULT_SPACE,
    as_json: AsJson = False,
) -> None:
    """Store a memory.

    Example:
        aforesaid note schedule "Dentist on Monday at 9am" --importance 8 --user ann
    """
    announce_new_folder(store)
    with aforesaid.open(store, embedder="none") as memory:
        written = memory.user(user, space=space, actor="command line").note(
            cast("CategoryOrKind", category),
            text,
            importance=importance,
            priority=priority,
            tags=tags or (),
            when=when,
            expires=moment(expires),
            about=about,
        )
    if as_json:
        print_json(written)
    else:
        say(memory_line(written))
        if written.remind_at is not None:
            say(Text(f"       reminds at {local_time(written.remind_at)} (this machine's time zone)", style="dim"))


def reminders(
    store: Store = None,
    user: Annotated[
        str | None,
        typer.Option(
            "--user", "-u", envvar="AFORESAID_USER", help="The user's id. Default: due reminders of all users."
        ),
    ] = None,
    due: Annotated[bool, typer.Option("--due", help="Only reminders that are due.")] = False,
    deliver: Annotated[bool, typer.Option("--deliver", help="Mark the printed reminders as delivered.")] = False,
    ical: Annotated[
        bool, typer.Option("--ical", help="Print schedules and reminders as iCalendar; needs --user.")
    ] = False,
    space: Space = DEFAULT_SPACE,
    as_json: AsJson = False,
) -> None:
    """Print undelivered reminders, soonest first; or everything with a time, as iCalendar.

    Example:
        aforesaid reminders --user ann
        aforesaid reminders --user ann --ical > ann.ics
    """
    must_exist(store)
    if ical and user is None:
        raise InvalidInput("--ical needs a user: pass --user")
    zone: tzinfo | None = None
    with aforesaid.open(store) as memory:
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
    elif as_json:
        print_json(found)
    elif not found:
        say("no reminders")
    for each in () if as_json or ical else found:
        whose = "" if user is not None else f"{harmless(each.user)}: "
        when = "no time" if each.remind_at is None else local_time(each.remind_at)
        say(Text(f"{when:<16}  ", style="dim"), f"{whose}{harmless(each.text)}")


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


def timeline(
    query: Annotated[
        str | None,
        typer.Argument(help='A topic or a question. Default: everything. Example: "what happened in May?"'),
    ] = None,
    store: Store = None,
    user: UserOption = ME,
    about: Annotated[
        str | None, typer.Option("--about", help="Only what mentions this person, by id or name. Example: --about Tom")
    ] = None,
    since: Annotated[str | None, typer.Option("--since", help="Only from this time on. Example: 2026-05-01")] = None,
    until: Annotated[str | None, typer.Option("--until", help="Only before this time. Example: 2026-06-01")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of events.")] = 100,
    space: Space = DEFAULT_SPACE,
    as_json: AsJson = False,
) -> None:
    """Print what happened and what is to come, in the order in which it happened.

    Example:
        aforesaid timeline --user ann --since 2026-05-01
        aforesaid timeline "how did the kitchen project go?" --user ann
    """
    must_exist(store)
    with aforesaid.open(store) as memory:
        note_pending_work(memory)
        person = memory.user(user, space=space)
        found = person.timeline(moment(since), moment(until), about=about, query=query, limit=limit)
        zone = person.time_zone()
    if as_json:
        print_json(found)
        return
    if not found:
        say("no dated events found")
    for each in found:
        say(Text(f"{_written(each.happened, zone):<16}  ", style="dim"), harmless(each.text))


def _written(happened: Event | None, zone: tzinfo) -> str:
    if happened is None:
        return ""
    start = to_zone(happened.start, zone)
    return f"{start:%Y-%m-%d %H:%M}" if happened.timed else f"{start:%Y-%m-%d}"


def people(
    name: Annotated[
        str | None, typer.Argument(help="Only people called so: by name, id or relation. Example: Sinéad")
    ] = None,
    store: Store = None,
    user: UserOption = ME,
    space: Space = DEFAULT_SPACE,
    as_json: AsJson = False,
) -> None:
    """Print the people around a user, and what is known about each.

    Example:
        aforesaid people --user ann
        aforesaid people "my sister" --user ann
    """
    must_exist(store)
    with aforesaid.open(store) as memory:
        note_pending_work(memory)
        found = memory.user(user, space=space).people(name)
    if as_json:
        print_json(found)
        return
    if not found:
        say("nobody found")
    for person in found:
        relation = f" ({person.relation})" if person.relation not in (None, person.name) else ""
        seen = f"  first mentioned {person.first_mentioned:%Y-%m-%d}, last {person.last_mentioned:%Y-%m-%d}"
        say(Text.assemble(f"{harmless(person.name)}{relation}", (seen, "dim")))
        for memory_ in person.memories if name is not None else person.memories[:_KNOWN]:
            say(f"    {harmless(memory_.text)}")
