"""`aforesaid key`: create, list and revoke a server's API keys."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.table import Column, Table
from rich.text import Text

from aforesaid.cli.options import AsJson, Store
from aforesaid.cli.output import console, harmless, local_time, print_json, say
from aforesaid.cli.serve import needs_server
from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.errors import InvalidInput, NotFound, quoted
from aforesaid.settings import load_settings

if TYPE_CHECKING:
    from aforesaid.server.auth import Key, Keys

_TIMES: Final = ("until", "last_used")

commands = typer.Typer(help="Create, list and revoke a server's API keys.", no_args_is_help=True)


@commands.command("add")
def add_key(
    name: Annotated[str, typer.Argument(help="The key's name, as the audit log shows it.")],
    role: Annotated[
        str, typer.Option("--role", help="What the key may do: reader (read), app (read and write) or admin.")
    ] = "app",
    space: Annotated[
        str | None,
        typer.Option("--space", help="Limit the key to this space. Default: all spaces. Example: --space default"),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option("--user", "-u", help="Limit the key to this user of --space. Default: all users. Example: -u ann"),
    ] = None,
    people: Annotated[
        str | None,
        typer.Option(
            "--people",
            help="How many people use the key. one: all requests are one person's, named by --user or else NAME. "
            "many: the proxy has no memory for requests that name no user. Default: many, or one with --user.",
        ),
    ] = None,
    days: Annotated[
        int | None,
        typer.Option(
            "--days", min=1, max=36_500, help="Days until the key expires. Default: never. Example: --days 90"
        ),
    ] = None,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Create a key and print it. It is shown only once: the store keeps a hash. Running servers accept it immediately.

    Example:
        aforesaid key add my-app --role app --space default
        aforesaid key add my-laptop --people one
    """
    if people not in {None, "one", "many"}:
        raise InvalidInput(f"--people must be one or many, not {quoted(people)}")
    if people == "many" and user is not None:
        raise InvalidInput("a key with --user is one person's; leave --user out, or use --people one")
    if people == "one":
        user, space = user or name, space or DEFAULT_SPACE
    expires = None if days is None else datetime.now(UTC) + timedelta(days=days)
    key, token = _keys(store).add(name, role, space=space, user=user, expires_at=expires)
    if as_json:
        print_json({"id": key.id, "token": str.__str__(token)})
    else:
        say(str.__str__(token))


@commands.command("list")
def list_keys(store: Store = None, as_json: AsJson = False) -> None:
    """List the keys, without their secrets, and when each was last used. A running server writes that once a minute.

    Example:
        aforesaid key list
    """
    keys = _keys(store).all()
    used = _last_uses(store)
    found = [_shown(key) | {"last_used": used.get(key.id)} for key in keys]
    if as_json:
        print_json(found)
        return
    titles = ("id", "name", "role", "space", "user", "until", "last used")
    table = Table(*(Column(title, overflow="fold") for title in titles))
    for key in found:
        times = {name: local_time(datetime.fromisoformat(at)) for name in _TIMES if (at := key[name])}
        table.add_row(*(Text(harmless(value or "-")) for value in (key | times).values()))
    console().print(table)


@commands.command("remove")
def remove_key(
    key: Annotated[str, typer.Argument(help="The key's id, from `aforesaid key list`.")],
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a key. Running servers reject it immediately.

    Example:
        aforesaid key remove 1f2e3d4c
    """
    removed = _keys(store, must_exist=True).remove(key)
    if as_json:
        print_json(_shown(removed))
    else:
        say(f"revoked the key {harmless(removed.name)}")


def _keys(store: str | None, *, must_exist: bool = False) -> Keys:
    needs_server()
    from aforesaid.server.auth import Keys, keys_path  # noqa: PLC0415 - an extra

    path = keys_path(load_settings(), store)
    if path is None:
        raise InvalidInput("a store in memory has no keys; pass a file with --store")
    if must_exist and not path.exists():
        raise NotFound(f"there are no keys in {path}; check --store")
    return Keys(path)


def _last_uses(store: str | None) -> dict[str, str]:
    """Return when each key was last used, by its id."""
    from aforesaid.server.auth import KeyUse, keys_path  # noqa: PLC0415 - an extra

    found = KeyUse(keys_path(load_settings(), store)).all()
    return {key: at.isoformat(timespec="seconds") for key, at in found.items()}


def _shown(key: Key) -> dict[str, str | None]:
    return {
        "id": key.id,
        "name": key.name,
        "role": key.role,
        "space": key.space,
        "user": key.user,
        "until": key.expires_at,
    }
