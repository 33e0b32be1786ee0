"""Commands for batches of messages and for threads."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any, BinaryIO, cast

import typer
from rich.text import Text

import aforesaid
from aforesaid.cli.options import (
    ME,
    AsJson,
    ByAuthor,
    Chat,
    OfRole,
    Session,
    Since,
    Space,
    Store,
    Thread,
    Until,
    User,
    Within,
    WithMetadata,
    announce_new_folder,
    json_object,
    moment,
    must_exist,
)
from aforesaid.cli.output import complain, harmless, local_time, plain, print_json, progress_bar, say
from aforesaid.domain.checks import Role, counted, file_path
from aforesaid.domain.checks import Within as WithinWord
from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.errors import InvalidInput, StoreError

_STDIN = "-"


def add_many(
    file: Annotated[str, typer.Argument(help="A file of JSON lines, one message each; - reads standard input.")],
    store: Store = None,
    user: User = ME,
    space: Space = DEFAULT_SPACE,
    thread: Thread = None,
    chat: Chat = None,
    session: Session = None,
    as_json: AsJson = False,
) -> None:
    """Store many messages at once: all of them, or none.

    Each line is a JSON object with `role` and `text`, and optionally `at`, `id`, `author`, `name`, `metadata` and the
    other fields of a message. Messages that were stored before are recognised. At most 100,000 lines. Example:

        aforesaid add-many messages.jsonl --user ann
    """
    announce_new_folder(store)
    with aforesaid.open(store) as memory, progress_bar("storing", hidden=as_json) as progress:
        handle = memory.user(user, space=space, thread=thread, chat=chat, session=session)
        receipt = handle.add_many(_lines(file), progress=progress)
    if receipt.notices and not receipt.durable:
        raise StoreError("the messages could not be stored and are lost with this process; run: aforesaid status")
    for notice in receipt.notices:
        complain(notice)
    if as_json:
        ids = [message.id for message in receipt.messages]
        done = {"ids": ids, "durable": receipt.durable, "stored": receipt.stored, "duplicates": receipt.duplicates}
        print_json(done)
        return
    known = f"; {receipt.duplicates:,} were stored before" if receipt.duplicates else ""
    say(f"stored {counted(receipt.stored, 'message')}{known}")


def threads(
    store: Store = None,
    user: User = ME,
    limit: Annotated[int, typer.Option("--limit", "-n", help="Maximum number of threads. Example: -n 20")] = 50,
    before: Annotated[
        str | None,
        typer.Option("--before", help="The id of the last thread of the page before. Default: the first page."),
    ] = None,
    space: Space = DEFAULT_SPACE,
    as_json: AsJson = False,
) -> None:
    """List the threads that a user has messages in, the one with the newest message first.

    Example:
        aforesaid threads --user ann
    """
    must_exist(store)
    with aforesaid.open(store) as memory:
        found = memory.user(user, space=space).threads(limit, before=before)
    if as_json:
        print_json([{**plain(each), "chat": each.chat} for each in found])
    elif not found:
        say(f"there are no messages for {harmless(user)}")
    for each in () if as_json else found:
        say(
            Text(f"{local_time(each.last_at)}  ", style="dim"),
            Text(harmless(each.id if each.chat is None else f"chat {each.chat}"), style="cyan"),
            f"  {counted(each.messages, 'message')}: {harmless(each.last_text)}",
        )


def count(
    store: Store = None,
    user: User = ME,
    space: Space = DEFAULT_SPACE,
    thread: Thread = None,
    chat: Chat = None,
    session: Session = None,
    within: Within = "user",
    archived: Annotated[
        bool, typer.Option(help="Include archived messages, which a summary replaces in contexts.")
    ] = True,
    role: OfRole = None,
    author: ByAuthor = None,
    since: Since = None,
    until: Until = None,
    metadata: WithMetadata = None,
    as_json: AsJson = False,
) -> None:
    """Print the number of messages.

    Example:
        aforesaid count --user ann --role user --since 2026-03-01
    """
    must_exist(store)
    with aforesaid.open(store) as memory:
        found = memory.user(user, space=space, thread=thread, chat=chat, session=session).count(
            within=cast("WithinWord", within),
            archived=archived,
            role=cast("Role | None", role),
            author=author,
            since=moment(since),
            until=moment(until),
            metadata=json_object(metadata, "--metadata"),
        )
    if as_json:
        print_json({"count": found})
    else:
        say(str(found))


def _lines(file: str) -> Iterator[dict[str, Any]]:
    """Read the messages of a file, line by line."""
    opened: AbstractContextManager[BinaryIO]
    if file == _STDIN:
        opened = nullcontext(sys.stdin.buffer)
    else:
        path = file_path(file, "the path").expanduser()
        if not path.is_file():
            raise InvalidInput(f"there is no file {path}")
        opened = path.open("rb")
    with opened as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield _message(line, f"line {number} of {'standard input' if file == _STDIN else file}")


def _message(line: bytes, where: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidInput(f"{where} is not a JSON object")
    if isinstance(at := found.get("at"), str):
        try:
            found["at"] = moment(at)
        except InvalidInput as error:
            raise InvalidInput(f"{where}: {error}") from None
    return found
