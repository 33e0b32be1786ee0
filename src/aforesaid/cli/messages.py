"""Commands that store, read and change messages and threads."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from mimetypes import guess_type
from pathlib import Path
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
    UserOption,
    Within,
    WithMetadata,
    announce_new_folder,
    by_id,
    complain,
    explained,
    harmless,
    hit_line,
    json_object,
    local_time,
    message_line,
    moment,
    must_exist,
    note_pending_work,
    plain,
    print_json,
    progress_bar,
    say,
    unknown_user,
)
from aforesaid.domain.checks import HitKind, Role, counted, file_path
from aforesaid.domain.checks import Within as WithinWord
from aforesaid.domain.details import Part
from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.errors import InvalidInput, StoreError
from aforesaid.recall import DEFAULT_KINDS, Arms

_STDIN = "-"


def add(
    text: Annotated[
        str, typer.Argument(help="The text; - reads it from standard input. Default: none, if a file is attached.")
    ] = "",
    store: Store = None,
    user: UserOption = ME,
    role: Annotated[str, typer.Option("--role", "-r", help="Who speaks: user, assistant, system or tool.")] = "user",
    space: Space = DEFAULT_SPACE,
    thread: Thread = None,
    chat: Chat = None,
    session: Session = None,
    at: Annotated[
        str | None, typer.Option("--at", help="When it was said. Default: now. Example: 2026-03-01T09:30")
    ] = None,
    message_id: Annotated[
        str | None,
        typer.Option("--id", help="The platform's message id: the same id is stored once. Default: a new id."),
    ] = None,
    author: Annotated[
        str | None,
        typer.Option("--author", help="The author's id. Default: the user, or the assistant, by role. Example: bob"),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="The author's display name. Default: none. Example: --name Ann")
    ] = None,
    metadata: Annotated[
        str | None,
        typer.Option(
            "--metadata",
            metavar="JSON",
            help="""What else to store with it. Default: nothing. Example: --metadata '{"topic": "home"}'""",
        ),
    ] = None,
    reply_to: Annotated[
        str | None, typer.Option("--reply-to", help="The id of the message that it replies to. Default: none.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--kind", help="The platform's kind of message. Default: none. Example: --kind voice")
    ] = None,
    language: Annotated[
        str | None, typer.Option("--language", help="Its language. Default: none. Example: --language en")
    ] = None,
    attach: Annotated[
        list[Path] | None,
        typer.Option(
            "--attach",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Store a file with it; repeatable. Default: none. Example: --attach cat.png",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Store a message.

    It is on disk when the command returns. Example:

        aforesaid add "I moved to Berlin last week." --user ann
    """
    announce_new_folder(store)
    said = _read_standard_input() if text == _STDIN else text
    with aforesaid.open(store) as memory:
        handle = memory.user(user, space=space, thread=thread, chat=chat, session=session)
        receipt = handle.add(
            cast("Role", role),
            said,
            at=moment(at),
            id=message_id,
            author=author,
            name=name,
            metadata=json_object(metadata, "--metadata"),
            reply_to=reply_to,
            kind=kind,
            language=language,
            parts=[Part.of(file.read_bytes(), guess_type(file.name)[0], name=file.name) for file in attach or ()],
        )
    message = receipt.message
    if receipt.notices and not receipt.durable:
        # The message is only in the memory of this process, which ends now.
        raise StoreError("the message could not be stored and is lost with this process; run: aforesaid status")
    for notice in receipt.notices:
        complain(notice)
    if as_json:
        print_json({"message": message, "durable": receipt.durable, "duplicate": receipt.duplicate})
        return
    done = "already stored as" if receipt.duplicate else "stored as" if receipt.durable else "kept in memory only as"
    say(f"{done} {harmless(message.id)} in {harmless(message.thread)}, session {harmless(message.session)}")


def attachment(
    name: Annotated[str, typer.Argument(metavar="HASH", help="The hash of the part; `history --json` shows it.")],
    store: Store = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The file to write. Default: standard output."),
    ] = None,
) -> None:
    """Write the bytes of an attachment to a file or to standard output.

    A file that exists is not replaced. Example:

        aforesaid attachment 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 -o cat.png
    """
    must_exist(store)
    with aforesaid.open(store) as memory:
        data = memory.attachment(name)
    if output is None:
        sys.stdout.buffer.write(data)
        return
    try:
        with output.open("xb") as file:
            file.write(data)
    except OSError as error:
        raise InvalidInput(f"the file {output} could not be written: {error.strerror}") from None


def history(
    store: Store = None,
    user: UserOption = ME,
    limit: Annotated[
        int, typer.Option("--limit", "-n", help="Maximum number of messages, newest first chosen. Example: -n 20")
    ] = 50,
    before: Annotated[
        str | None,
        typer.Option("--before", help="Only messages before the one with this id. Default: up to the newest."),
    ] = None,
    archived: Annotated[
        bool, typer.Option(help="Include archived messages, which a summary replaces in contexts.")
    ] = True,
    space: Space = DEFAULT_SPACE,
    thread: Thread = None,
    chat: Chat = None,
    session: Session = None,
    within: Within = "user",
    role: OfRole = None,
    author: ByAuthor = None,
    since: Since = None,
    until: Until = None,
    metadata: WithMetadata = None,
    as_json: AsJson = False,
) -> None:
    """Print messages with their ids, oldest first.

    To page back, pass the id of the first message as --before. Example:

        aforesaid history --user ann --limit 20
    """
    must_exist(store)
    with aforesaid.open(store) as memory:
        handle = memory.user(user, space=space, thread=thread, chat=chat, session=session)
        read = partial(
            handle.history,
            limit,
            archived=archived,
            within=cast("WithinWord", within),
            role=cast("Role | None", role),
            author=author,
            since=moment(since),
            until=moment(until),
            metadata=json_object(metadata, "--metadata"),
        )
        messages = read() if before is None else by_id(lambda known: read(before=known), before)
        unknown = None if messages or as_json else unknown_user(memory, user, space)
    if as_json:
        print_json(messages)
    elif not messages:
        say(harmless(unknown or f"there are no messages for {user}"))
    width = max((len(harmless(message.id)) for message in messages), default=0)
    for message in () if as_json else messages:
        say(message_line(message, id_width=width))


def search(
    query: Annotated[str, typer.Argument(help="The question or words to search for. There is no query syntax.")],
    store: Store = None,
    user: UserOption = ME,
    limit: Annotated[int, typer.Option("--limit", "-n", help="Maximum number of hits. Example: -n 5")] = 10,
    space: Space = DEFAULT_SPACE,
    thread: Thread = None,
    chat: Chat = None,
    session: Session = None,
    within: Within = "user",
    at: Annotated[
        str | None,
        typer.Option("--at", help="The time of the question, to resolve 'last May'. Default: now. Example: 2026-03-01"),
    ] = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            help="What to find: message, summary, memory or session; repeatable. Default: all but session.",
        ),
    ] = None,
    around: Annotated[
        int, typer.Option("--around", help="Neighbouring messages to print with each hit. Example: --around 3")
    ] = 0,
    arms: Annotated[
        str, typer.Option("--arms", help="How to search: keyword (words only, fast), dense (meaning only) or all.")
    ] = "all",
    min_score: Annotated[
        float | None,
        typer.Option(
            "--min-score",
            help="Lowest score to print, 0 to 1; 0 prints all hits. Default: 0.25 for words, 0.04 for questions; what "
            "has all words of the query is printed with any score.",
        ),
    ] = None,
    role: OfRole = None,
    author: ByAuthor = None,
    since: Since = None,
    until: Until = None,
    metadata: WithMetadata = None,
    explain: Annotated[bool, typer.Option("--explain", help="Print why each hit was found.")] = False,
    as_json: AsJson = False,
) -> None:
    """Search messages, summaries and memories by words and meaning, best match first.

    New messages are found by their words at once, and by their meaning after background work: a program that has the
    store open does it by itself, and so does `aforesaid upkeep`.

    Example:
        aforesaid search "berlin flat" --user ann
    """
    must_exist(store)
    with aforesaid.open(store, embedder="none" if arms == "keyword" else None) as memory:
        note_pending_work(memory)
        handle = memory.user(user, space=space, thread=thread, chat=chat, session=session)
        hits = handle.search(
            query,
            limit,
            within=cast("WithinWord", within),
            at=moment(at),
            arms=cast("Arms", arms),
            kinds=cast("list[HitKind]", kinds) or DEFAULT_KINDS,
            around=around,
            min_score=min_score,
            role=cast("Role | None", role),
            author=author,
            since=moment(since),
            until=moment(until),
            metadata=json_object(metadata, "--metadata"),
        )
        unknown = None if hits or as_json else unknown_user(memory, user, space)
    if as_json:
        print_json(hits)
    elif not hits:
        cut = arms == "all" and min_score is None
        nothing = "nothing found; --min-score 0 shows weak matches too" if cut else "nothing found"
        say(harmless(unknown or nothing))
    for hit in () if as_json else hits:
        say(Text(f"{hit.score:6.2f}  ", style="yellow"), hit_line(hit, with_id=True))
        for message in hit.around:
            say("        ", message_line(message, id_width=1))
        if explain:
            say(explained(hit))


def _read_standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"standard input is not UTF-8: invalid byte at position {error.start}") from None


MessageId = Annotated[
    str, typer.Argument(metavar="ID", help="The id of the message, as `aforesaid history` shows it. Example: 12")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation. Default: ask.")]


def edit(
    message: MessageId,
    text: Annotated[str | None, typer.Argument(help="The new text. Default: the old one.")] = None,
    store: Store = None,
    user: UserOption = ME,
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
    user: UserOption = ME,
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
    user: UserOption = ME,
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
    user: UserOption = ME,
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


def add_many(
    file: Annotated[str, typer.Argument(help="A file of JSON lines, one message each; - reads standard input.")],
    store: Store = None,
    user: UserOption = ME,
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
    user: UserOption = ME,
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
    user: UserOption = ME,
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
