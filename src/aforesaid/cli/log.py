"""Commands on one user's log."""

from __future__ import annotations

import sys
from typing import Annotated, cast

import typer
from rich.text import Text

import aforesaid
from aforesaid.cli.options import ME, AsJson, Session, Space, Store, Thread, User, Within, moment, must_exist
from aforesaid.cli.show import complain, explained, harmless, hit_line, message_line, print_json, progress_bar, say
from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.domain.words import HitKind, Role
from aforesaid.domain.words import Within as WithinWord
from aforesaid.errors import InvalidInput, StoreError
from aforesaid.recall import USUAL_KINDS, Arms

_STDIN = "-"


def add(
    text: Annotated[str, typer.Argument(help="What was said; - reads it from standard input.")],
    store: Store = None,
    user: User = ME,
    role: Annotated[str, typer.Option("--role", "-r", help="user, assistant, system or tool.")] = "user",
    space: Space = DEFAULT_SPACE,
    thread: Thread = None,
    session: Session = None,
    at: Annotated[
        str | None, typer.Option("--at", help="When it was said, e.g. 2026-03-01T09:30. Default: now.")
    ] = None,
    message_id: Annotated[
        str | None, typer.Option("--id", help="The platform's id; a repeated id is stored once.")
    ] = None,
    author: Annotated[
        str | None, typer.Option("--author", help="Who said it, if not the user or the assistant.")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="The name that the author showed.")] = None,
    as_json: AsJson = False,
) -> None:
    """Store a message for good.

    It is on the disk when the command ends. Example:

        aforesaid add "I moved to Berlin last week." --user ann
    """
    said = _read_standard_input() if text == _STDIN else text
    with aforesaid.open(store) as memory:
        handle = memory.user(user, space=space, thread=thread, session=session)
        receipt = handle.add(cast("Role", role), said, at=moment(at), id=message_id, author=author, name=name)
    message = receipt.message
    if receipt.notices and not receipt.durable:
        # It was only in the memory of this process, which ends now.
        raise StoreError("the message could not be stored; nothing was kept. Look at: aforesaid status")
    for notice in receipt.notices:
        complain(notice)
    if as_json:
        print_json({"message": message, "durable": receipt.durable, "duplicate": receipt.duplicate})
        return
    done = "was stored before as" if receipt.duplicate else "stored as" if receipt.durable else "kept in memory only as"
    say(f"{done} {harmless(message.id)} in {harmless(message.thread)}, session {harmless(message.session)}")


def history(
    store: Store = None,
    user: User = ME,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many messages, the newest.")] = 50,
    before: Annotated[str | None, typer.Option("--before", help="Only messages before the one with this id.")] = None,
    archived: Annotated[bool, typer.Option(help="Also those that a summary stands for.")] = True,
    space: Space = DEFAULT_SPACE,
    thread: Thread = None,
    session: Session = None,
    within: Within = "user",
    as_json: AsJson = False,
) -> None:
    """Show what was said, oldest first.

    To read on, pass the id of the first message as --before. Example:

        aforesaid history --user ann --limit 20
    """
    must_exist(store)
    with aforesaid.open(store) as memory:
        handle = memory.user(user, space=space, thread=thread, session=session)
        messages = handle.history(limit, before=before, archived=archived, within=cast("WithinWord", within))
    if as_json:
        print_json(messages)
    elif not messages:
        say(f"nothing is stored for {harmless(user)} here")
    for message in () if as_json else messages:
        say(message_line(message))


def search(
    query: Annotated[str, typer.Argument(help="Words to look for. Anything can be typed; there is no query language.")],
    store: Store = None,
    user: User = ME,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many hits at most.")] = 10,
    space: Space = DEFAULT_SPACE,
    thread: Thread = None,
    session: Session = None,
    within: Within = "user",
    at: Annotated[
        str | None, typer.Option("--at", help="When the question is asked, for what 'last May' means.")
    ] = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kind", help="message, summary, memory or session; several times for several. [all but session]"
        ),
    ] = None,
    around: Annotated[int, typer.Option("--around", help="So many messages around each hit.")] = 0,
    arms: Annotated[str, typer.Option("--arms", help="all, keyword (words alone, fast) or dense (meaning).")] = "all",
    explain: Annotated[bool, typer.Option("--explain", help="Say why each was found.")] = False,
    as_json: AsJson = False,
) -> None:
    """Find messages, summaries and memories by their words and their meaning, best match first.

    Example:
        aforesaid search "berlin flat" --user ann
    """
    must_exist(store)
    with aforesaid.open(store, embedder="none" if arms == "keyword" else None) as memory:
        handle = memory.user(user, space=space, thread=thread, session=session)
        with progress_bar("upkeep", hidden=as_json) as progress:
            memory.upkeep(progress)
        hits = handle.search(
            query,
            limit,
            within=cast("WithinWord", within),
            at=moment(at),
            arms=cast("Arms", arms),
            kinds=cast("list[HitKind]", kinds) or USUAL_KINDS,
            around=around,
        )
    if as_json:
        print_json(hits)
    elif not hits:
        say("nothing found")
    for hit in () if as_json else hits:
        say(Text(f"{hit.score:6.2f}  ", style="yellow"), hit_line(hit))
        for message in hit.around:
            say("        ", message_line(message))
        if explain:
            say(explained(hit))


def _read_standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"standard input is not UTF-8 (byte {error.start})") from None
