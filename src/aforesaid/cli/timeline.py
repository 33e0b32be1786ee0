"""Commands for what happened in a user's life, and for the people around them."""

from __future__ import annotations

from datetime import tzinfo
from typing import Annotated

import typer
from rich.text import Text

import aforesaid
from aforesaid.cli.options import ME, AsJson, Space, Store, User, moment, must_exist, note_pending_work
from aforesaid.cli.output import harmless, print_json, say
from aforesaid.domain.checks import to_zone
from aforesaid.domain.memory import Event
from aforesaid.domain.scope import DEFAULT_SPACE

_KNOWN = 5
"""Memories printed for each person, unless one person is asked for."""


def timeline(
    query: Annotated[
        str | None,
        typer.Argument(help='A topic or a question. Default: everything. Example: "what happened in May?"'),
    ] = None,
    store: Store = None,
    user: User = ME,
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
    user: User = ME,
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
