"""Commands that export, import, migrate and delete data."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated, cast

import typer
from rich.table import Column, Table
from rich.text import Text
from typer import Argument, Option

import aforesaid
from aforesaid.cli.config import note_keys_left_behind, note_keys_of
from aforesaid.cli.options import (
    AsJson,
    Space,
    Stored,
    Yes,
    announce_new_folder,
    command,
    console,
    data_of,
    harmless,
    inform,
    must_exist,
    must_know,
    print_json,
    progress_bar,
    say,
    store_path,
)
from aforesaid.domain.checks import ExportFormat, counted
from aforesaid.domain.report import User
from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.domain.transfer import Purged
from aforesaid.errors import InvalidInput
from aforesaid.portability import READERS, AttachmentCopy, Loaded, Migrated, list_counts, migrate
from aforesaid.settings import load_settings
from aforesaid.store import Progress, locate, open_store
from aforesaid.store.locations import MEMORY, attachments_of

_STREAM = "-"
_USERS_SHOWN = 20
"""Maximum users listed after an import."""
_MISSING_SHOWN = 20
"""Maximum attachments listed that are missing."""
_NOT_COUNTED = frozenset({"session", "user"})
"""Kinds of rows that a store creates with their messages, so an import does not count how many are new."""

SpaceOfUser = Annotated[
    str | None, Option(help=f"The space of the user. Default: {DEFAULT_SPACE}. Example: --space my-guild")
]


@command
def export(
    target: Annotated[
        str, Argument(help="The new file; .md writes a copy to read, .gz compresses it, - writes to standard output.")
    ],
    place: Stored,
    *,
    user: Annotated[
        str | None,
        Option("--user", "-u", help="Export the data of this user only. Default: everything. Example: -u ann"),
    ] = None,
    space: SpaceOfUser = None,
    format_: Annotated[
        str,
        Option(
            "--format",
            "-f",
            help="jsonl, which `aforesaid import` reads, or markdown, for people to read (of one user). "
            "Default: auto, by the ending of the file's name.",
        ),
    ] = "auto",
    vectors: Annotated[
        bool, Option("--vectors", help="Include embedding vectors, so that they need not be computed again.")
    ] = False,
    attachments: Annotated[
        bool,
        Option(
            "--attachments/--no-attachments",
            help="Copy the bytes of attachments to a folder beside the file. Default: they are copied.",
        ),
    ] = True,
) -> None:
    """Export everything, or one user's data, to a file, and attachments to a folder beside it.

    The folder has the file's name with `.attachments`. An SQLite or PostgreSQL store can be in use; one in files
    cannot. `aforesaid import` loads a JSON Lines file into any kind of store; Markdown is for the person whose data it
    is. Examples:

        aforesaid export everything.jsonl.gz

        aforesaid export ann.md --user ann
    """
    must_exist(place.store)
    if space is not None and user is None:
        raise InvalidInput("--space needs --user: without a user, all spaces are exported")
    where = DEFAULT_SPACE if space is None else space
    with place.read(embedder="none") as memory, place.progress("exporting") as progress:
        if user is not None:
            must_know(memory, user, where)
        done = memory.export(
            target,
            user=user,
            space=where,
            format=cast("ExportFormat", format_),
            vectors=vectors,
            attachments=attachments,
            progress=progress,
        )
    to_stream = target == _STREAM
    if not to_stream:
        files = f" and {counted(done.attachments, 'attachment')}" if done.attachments else ""
        shown = {
            "export": str(Path(target).absolute()),
            "rows": done.rows,
            "bytes": done.bytes,
            "attachments": done.attachments,
            "missing_attachments": done.missing_attachments,
        }
        place.show(shown, [f"wrote {harmless(target)}: {list_counts(done.rows)}{files}"])
    if to_stream or not place.as_json:
        _name_missing("could not be exported", done.missing_attachments)


@command
def load(
    source: Annotated[str, Argument(help="A file, folder or zip archive; - reads standard input.")],
    place: Stored,
    *,
    format_: Annotated[
        str, Option("--format", "-f", help=f"The format: auto, {', '.join(READERS)}. Default: auto, which detects it.")
    ] = "auto",
    user: Annotated[
        str | None,
        Option(
            "--user",
            "-u",
            help="Store everything as this user's memory. Default: me for chats with an assistant, otherwise each "
            "message's author. Example: -u ann",
        ),
    ] = None,
    space: Space = DEFAULT_SPACE,
    zone: Annotated[
        str | None, Option(help="Time zone for timestamps without one. Default: this machine's. Example: Europe/Berlin")
    ] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Show what would be imported without storing it.")] = False,
) -> None:
    """Import an Aforesaid export, or another application's. Importing a file twice stores everything once.

    Damaged entries are listed with their position, the rest is stored, and the exit code is 1. Example:

        aforesaid import ~/Downloads/conversations.zip --dry-run
    """
    given = [f"--store {shlex.quote(place.store)}"] if place.store is not None else []
    if dry_run and (path := store_path(place.store)) is not None and not path.exists():
        place = replace(place, store=MEMORY)  # a dry run creates no store
    with place.write(embedder="none") as memory, place.progress("importing") as progress:
        loaded = memory.load(source, format_, user=user, space=space, zone=zone, dry_run=dry_run, progress=progress)
    if place.as_json:
        print_json(loaded)
    else:
        _show(loaded)
        for command in _next_commands(loaded, source, given, space):
            say(f"next: {command}")
    if not loaded.ok:
        raise typer.Exit(1)


@command
def purge(
    user: Annotated[str, Argument(help="The id of the user to delete.")],
    place: Stored,
    *,
    space: SpaceOfUser = None,
    every_space: Annotated[
        bool, Option("--every-space", help="Delete the user in all spaces. Default: in one space.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Delete a user permanently: messages, summaries, memories, facts and index entries, from every byte of the store.

    This cannot be undone, except from an older backup. Other spaces in which the user has data are named, and API
    keys of the user. Example:

        aforesaid purge ann --every-space
    """
    must_exist(place.store)
    if every_space and space is not None:
        raise InvalidInput("pass either --space or --every-space")
    here = DEFAULT_SPACE if space is None else space
    with place.read(embedder="none") as memory:
        found = data_of(memory, user)
        wanted = _spaces_to_purge(memory, user, here, found, every_space=every_space)
        if not yes:
            # Have the user id typed again, after the number of messages in each space.
            messages = {each: found[each].messages if each in found else 0 for each in wanted}
            if not sys.stdin.isatty():
                raise InvalidInput("nothing was deleted: pass --yes to confirm, since there is no terminal to ask on")
            spaces = ", ".join(
                counted(count, "message") + ("" if space == DEFAULT_SPACE else f" in the space {space}")
                for space, count in messages.items()
            )
            typed = typer.prompt(f"This permanently deletes {user}: {spaces}. Type the user id to confirm")
            if typed != user:
                raise InvalidInput("nothing was deleted: the typed id does not match")
        done = {each: memory.purge(user, space=each, actor="command line") for each in wanted}
    note_keys_of(user, None if every_space else wanted, place.store)
    others = [each for each in found if each not in done]
    if place.as_json:
        of_one = {} if every_space else {"space": here, "purged": done[wanted[0]]}
        print_json({"user": user, **of_one, "purged_by_space": done, "other_spaces": others})
        return
    for each, purged in done.items():
        where = "" if each == DEFAULT_SPACE else f" in the space {harmless(each)}"
        if each not in found and purged == Purged(0, 0, 0):
            say(f"nothing is left of {harmless(user)}{where}, who was deleted before")
            continue
        say(
            f"deleted {harmless(user)}{where}: {counted(purged.messages, 'message')}, "
            f"{counted(purged.summaries, 'summary')}, {counted(purged.memories, 'memory')} "
            f"({purged.of_others:,} of other users, made from these messages)"
        )
    say("older backups and exports still contain the deleted data")
    for each in others:
        inform(
            f"{user} also has {counted(found[each].messages, 'message')} in the space {each}; to delete them, run: "
            f"aforesaid purge {shlex.quote(user)} --space {shlex.quote(each)}"
        )


def migrate_command(
    source: Annotated[
        str,
        Argument(
            metavar="FROM", help="The store to copy: a path, sqlite:PATH, json:PATH, files:PATH or postgresql://…"
        ),
    ],
    target: Annotated[
        str | None, Argument(metavar="TO", help="The store to copy to. It may contain data already.")
    ] = None,
    as_json: AsJson = False,
    citus: Annotated[
        bool,
        Option(
            "--citus",
            help="Distribute the tables of the empty PostgreSQL database FROM with Citus, or fill missing checksums.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, Option("--dry-run", help="With --citus: print the statements without running them.")
    ] = False,
) -> None:
    """Copy everything from one store to another of any kind, attachments too, then compare counts and hashes.

    The source is not changed. Example:

        aforesaid migrate memory.db sqlite:other.db
    """
    if citus:
        _distribute(source, dry_run=dry_run)
        return
    if dry_run:
        raise InvalidInput("--dry-run works with --citus only; to inspect a store, run: aforesaid status --store FROM")
    if target is None:
        raise InvalidInput("the target is missing; run: aforesaid migrate FROM TO")
    must_exist(source, "pass the store to copy as FROM")
    announce_new_folder(target)
    with progress_bar("migrating", hidden=as_json) as progress:
        done = asyncio.run(_migrate(source, target, progress))
    note_keys_left_behind([source], target)
    if as_json:
        print_json(done)
        return
    checked = "counts and message hashes match" if done.compared else "counts match"
    files = f" and {counted(done.attachments, 'attachment')}" if done.attachments else ""
    say(f"copied {list_counts(done.rows)}{files}; {checked}")
    _name_missing("could not be read from FROM", done.lost)


def _distribute(source: str, *, dry_run: bool) -> None:
    if locate(source).kind != "postgres":
        raise InvalidInput("--citus needs a PostgreSQL database: pass postgresql://… as FROM")
    from aforesaid.store.postgres.database import citus_statements, distribute, fill_checksums  # noqa: PLC0415 - an extra

    filled = None if dry_run else asyncio.run(fill_checksums(source))
    if filled is not None:
        say(f"the tables are distributed already; {counted(filled, 'row')} without a checksum got one")
        return
    for statement in citus_statements():
        typer.echo(statement)
    if dry_run:
        return
    say(f"distributed {counted(asyncio.run(distribute(source)), 'table')} by space")


async def _migrate(source: str, target: str, progress: Progress) -> Migrated:
    folder = load_settings().attachments
    # The setting may name the folder of the target only, as a database needs one.
    attachments = AttachmentCopy(
        [attachments_of(source, folder), attachments_of(source)], attachments_of(target, folder)
    )
    async with AsyncExitStack() as stack:
        old = await open_store(source)
        stack.push_async_callback(old.close)
        new = await open_store(target)
        stack.push_async_callback(new.close)
        if getattr(old, "path", old) == getattr(new, "path", new):
            raise InvalidInput("FROM and TO are the same store")
        return await migrate(old, new, attachments, progress=progress)


def _spaces_to_purge(
    memory: aforesaid.SyncMemory, user: str, space: str, found: Mapping[str, User], *, every_space: bool
) -> list[str]:
    """Return the spaces in which to purge a user. Raises NotFound for one who has no data and was never purged.

    A purge that failed because another process read the store has erased the rows, and is repeated to erase the rest.
    """
    here = memory.known_ids.spelled(space)
    if wanted := [each for each in found if every_space or each == here]:
        return wanted
    places = sorted({here, *(each.space for each in memory.users())}) if every_space else [here]
    purged = [
        each for each in places if any(entry.action == "purge" for entry in memory.user(user, space=each).audit())
    ]
    if not purged:
        must_know(memory, user, space)
    return purged


def _show(loaded: Loaded) -> None:
    kinds = sorted({*loaded.found, *loaded.new})
    table = Table("kind", Column("found", justify="right"), Column("new", justify="right"))
    for kind in kinds:
        new = "-" if loaded.dry_run or kind in _NOT_COUNTED else f"{loaded.new.get(kind, 0):,}"
        table.add_row(kind, f"{loaded.found.get(kind, 0):,}", new)
    say(f"format: {loaded.format}")
    if kinds:
        console().print(table)
    for user in loaded.users[:_USERS_SHOWN]:
        name = f" ({harmless(user.name)})" if user.name is not None and user.name != user.id else ""
        counts = [(user.messages, "message"), (user.memories, "memory")]
        owned = ", ".join(counted(count, kind) for count, kind in counts if count)
        say(f"memory of {harmless(user.id)}{name}: {owned}")
    if loaded.user_count > _USERS_SHOWN:
        say(f"and of {counted(loaded.user_count - _USERS_SHOWN, 'more user')}")
    for what, count in sorted(loaded.skipped.items()):
        say(Text(f"skipped: {harmless(what)} ({count:,})", style="dim"))
    for problem in loaded.examples:
        say(Text("damaged  ", style="bold red"), harmless(f"{problem.where}: {problem.why}"))
    if loaded.problems > len(loaded.examples):
        say(f"and {loaded.problems - len(loaded.examples):,} more")
    if loaded.attachments:
        say(f"stored {counted(loaded.attachments, 'attachment')}")
    _name_missing("could not be found", loaded.missing_attachments)
    if loaded.dry_run:
        say("nothing was stored: this was a dry run")


def _name_missing(how: str, hashes: Sequence[str]) -> None:
    """Name the attachments whose bytes are not there, on standard error."""
    if hashes:
        shown = ", ".join(hashes[:_MISSING_SHOWN])
        more = f" and {len(hashes) - _MISSING_SHOWN:,} more" if len(hashes) > _MISSING_SHOWN else ""
        inform(f"{counted(len(hashes), 'attachment')} {how}: {shown}{more}")


def _next_commands(loaded: Loaded, source: str, given: list[str], space: str) -> list[str]:
    """Return what to type next: the import itself after a dry run, else how to read what was imported."""
    where = [*given, f"--space {shlex.quote(space)}"] if space != DEFAULT_SPACE else given
    if not loaded.users:
        return []
    if loaded.dry_run:
        return [" ".join(["aforesaid import", shlex.quote(source), *where])]
    first = loaded.users[0]
    shows = "aforesaid history" if first.messages else "aforesaid memories"
    return [" ".join([shows, f"--user {shlex.quote(first.id)}", *where]), " ".join(["aforesaid upkeep", *given])]
