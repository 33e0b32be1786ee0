"""`aforesaid settings`: settings stored per space and per user."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

import aforesaid
from aforesaid.cli.options import AsJson, Space, Store, announce_new_folder, must_exist
from aforesaid.cli.output import complain, harmless, print_json, say
from aforesaid.domain.checks import SettingValue
from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.errors import InvalidInput
from aforesaid.profiles.effective import RUNTIME_SETTINGS


def settings(
    name: Annotated[
        str | None, typer.Argument(help="The setting to change. Default: print all.", show_default=False)
    ] = None,
    value: Annotated[str | None, typer.Argument(help="Its new value.", show_default=False)] = None,
    store: Store = None,
    user: Annotated[
        str | None,
        typer.Option(
            "--user", "-u", help="Change it for this user only. Default: all users of the space. Example: -u ann"
        ),
    ] = None,
    space: Space = DEFAULT_SPACE,
    reset: Annotated[
        bool, typer.Option("--reset", help="Remove the stored value, so that the profile's applies.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print or change settings that take effect immediately, for a space or for one user.

    Example:
        aforesaid settings short_term_memory_limit 5 --user ann
    """
    if name is None:
        must_exist(store)
    else:
        announce_new_folder(store)
    if name is not None and value is None and not reset:
        raise InvalidInput(f"a value for {name} is missing; pass one, or --reset")
    if reset and (name is None or value is not None):
        raise InvalidInput("--reset takes a setting's name and no value")
    with aforesaid.open(store, embedder="none") as memory:
        place = None if user is None else memory.user(user, space=space)
        if name is not None:
            new = None if value is None else _parsed(name, value)
            if place is None:
                memory.set(name, new, space=space)
            else:
                place.set(name, new)
        found = memory.settings(space) if place is None else place.settings()
    if value is not None and name is not None and name not in RUNTIME_SETTINGS:
        complain(f"{name} is stored, but Aforesaid has no setting of this name: only your own code reads it")
    if as_json:
        print_json(found)
    else:
        _show(found)


def _parsed(name: str, value: str) -> SettingValue:
    """Parse numbers and true/false as JSON; everything else is text and needs no quotes."""
    if name in RUNTIME_SETTINGS or value in {"true", "false"}:
        try:
            read = json.loads(value)
        except ValueError:
            return value
        return read if isinstance(read, bool | int | float) else value
    return value


def _show(found: dict[str, SettingValue]) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("setting", "value", "what it does"):
        table.add_column(column)
    for name, setting in RUNTIME_SETTINGS.items():
        stored = found.get(name)
        shown = Text("from the profile", style="dim") if stored is None else Text(harmless(json.dumps(stored)))
        table.add_row(name, shown, Text(setting.help, style="dim"))
    for name, stored in found.items():
        if name not in RUNTIME_SETTINGS:
            table.add_row(Text(harmless(name)), Text(harmless(json.dumps(stored))), Text("your own", style="dim"))
    say(table)
