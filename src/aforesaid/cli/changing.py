"""Commands that change messages: edit, take back, erase, clear."""

from __future__ import annotations

from typing import Annotated

import typer

import aforesaid
from aforesaid.cli.options import ME, AsJson, Chat, Space, Store, Thread, User, by_id, json_object, must_exist
from aforesaid.cli.output import harmless, message_line, print_json, say
from aforesaid.domain.checks import counted
from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.errors import InvalidInput

MessageId = Annotated[
    str, typer.Argument(metavar="ID", help="The id of the message, as `aforesaid history` shows it. Example: 12")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation. Default: ask.")]


def edit(
    message: MessageId,
    text: Annotated[str | None, typer.Argument(help="The new text. Default: the old one.")] = None,
    store: Store = None,
    user: User = ME,
    space: Space = DEFAULT_SPACE,
    thread: Thread = None,
    chat: Chat = None,
    metadata: Annotated[
        str | None,
        typer.Option(
            "--metadata",
            metavar="JSON",
            help="""The new metadata. Default: the old one. Example: --metadata '{"topic": "home"}'""",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Store a new version of a message; the old one is kept in the log.

    Example:
        aforesaid edit 12 "I moved to Hamburg." --user ann
    """
    must_exist(store)
    if text is None and metadata is None:
        raise InvalidInput("nothing to change; pass a text or --metadata")
    with aforesaid.open(store) as memory:
        handle = memory.user(user, space=space, thread=thread, chat=chat)
        changed = json_object(metadata, "--metadata")
        receipt = by_id(lambda known: handle.edit(known, text, metadata=changed), message)
    if as_json:
        print_json(receipt.message)
    else:
        say(f"stored as {harmless(receipt.message.id)}: ", message_line(receipt.message))


def take_back(
    message: MessageId,
    store: Store = None,
    user: User = ME,
    space: Space = DEFAULT_SPACE,
    thread: Thread = None,
    chat: Chat = None,
    as_json: AsJson = False,
) -> None:
    """Take a message back: it is not found, shown or used any more. Its versions stay in the log.

    Example:
        aforesaid take-back 12 --user ann
    """
    must_exist(store)
    with aforesaid.open(store) as memory:
        receipt = by_id(memory.user(user, space=space, thread=thread, chat=chat).take_back, message)
    if as_json:
        print_json({"taken_back": message, "before": receipt.duplicate})
    else:
        say(f"{harmless(message)} {'was taken back before' if receipt.duplicate else 'is taken back'}")


def erase(
    messages: Annotated[
        list[str],
        typer.Argument(metavar="ID...", help="The ids of the messages, as `aforesaid history` shows them. Example: 12"),
    ],
    store: Store = None,
    user: User = ME,
    space: Space = DEFAULT_SPACE,
    thread: Thread = None,
    chat: Chat = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Erase messages and all that was made from them, so that no byte of them is left in the store.

    This cannot be undone. Example:

        aforesaid erase 12 13 --user ann
    """
    must_exist(store)
    _confirm(f"erase {counted(len(messages), 'message')} for good?", yes=yes)
    with aforesaid.open(store) as memory:
        handle = memory.user(user, space=space, thread=thread, chat=chat)
        done = handle.erase([by_id(lambda known: handle.message(known, versions=True), each).id for each in messages])
    if as_json:
        print_json(done)
    else:
        say(f"erased {done.counts}")


def clear(
    store: Store = None,
    user: User = ME,
    space: Space = DEFAULT_SPACE,
    thread: Thread = None,
    chat: Chat = None,
    erase_them: Annotated[
        bool, typer.Option("--erase", help="Erase the messages for good. Default: take them back.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Take back, or erase, all messages that a user has in a thread.

    Example:
        aforesaid clear --user ann --thread general
    """
    must_exist(store)
    with aforesaid.open(store) as memory:
        handle = memory.user(user, space=space, thread=thread, chat=chat)
        where = harmless(handle.scope.thread)
        _confirm(f"{'erase' if erase_them else 'take back'} all messages of {harmless(user)} in {where}?", yes=yes)
        count = handle.clear(erase=erase_them)
    if as_json:
        print_json({"count": count})
    else:
        say(f"{'erased' if erase_them else 'took back'} {counted(count, 'message')} in {where}")


def _confirm(question: str, *, yes: bool) -> None:
    if not yes and not typer.confirm(question, err=True):
        raise typer.Exit(1)
