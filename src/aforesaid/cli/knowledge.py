"""Commands on what is known about a user."""

from __future__ import annotations

import sys
from typing import Annotated, cast

import typer
from rich.text import Text

import aforesaid
from aforesaid.cli.options import ME, AsJson, Space, Store, User, moment, must_exist
from aforesaid.cli.show import harmless, local_time, print_json, say
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.domain.words import Category, MemoryState
from aforesaid.errors import InvalidInput
from aforesaid.facts import calendar

_STYLES = {"grey": "bright_black", "blue": "blue", "orange": "yellow", "red": "red"}

Name = Annotated[str | None, typer.Option("--name", help="What the user is called in sentences.")]


def remember(
    fact: Annotated[str, typer.Argument(help="What to keep in mind, such as: prefers tea.")],
    store: Store = None,
    user: User = ME,
    space: Space = DEFAULT_SPACE,
    by: Annotated[str | None, typer.Option("--by", help="Who says so, if not the user.")] = None,
    name: Name = None,
    as_json: AsJson = False,
) -> None:
    """Keep a fact about a user in mind. Newer information takes the place of older.

    Example:
        aforesaid remember "prefers tea over coffee" --user ann
    """
    with aforesaid.open(store, embedder="none") as memory:
        told = memory.user(user, space=space).remember(fact, by=by, name=name)
    if as_json:
        print_json(told)
    elif told.outcome == "quarantined":
        number = "" if told.memory is None else f" {told.memory.id}"
        say(f"kept apart as memory{number} until somebody approves it: {told.reason}")
    else:
        say("remembered" if told.outcome == "stored" else "that was known already")


def forget(
    fact: Annotated[str, typer.Argument(help="What to forget, such as: likes pizza.")],
    store: Store = None,
    user: User = ME,
    space: Space = DEFAULT_SPACE,
    name: Name = None,
    as_json: AsJson = False,
) -> None:
    """Forget a fact about a user, and say whether it was there.

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
    store: Store = None, user: User = ME, space: Space = DEFAULT_SPACE, name: Name = None, as_json: AsJson = False
) -> None:
    """Show what is known about a user, in one text.

    Example:
        aforesaid portrait --user ann
    """
    must_exist(store)
    with aforesaid.open(store) as memory:
        memory.upkeep()
        text = memory.user(user, space=space).portrait(name=name)
    if as_json:
        print_json({"portrait": text})
    else:
        say(harmless(text) if text else f"nothing is known about {harmless(user)}")


def memories(
    store: Store = None,
    user: User = ME,
    category: Annotated[
        str | None,
        typer.Option("--category", "-c", help="schedule, fact, task, preference, reminder or other."),
    ] = None,
    state: Annotated[
        str | None,
        typer.Option("--state", help="active, superseded, deactivated, quarantined or expired; or all. [active]"),
    ] = None,
    at: Annotated[str | None, typer.Option("--at", help="What was believed then, e.g. 2026-03-01.")] = None,
    approve: Annotated[int | None, typer.Option("--approve", help="Believe the memory with this number.")] = None,
    reject: Annotated[int | None, typer.Option("--reject", help="Do not believe it, also when it is repeated.")] = None,
    deactivate: Annotated[int | None, typer.Option("--deactivate", help="Put it away.")] = None,
    reactivate: Annotated[int | None, typer.Option("--reactivate", help="Bring it back.")] = None,
    undo: Annotated[int | None, typer.Option("--undo", help="Take its last change back.")] = None,
    space: Space = DEFAULT_SPACE,
    as_json: AsJson = False,
) -> None:
    """Show single memories, most important first; approve, reject, put away and bring back.

    Example:
        aforesaid memories --user ann --state quarantined
        aforesaid memories --user ann --approve 7
    """
    must_exist(store)
    with aforesaid.open(store) as memory:
        person = memory.user(user, space=space, actor="command line")
        changes = (
            (approve, person.approve),
            (reject, person.reject),
            (deactivate, person.deactivate),
            (reactivate, person.reactivate),
            (undo, person.undo),
        )
        changed = [change(number) for number, change in changes if number is not None]
        if not changed:
            memory.upkeep()
            every = state == "all"
            found = person.memories(
                cast("Category | None", category),
                active=None if every else True,
                state=None if every else cast("MemoryState | None", state),
                at=moment(at),
            )
    shown = changed or found
    if as_json:
        print_json(shown)
    elif not shown:
        say("nothing of that kind is known")
    for each in () if as_json else shown:
        say(memory_line(each))


def note(
    category: Annotated[str, typer.Argument(help="schedule, fact, task, preference, reminder or other.")],
    text: Annotated[str, typer.Argument(help="What to write down.")],
    store: Store = None,
    user: User = ME,
    importance: Annotated[int, typer.Option("--importance", "-i", help="1 to 10.")] = 5,
    priority: Annotated[int, typer.Option("--priority", help="1 to 5.")] = 3,
    tags: Annotated[list[str] | None, typer.Option("--tag", help="A topic; several times for several.")] = None,
    when: Annotated[
        str | None, typer.Option("--when", help="When it happens or reminds. Default: what the text says.")
    ] = None,
    expires: Annotated[str | None, typer.Option("--expires", help="From when on it is left out.")] = None,
    space: Space = DEFAULT_SPACE,
    as_json: AsJson = False,
) -> None:
    """Write a memory down.

    Example:
        aforesaid note schedule "Dentist on Monday at 9am" --importance 8 --user ann
    """
    with aforesaid.open(store, embedder="none") as memory:
        written = memory.user(user, space=space, actor="command line").note(
            cast("Category", category),
            text,
            importance=importance,
            priority=priority,
            tags=tags or (),
            when=moment(when),
            expires=moment(expires),
        )
    if as_json:
        print_json(written)
    else:
        say(memory_line(written))


def reminders(
    store: Store = None,
    user: Annotated[
        str | None, typer.Option("--user", "-u", envvar="AFORESAID_USER", help="Whose. Default: everybody's due ones.")
    ] = None,
    due: Annotated[bool, typer.Option("--due", help="Only those whose time has come.")] = False,
    deliver: Annotated[bool, typer.Option("--deliver", help="Mark what is shown as delivered.")] = False,
    ical: Annotated[bool, typer.Option("--ical", help="Print schedules and reminders as iCalendar.")] = False,
    space: Space = DEFAULT_SPACE,
    as_json: AsJson = False,
) -> None:
    """List reminders that were not delivered yet, soonest first; or everything with a time, as iCalendar.

    Example:
        aforesaid reminders --user ann
        aforesaid reminders --user ann --ical > ann.ics
    """
    must_exist(store)
    if ical and user is None:
        raise InvalidInput("a calendar is somebody's: name the user with --user")
    with aforesaid.open(store) as memory:
        memory.upkeep()
        if user is None:
            found = memory.reminders()
        elif ical:
            found = memory.user(user, space=space).memories()
        else:
            found = memory.user(user, space=space).reminders(due=due)
        if deliver and not ical:
            found = [each for each in found if memory.user(each.user, space=each.space).delivered(each.id)]
    if ical:
        sys.stdout.write(calendar(sorted(found, key=lambda each: each.id)))
    elif as_json:
        print_json(found)
    elif not found:
        say("no reminders")
    for each in () if as_json or ical else found:
        whose = "" if user is not None else f"{harmless(each.user)}: "
        when = "no time" if each.remind_at is None else local_time(each.remind_at)
        say(Text(f"{when:<16}  ", style="dim"), f"{whose}{harmless(each.text)}")


def memory_line(memory: MemoryRecord) -> Text:
    """Show a memory on a line: its number, category, importance, text, and why it is not active."""
    state = "" if memory.state == "active" else f"  ({memory.state}{': ' + memory.reason if memory.reason else ''})"
    times = "" if memory.times == 1 else f"  ×{memory.times}"
    return Text.assemble(
        (f"{memory.id:>5}  ", "dim"),
        (f"[{memory.category.upper()}] ", _STYLES[memory.band.colour]),
        (harmless(memory.text), "" if memory.active else "dim"),
        (f"  {memory.importance}/10{times}{harmless(state)}", "dim"),
    )
