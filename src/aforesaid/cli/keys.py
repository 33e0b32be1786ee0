"""`aforesaid key`: who may use a server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from aforesaid.cli.options import AsJson, Store
from aforesaid.cli.serve import needs_server
from aforesaid.cli.show import console, harmless, print_json, say
from aforesaid.errors import InvalidInput
from aforesaid.settings import load_settings

if TYPE_CHECKING:
    from aforesaid.server.auth import Key, Keys

commands = typer.Typer(help="Make, list and take away the keys of a server.", no_args_is_help=True)


@commands.command("add")
def add_key(
    name: Annotated[str, typer.Argument(help="What the audit log calls whoever uses it.")],
    role: Annotated[str, typer.Option("--role", help="reader, app or admin.")] = "app",
    space: Annotated[str | None, typer.Option("--space", help="The one space it is for. Default: all.")] = None,
    user: Annotated[str | None, typer.Option("--user", "-u", help="The one user it is for, in that space.")] = None,
    days: Annotated[int | None, typer.Option("--days", min=1, max=36_500, help="It ends after so many days.")] = None,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Make a key and print it, this once: it is kept as a hash. A server that runs knows it at once.

    Example:
        aforesaid key add my-app --role app --space default
    """
    expires = None if days is None else datetime.now(UTC) + timedelta(days=days)
    key, token = _keys(store).add(name, role, space=space, user=user, expires_at=expires)
    if as_json:
        print_json({"id": key.id, "token": str.__str__(token)})
    else:
        say(str.__str__(token))


@commands.command("list")
def list_keys(store: Store = None, as_json: AsJson = False) -> None:
    """List the keys, without what makes them work.

    Example:
        aforesaid key list
    """
    found = _keys(store).all()
    if as_json:
        print_json([_shown(key) for key in found])
        return
    table = Table("id", "name", "role", "space", "user", "until")
    for key in found:
        table.add_row(*(Text(harmless(value or "-")) for value in _shown(key).values()))
    console().print(table)


@commands.command("remove")
def remove_key(
    key: Annotated[str, typer.Argument(help="Its id, as `aforesaid key list` shows it.")],
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Take a key away. Servers that run refuse it at once.

    Example:
        aforesaid key remove 1f2e3d4c
    """
    gone = _keys(store).remove(key)
    if as_json:
        print_json(_shown(gone))
    else:
        say(f"took away the key {harmless(gone.name)}")


def _keys(store: str | None) -> Keys:
    needs_server()
    from aforesaid.server.auth import Keys, keys_path  # noqa: PLC0415 - an extra

    path = keys_path(load_settings(), store)
    if path is None:
        raise InvalidInput("a store in memory has no keys of its own; name a file with --store")
    return Keys(path)


def _shown(key: Key) -> dict[str, str | None]:
    return {
        "id": key.id,
        "name": key.name,
        "role": key.role,
        "space": key.space,
        "user": key.user,
        "until": key.expires_at,
    }
