"""Options that several commands share."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from aforesaid.cli.output import inform
from aforesaid.errors import InvalidInput, NotFound, quoted
from aforesaid.settings import load_settings
from aforesaid.store import locate

if TYPE_CHECKING:
    from aforesaid import SyncMemory

T = TypeVar("T")

Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        "-s",
        metavar="LOCATION",
        envvar="AFORESAID_STORE",
        help="Where the memory is stored: a path, sqlite:PATH, json:PATH, files:PATH, postgresql://… or :memory:. "
        "Default: `store` in aforesaid.toml, or memory.db in the platform's data folder. Example: --store memory.db",
    ),
]
User = Annotated[
    str,
    typer.Option("--user", "-u", envvar="AFORESAID_USER", help="The user's id. Example: --user ann", show_default=True),
]
Space = Annotated[
    str, typer.Option("--space", help="The space (tenant) the user belongs to. Example: --space my-guild")
]
Thread = Annotated[
    str | None,
    typer.Option(
        "--thread", "-t", help="A channel that users share. Default: the user's direct chat. Example: --thread general"
    ),
]
Chat = Annotated[
    str | None,
    typer.Option(
        "--chat", help="One of the user's private chats, by its id. Default: the user's direct chat. Example: --chat c1"
    ),
]
Session = Annotated[
    str | None, typer.Option("--session", help="A session id. Default: the session is found by time. Example: s-3")
]
Within = Annotated[
    str, typer.Option("--within", help="What to read: the user's messages, the thread's, or the session's.")
]
Profile = Annotated[
    str | None,
    typer.Option(
        "--profile",
        "-p",
        help="A built-in profile, or the path of a profile file. Default: `profile` in aforesaid.toml, or default. "
        "Example: --profile archive",
    ),
]
OfRole = Annotated[
    str | None,
    typer.Option("--role", help="Only messages of this role: user, assistant, system or tool. Default: all."),
]
ByAuthor = Annotated[
    str | None, typer.Option("--author", help="Only messages that this id wrote. Default: all. Example: --author bob")
]
Since = Annotated[
    str | None,
    typer.Option("--since", help="Only messages said at this time or later. Default: all. Example: 2026-03-01"),
]
Until = Annotated[
    str | None, typer.Option("--until", help="Only messages said before this time. Default: all. Example: 2026-04-01")
]
WithMetadata = Annotated[
    str | None,
    typer.Option(
        "--metadata",
        metavar="JSON",
        help="Only messages whose metadata has these keys with equal values. Default: all. "
        """Example: --metadata '{"topic": "home"}'""",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text, for scripts.")]

ME = "me"


def must_exist(store: str | None, advice: str = "check --store and AFORESAID_STORE, or add a message first") -> None:
    """Refuse to read a store that does not exist: opening it would create it, and the name is probably mistyped."""
    path = store_path(store)
    if path is not None and not path.exists():
        raise InvalidInput(f"there is no store at {path}, and this command does not create one; {advice}")


def note_pending_work(memory: SyncMemory) -> None:
    """Say on standard error that messages wait for background work. A command that only reads does not do it."""
    health = memory.health()
    learned = dict(health.component("memories").facts).get("waiting", "0 users") == "0 users"
    if health.component("embedder").waiting or not learned:
        inform("new messages wait for background work (search by meaning, memories, summaries); run: aforesaid upkeep")


def announce_new_folder(store: str | None) -> None:
    """Say on standard error that a command which writes will create the folder of its store."""
    path = store_path(store)
    if path is not None and not path.parent.exists():
        inform(f"creating the folder {path.parent} for a new store")


def store_path(store: str | None) -> Path | None:
    """Return the file or folder of a store; None when it has none (PostgreSQL, :memory:)."""
    path = locate(load_settings().store if store is None else store).path
    return None if path is None else path.expanduser()


def by_id(call: Callable[[str], T], given: str) -> T:
    """Call a function with the id of a message; where there is none with the id 12, with `#12`. Raises NotFound."""
    try:
        return call(given)
    except NotFound as error:
        if given.isascii() and given.isdecimal():
            with suppress(NotFound):
                return call(f"#{given}")
        raise NotFound(f"{error}; `aforesaid history` shows the ids. In a shell, write '#2' in quotes, or 2") from None


def json_object(text: str | None, option: str) -> dict[str, Any] | None:
    """Read a JSON object that an option holds."""
    if text is None:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidInput(f"""{option} must be a JSON object, such as '{{"topic": "home"}}'""")
    return found


def moment(text: str | None) -> datetime | None:
    """Parse an ISO 8601 time. A time without a zone is in this machine's zone."""
    if text is None:
        return None
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(
            f"{quoted(text)} is not a time; write it like 2026-03-01T09:30 or 2026-03-01T09:30+02:00"
        ) from None
    try:
        return read.astimezone() if read.tzinfo is None else read
    except (OverflowError, ValueError):
        raise InvalidInput(f"the time {quoted(text)} is outside the calendar (years 1 to 9999)") from None
