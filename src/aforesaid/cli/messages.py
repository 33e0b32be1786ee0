"""Commands that store, read and change messages and threads."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from mimetypes import guess_type
from pathlib import Path
from typing import Annotated, Any, BinaryIO, cast

import typer
from rich.table import Table
from rich.text import Text
from typer import Argument, Option

import aforesaid
from aforesaid.cli.options import (
    Archived,
    Filters,
    Person,
    PersonInChat,
    PersonInSession,
    Store,
    Within,
    Yes,
    by_id,
    command,
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
    unknown_user,
)
from aforesaid.domain import checks
from aforesaid.domain.checks import HitKind, Role, counted, file_path
from aforesaid.domain.checks import Within as WithinWord
from aforesaid.domain.details import Part
from aforesaid.errors import InvalidInput, StoreError
from aforesaid.recall import DEFAULT_KINDS, Arms

_STDIN = "-"


@command
def add(
    *,
    text: Annotated[
        str, Argument(help="The text; - reads it from standard input. Default: none, if a file is attached.")
    ] = "",
    role: Annotated[str, Option("--role", "-r", help="Who speaks: user, assistant, system or tool.")] = "user",
    place: PersonInSession,
    at: Annotated[str | None, Option(help="When it was said. Default: now. Example: 2026-03-01T09:30")] = None,
    message_id: Annotated[
        str | None, Option("--id", help="The platform's message id: the same id is stored once. Default: a new id.")
    ] = None,
    author: Annotated[
        str | None, Option(help="The author's id. Default: the user, or the assistant, by role. Example: bob")
    ] = None,
    name: Annotated[str | None, Option(help="The author's display name. Default: none. Example: --name Ann")] = None,
    metadata: Annotated[
        str | None,
        Option(
            metavar="JSON",
            help="""What else to store with it. Default: nothing. Example: --metadata '{"topic": "home"}'""",
        ),
    ] = None,
    reply_to: Annotated[str | None, Option(help="The id of the message that it replies to. Default: none.")] = None,
    kind: Annotated[
        str | None, Option(help="The platform's kind of message. Default: none. Example: --kind voice")
    ] = None,
    language: Annotated[str | None, Option(help="Its language. Default: none. Example: --language en")] = None,
    attach: Annotated[
        list[Path] | None,
        Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Store a file with it; repeatable. Default: none. Example: --attach cat.png",
        ),
    ] = None,
) -> None:
    """Store a message.

    It is on disk when the command returns. Example:

        aforesaid add "I moved to Berlin last week." --user ann
    """
    if text == _STDIN:
        try:
            text = sys.stdin.buffer.read().decode().removesuffix("\n")
        except UnicodeDecodeError as error:
            raise InvalidInput(f"standard input is not UTF-8: invalid byte at position {error.start}") from None
    with place.write() as memory:
        receipt = place.of(memory).add(
            cast("Role", role),
            text,
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
    done = "already stored as" if receipt.duplicate else "stored as" if receipt.durable else "kept in memory only as"
    place.show(
        {"message": message, "durable": receipt.durable, "duplicate": receipt.duplicate},
        [f"{done} {harmless(message.id)} in {harmless(message.thread)}, session {harmless(message.session)}"],
    )


def attachment(
    name: Annotated[str, Argument(metavar="HASH", help="The hash of the part; `history --json` shows it.")],
    store: Store = None,
    output: Annotated[
        Path | None, Option("--output", "-o", metavar="FILE", help="The file to write. Default: standard output.")
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


@command
def history(
    *,
    limit: Annotated[
        int, Option("--limit", "-n", help="Maximum number of messages, newest first chosen. Example: -n 20")
    ] = 50,
    before: Annotated[
        str | None, Option(help="Only messages before the one with this id. Default: up to the newest.")
    ] = None,
    archived: Archived = True,
    place: PersonInSession,
    within: Within = "user",
    filters: Filters,
) -> None:
    """Print messages with their ids, oldest first.

    To page back, pass the id of the first message as --before. Example:

        aforesaid history --user ann --limit 20
    """
    with place.read() as memory:
        read = partial(
            place.of(memory).history,
            limit,
            archived=archived,
            within=cast("WithinWord", within),
            **filters.arguments(),
        )
        messages = read() if before is None else by_id(lambda known: read(before=known), before)
        unknown = None if messages or place.as_json else unknown_user(memory, place.user, place.space)
    width = max((len(harmless(message.id)) for message in messages), default=0)
    lines = [message_line(message, id_width=width) for message in messages]
    place.show(messages, lines or [harmless(unknown or f"there are no messages for {place.user}")])


@command
def search(
    query: Annotated[str, Argument(help="The question or words to search for. There is no query syntax.")],
    *,
    limit: Annotated[int, Option("--limit", "-n", help="Maximum number of hits. Example: -n 5")] = 10,
    place: PersonInSession,
    within: Within = "user",
    at: Annotated[
        str | None, Option(help="The time of the question, to resolve 'last May'. Default: now. Example: 2026-03-01")
    ] = None,
    kinds: Annotated[
        list[str] | None,
        Option(
            "--kind", help="What to find: message, summary, memory or session; repeatable. Default: all but session."
        ),
    ] = None,
    around: Annotated[int, Option(help="Neighbouring messages to print with each hit. Example: --around 3")] = 0,
    arms: Annotated[
        str, Option(help="How to search: keyword (words only, fast), dense (meaning only) or all.")
    ] = "all",
    min_score: Annotated[
        float | None,
        Option(
            help="Lowest score to print, 0 to 1; 0 prints all hits. Default: 0.25 for words, 0.04 for questions; what "
            "has all words of the query is printed with any score."
        ),
    ] = None,
    filters: Filters,
    explain: Annotated[bool, Option("--explain", help="Print why each hit was found.")] = False,
) -> None:
    """Search messages, summaries and memories by words and meaning, best match first.

    New messages are found by their words at once, and by their meaning after background work: a program that has the
    store open does it by itself, and so does `aforesaid upkeep`.

    Example:
        aforesaid search "berlin flat" --user ann
    """
    with place.read(embedder="none" if arms == "keyword" else None) as memory:
        note_pending_work(memory)
        hits = place.of(memory).search(
            query,
            limit,
            within=cast("WithinWord", within),
            at=moment(at),
            arms=cast("Arms", arms),
            kinds=cast("list[HitKind]", kinds) or DEFAULT_KINDS,
            around=around,
            min_score=min_score,
            **filters.arguments(),
        )
        unknown = None if hits or place.as_json else unknown_user(memory, place.user, place.space)
    cut = arms == "all" and min_score is None
    nothing = "nothing found; --min-score 0 shows weak matches too" if cut else "nothing found"
    lines: list[Text | Table] = [] if hits else [Text(harmless(unknown or nothing))]
    for hit in hits:
        lines.append(Text.assemble((f"{hit.score:6.2f}  ", "yellow"), hit_line(hit, with_id=True)))
        lines += [Text.assemble("        ", message_line(message, id_width=1)) for message in hit.around]
        if explain:
            lines.append(explained(hit))
    place.show(hits, lines)


MessageId = Annotated[
    str, Argument(metavar="ID", help="The id of the message, as `aforesaid history` shows it. Example: 12")
]


@command
def edit(
    message: MessageId,
    *,
    text: Annotated[str | None, Argument(help="The new text. Default: the old one.")] = None,
    place: PersonInChat,
    metadata: Annotated[
        str | None,
        Option(
            metavar="JSON", help="""The new metadata. Default: the old one. Example: --metadata '{"topic": "home"}'"""
        ),
    ] = None,
) -> None:
    """Store a new version of a message; the old one is kept in the log.

    Example:
        aforesaid edit 12 "I moved to Hamburg." --user ann
    """
    if text is None and metadata is None:
        must_exist(place.store)
        raise InvalidInput("nothing to change; pass a text or --metadata")
    with place.read() as memory:
        changed = json_object(metadata, "--metadata")
        receipt = by_id(lambda known: place.of(memory).edit(known, text, metadata=changed), message)
    stored = f"stored as {harmless(receipt.message.id)}: "
    place.show(receipt.message, [Text.assemble(stored, message_line(receipt.message))])


@command
def take_back(
    message: MessageId,
    place: PersonInChat,
) -> None:
    """Take a message back: it is not found, shown or used any more. Its versions stay in the log.

    Example:
        aforesaid take-back 12 --user ann
    """
    with place.read() as memory:
        receipt = by_id(place.of(memory).take_back, message)
    done = f"{harmless(message)} {'was taken back before' if receipt.duplicate else 'is taken back'}"
    place.show({"taken_back": message, "before": receipt.duplicate}, [done])


@command
def erase(
    messages: Annotated[
        list[str],
        Argument(metavar="ID...", help="The ids of the messages, as `aforesaid history` shows them. Example: 12"),
    ],
    place: PersonInChat,
    yes: Yes = False,
) -> None:
    """Erase messages and all that was made from them, so that no byte of them is left in the store.

    This cannot be undone. Example:

        aforesaid erase 12 13 --user ann
    """
    must_exist(place.store)
    _confirm(f"erase {counted(len(messages), 'message')} for good?", yes=yes)
    with place.read() as memory:
        user = place.of(memory)
        done = user.erase([by_id(lambda known: user.message(known, versions=True), each).id for each in messages])
    place.show(done, [f"erased {done.counts}"])


@command
def clear(
    place: PersonInChat,
    *,
    erase_them: Annotated[
        bool, Option("--erase", help="Erase the messages for good. Default: take them back.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Take back, or erase, all messages that a user has in a thread.

    Example:
        aforesaid clear --user ann --thread general
    """
    with place.read() as memory:
        user = place.of(memory)
        where, whose = harmless(user.scope.thread), harmless(place.user)
        _confirm(f"{'erase' if erase_them else 'take back'} all messages of {whose} in {where}?", yes=yes)
        count = user.clear(erase=erase_them)
    done = f"{'erased' if erase_them else 'took back'} {counted(count, 'message')} in {where}"
    place.show({"count": count}, [done])


def _confirm(question: str, *, yes: bool) -> None:
    if not yes and not typer.confirm(question, err=True):
        raise typer.Exit(1)


@command
def add_many(
    file: Annotated[str, Argument(help="A file of JSON lines, one message each; - reads standard input.")],
    place: PersonInSession,
) -> None:
    """Store many messages at once: all of them, or none.

    Each line is a JSON object with `role` and `text`, and optionally `at`, `id`, `author`, `name`, `metadata` and the
    other fields of a message. Messages that were stored before are recognised. At most 100,000 lines. Example:

        aforesaid add-many messages.jsonl --user ann
    """
    with place.write() as memory, place.progress("storing") as progress:
        receipt = place.of(memory).add_many(_lines(file), progress=progress)
    if receipt.notices and not receipt.durable:
        raise StoreError("the messages could not be stored and are lost with this process; run: aforesaid status")
    for notice in receipt.notices:
        complain(notice)
    ids = [message.id for message in receipt.messages]
    done = {"ids": ids, "durable": receipt.durable, "stored": receipt.stored, "duplicates": receipt.duplicates}
    known = f"; {receipt.duplicates:,} were stored before" if receipt.duplicates else ""
    place.show(done, [f"stored {counted(receipt.stored, 'message')}{known}"])


@command
def threads(
    *,
    limit: Annotated[int, Option("--limit", "-n", help="Maximum number of threads. Example: -n 20")] = 50,
    before: Annotated[
        str | None, Option(help="The id of the last thread of the page before. Default: the first page.")
    ] = None,
    place: Person,
) -> None:
    """List the threads that a user has messages in, the one with the newest message first.

    Example:
        aforesaid threads --user ann
    """
    with place.read() as memory:
        found = place.of(memory).threads(limit, before=before)
    lines = [
        Text.assemble(
            (f"{local_time(each.last_at)}  ", "dim"),
            (harmless(each.id if each.chat is None else f"chat {each.chat}"), "cyan"),
            f"  {counted(each.messages, 'message')}: {harmless(each.last_text)}",
        )
        for each in found
    ]
    values = [{**plain(each), "chat": each.chat} for each in found]
    place.show(values, lines or [f"there are no messages for {harmless(place.user)}"])


@command
def count(
    place: PersonInSession,
    *,
    within: Within = "user",
    archived: Archived = True,
    filters: Filters,
) -> None:
    """Print the number of messages.

    Example:
        aforesaid count --user ann --role user --since 2026-03-01
    """
    with place.read() as memory:
        read = place.of(memory).count
        found = read(within=cast("WithinWord", within), archived=archived, **filters.arguments())
    place.show({"count": found}, [str(found)])


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
            if not line.strip():
                continue
            where = f"line {number} of {'standard input' if file == _STDIN else file}"
            if (found := checks.json_object(line)) is None:
                raise InvalidInput(f"{where} is not a JSON object")
            if isinstance(at := found.get("at"), str):
                try:
                    found["at"] = moment(at)
                except InvalidInput as error:
                    raise InvalidInput(f"{where}: {error}") from None
            yield found
