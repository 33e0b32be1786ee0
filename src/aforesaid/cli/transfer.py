"""Commands that take data out and in, and that erase people."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table
from rich.text import Text

import aforesaid
from aforesaid.cli.options import AsJson, Space, Store, must_exist
from aforesaid.cli.show import console, harmless, print_json, progress_bar, say
from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.errors import InvalidInput
from aforesaid.portability import Loaded, Migrated, migrate
from aforesaid.store import Progress, locate, open_store

_STREAM = "-"
_SEVERAL = {
    "message": "messages",
    "session": "sessions",
    "summary": "summaries",
    "memory": "memories",
    "setting": "settings",
    "user": "users",
    "day": "days",
    "vector": "vectors",
}


def export(
    target: Annotated[str, typer.Argument(help="The file to make; .gz compresses it, - is standard output.")],
    store: Store = None,
    vectors: Annotated[bool, typer.Option("--vectors", help="Also what the embedder made of the messages.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write everything to a file of JSON lines, also while the memory is in use.

    The file can be loaded into any kind of store. Example:

        aforesaid export everything.jsonl.gz
    """
    must_exist(store)
    to_stream = target == _STREAM
    with aforesaid.open(store, embedder="none") as memory, progress_bar("exporting", hidden=as_json) as progress:
        done = memory.export(target, vectors=vectors, progress=progress)
    if to_stream:
        return
    if as_json:
        print_json({"export": str(Path(target).absolute()), "rows": done.rows, "bytes": done.bytes})
        return
    say(f"wrote {harmless(target)}: {_counted(done.rows)}")


def load(
    source: Annotated[str, typer.Argument(help="A file, a folder or a zip archive; - reads standard input.")],
    store: Store = None,
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            "-f",
            help="auto, aforesaid, chatgpt, claude, telegram, discord, whatsapp, slack, openai or mem0.",
        ),
    ] = "auto",
    user: Annotated[
        str | None,
        typer.Option(
            "--user",
            "-u",
            help="Make all of it the memory of this user. [talks with an assistant: me; others: who wrote it]",
        ),
    ] = None,
    space: Space = DEFAULT_SPACE,
    zone: Annotated[
        str | None,
        typer.Option("--zone", help="Of times without a zone, as Europe/Berlin. [this machine's]"),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only look what is in it; store nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Take in an export of Aforesaid, or what another application wrote. Loading twice stores everything once.

    Damaged entries are listed, with where they stand, and the rest is stored; then the exit code is 1. Example:

        aforesaid import ~/Downloads/conversations.zip --dry-run
    """
    with aforesaid.open(store, embedder="none") as memory, progress_bar("importing", hidden=as_json) as progress:
        loaded = memory.load(source, format_, user=user, space=space, zone=zone, dry_run=dry_run, progress=progress)
    if as_json:
        print_json(loaded)
    else:
        _show(loaded)
    if not loaded.ok:
        raise typer.Exit(1)


def purge(
    user: Annotated[str, typer.Argument(help="Who is to be erased.")],
    store: Store = None,
    space: Space = DEFAULT_SPACE,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask whether it is meant.")] = False,
    as_json: AsJson = False,
) -> None:
    """Erase a user for good: messages, summaries, memories, facts, index, from every byte of the store.

    There is no way back, except from backups that were made before. Example:

        aforesaid purge ann
    """
    must_exist(store)
    with aforesaid.open(store, embedder="none") as memory:
        if not yes:
            _ask(user, space, next((each.messages for each in memory.users(space) if each.id == user), 0))
        done = memory.purge(user, space=space, actor="command line")
    if as_json:
        print_json({"user": user, "space": space, "purged": done})
        return
    say(
        f"erased {harmless(user)}: {done.messages:,} messages, {done.summaries:,} summaries, "
        f"{done.memories:,} memories ({done.of_others:,} of them others', made with these messages)"
    )
    say("backups and exports that were made before still hold what was erased")


def migrate_command(
    source: Annotated[str, typer.Argument(metavar="FROM", help="A location: a path, sqlite:PATH, …")],
    target: Annotated[
        str | None, typer.Argument(metavar="TO", help="Another location. It may hold something already.")
    ] = None,
    as_json: AsJson = False,
    citus: Annotated[
        bool, typer.Option("--citus", help="Distribute the empty PostgreSQL database FROM over machines with Citus.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --citus: only print the statements; run nothing.")
    ] = False,
) -> None:
    """Copy everything from one store to another, of any kind, and compare counts and hashes afterwards.

    The source stays as it is. Example:

        aforesaid migrate memory.db sqlite:other.db
    """
    if citus:
        _distribute(source, dry_run=dry_run)
        return
    if dry_run:
        raise InvalidInput("--dry-run goes with --citus alone; to look at a store: aforesaid status --store FROM")
    if target is None:
        raise InvalidInput("name where to move: aforesaid migrate FROM TO")
    must_exist(source, "name the store that is to be copied")
    with progress_bar("migrating", hidden=as_json) as progress:
        done = asyncio.run(_migrate(source, target, progress))
    if as_json:
        print_json(done)
        return
    checked = "counts and the hashes of all messages agree" if done.compared else "all of it is there"
    say(f"moved {_counted(done.rows)}; {checked}")


def _distribute(source: str, *, dry_run: bool) -> None:
    if locate(source).kind != "postgres":
        raise InvalidInput("only a PostgreSQL database can be spread over machines: postgresql://…")
    from aforesaid.store.postgres.citus import distribute, statements  # noqa: PLC0415 - an extra

    for statement in statements():
        typer.echo(statement)
    if dry_run:
        return
    say(f"distributed {asyncio.run(distribute(source))} tables by space")


async def _migrate(source: str, target: str, progress: Progress) -> Migrated:
    old = await open_store(source)
    try:
        new = await open_store(target)
        try:
            if getattr(old, "path", old) == getattr(new, "path", new):
                raise InvalidInput("that is one and the same store")
            return await migrate(old, new, progress=progress)
        finally:
            await new.close()
    finally:
        await old.close()


def _ask(user: str, space: str, messages: int) -> None:
    if not sys.stdin.isatty():
        raise InvalidInput("nothing was erased: say --yes if it is meant, since nobody can be asked here")
    where = "" if space == DEFAULT_SPACE else f" in {space}"
    typed = typer.prompt(f"{messages:,} messages of {user}{where} are erased for good. Type the user's id to go on")
    if typed != user:
        raise InvalidInput("nothing was erased: what was typed is not the user's id")


def _show(loaded: Loaded) -> None:
    kinds = sorted({*loaded.found, *loaded.new})
    table = Table("kind", Column("found", justify="right"), Column("new", justify="right"))
    for kind in kinds:
        new = "-" if loaded.dry_run else f"{loaded.new.get(kind, 0):,}"
        table.add_row(kind, f"{loaded.found.get(kind, 0):,}", new)
    say(f"format: {loaded.format}")
    if kinds:
        console().print(table)
    for what, count in sorted(loaded.skipped.items()):
        say(Text(f"left out: {count:,} {harmless(what)}", style="dim"))
    for problem in loaded.examples:
        say(Text("damaged  ", style="bold red"), harmless(f"{problem.where}: {problem.why}"))
    if loaded.problems > len(loaded.examples):
        say(f"and {loaded.problems - len(loaded.examples):,} more")
    if loaded.dry_run:
        say("nothing was stored: this was a dry run")


def _counted(rows: dict[str, int]) -> str:
    named = ((count, kind if count == 1 else _SEVERAL.get(kind, kind)) for kind, count in rows.items())
    return ", ".join(f"{count:,} {kind}" for count, kind in named) or "nothing"
