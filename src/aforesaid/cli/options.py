"""The options that several commands share."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from aforesaid.errors import InvalidInput
from aforesaid.settings import load_settings
from aforesaid.store import locate

Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        "-s",
        metavar="LOCATION",
        envvar="AFORESAID_STORE",
        help="A path, sqlite:PATH, json:PATH, files:PATH, postgresql://… or :memory:.",
    ),
]
User = Annotated[
    str, typer.Option("--user", "-u", envvar="AFORESAID_USER", help="Whose memory it is.", show_default=True)
]
Space = Annotated[str, typer.Option("--space", help="The outer wall: a workspace, a guild, a tenant.")]
Thread = Annotated[
    str | None, typer.Option("--thread", "-t", help="A channel or a conversation. Default: the direct chat.")
]
Session = Annotated[str | None, typer.Option("--session", help="A session by name.")]
Within = Annotated[str, typer.Option("--within", help="Where to look: user, thread or session.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]

ME = "me"


def must_exist(store: str | None, otherwise: str = "name another with --store, or add a message first") -> None:
    """Refuse to read a store that would only now be created: its name was probably mistyped."""
    path = locate(load_settings().store if store is None else store).path
    if path is not None and not path.expanduser().exists():
        raise InvalidInput(f"there is no store at {path} yet; {otherwise}")


def moment(text: str | None) -> datetime | None:
    """Read a moment as people type it in ISO form. Without a time zone, the local one is meant."""
    if text is None:
        return None
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(
            f"cannot read the time {text!r}; write it like 2026-03-01T09:30 or 2026-03-01T09:30+02:00"
        ) from None
    try:
        return read.astimezone() if read.tzinfo is None else read
    except (OverflowError, ValueError):
        raise InvalidInput(f"the time {text!r} lies outside the calendar") from None
