"""`aforesaid key`: create, list and revoke a server's API keys."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.table import Column, Table
from rich.text import Text

from aforesaid.cli.options import AsJson, Store, must_exist, store_path
from aforesaid.cli.output import console, harmless, inform, local_time, print_json, say
from aforesaid.cli.serve import needs_server
from aforesaid.domain import checks
from aforesaid.domain.checks import counted
from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.errors import InvalidInput, NotFound, StoreDamaged, quoted
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
    """Create a key and print it. It is shown only once: its file has a hash. Running servers accept it immediately.

    Its id and its file are printed to standard error. Example:

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
    keys, path = _keys(store)
    same_name = [each.id for each in keys.all() if each.name == name]
    key, token = keys.add(name, role, space=space, user=user, expires_at=expires)
    inform(f"added the key {key.id} to {path}")
    if same_name:
        inform(f"there are other keys named {name} ({', '.join(same_name)}); to revoke one: aforesaid key remove ID")
    if (missing := _missing_store(store)) is not None:
        inform(f"there is no store at {missing} yet; check --store and AFORESAID_STORE")
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
    keys, path = _keys(store)
    if not path.exists():
        must_exist(store, "check --store and AFORESAID_STORE")
    used = _last_uses(path)
    found = [_shown(key) | {"last_used": used.get(key.id)} for key in keys.all()]
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
    keys, path = _keys(store)
    if not path.exists():
        raise NotFound(f"there are no keys in {path}; check --store")
    removed = keys.remove(key)
    if as_json:
        print_json(_shown(removed))
    else:
        say(f"revoked the key {harmless(removed.name)}")


def note_keys_left_behind(sources: Sequence[str | None], target: str | None) -> None:
    """Say on standard error which keys of a server were not copied with a store, and how to copy them.

    The first source that has keys counts. Clients that use them would be refused without a hint why.
    """
    from aforesaid.server.auth import Keys, copy_command, keys_path, shared_keys  # noqa: PLC0415 - for few commands

    settings = load_settings()
    found = [path for source in sources for path in (keys_path(settings, source), shared_keys(settings, source))]
    there = keys_path(settings, target)
    here = next((path for path in found if path is not None and path.exists()), None)
    if here is None or there is None or here.absolute() == there.absolute():
        return
    try:
        old, new = ({key.id for key in Keys(path).all()} for path in (here, there))
    except StoreDamaged as error:
        inform(str(error))
        return
    if old and not new:
        inform(f"the server's keys were not copied; to keep them, run: {copy_command(here, there)}")
    elif old - new:
        inform(f"{counted(len(old - new), 'key')} of {here} {'is' if len(old - new) == 1 else 'are'} not in {there}")


def note_keys_of(user: str, spaces: Collection[str] | None, store: str | None) -> None:
    """Say on standard error which keys are still valid for a user who was purged, in some spaces or (None) in all."""
    from aforesaid.server.auth import Keys, keys_path  # noqa: PLC0415 - for few commands

    path = keys_path(load_settings(), store)
    try:
        keys = () if path is None else Keys(path).all()
    except StoreDamaged as error:
        inform(str(error))
        return
    known = checks.identifier(user, "the user id")
    now = datetime.now(UTC)
    for key in keys:
        if key.user == known and (spaces is None or key.space in spaces) and not key.expired(now):
            inform(
                f"the API key {key.name} ({key.id}) is still valid for {user}: what it stores creates the user again; "
                f"to revoke it, run: aforesaid key remove {key.id}"
            )


def _keys(store: str | None) -> tuple[Keys, Path]:
    """Return the keys of a store, and the file that they are in."""
    needs_server()
    from aforesaid.server.auth import Keys, check_shared_keys, keys_path  # noqa: PLC0415 - an extra

    settings = load_settings()
    check_shared_keys(settings, store)
    path = keys_path(settings, store)
    if path is None:
        raise InvalidInput("a store in memory has no keys; pass a file with --store")
    return Keys(path), path


def _missing_store(store: str | None) -> Path | None:
    """Return the path of a store that does not exist."""
    path = store_path(store)
    return None if path is None or path.exists() else path


def _last_uses(path: Path) -> dict[str, str]:
    """Return when each key was last used, by its id."""
    from aforesaid.server.auth import KeyUse  # noqa: PLC0415 - an extra

    return {key: at.isoformat(timespec="seconds") for key, at in KeyUse(path).all().items()}


def _shown(key: Key) -> dict[str, str | None]:
    return {
        "id": key.id,
        "name": key.name,
        "role": key.role,
        "space": key.space,
        "user": key.user,
        "until": key.expires_at,
    }
