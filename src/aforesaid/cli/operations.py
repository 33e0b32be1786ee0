"""Commands that administer a whole store."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.table import Column, Table
from rich.text import Text

import aforesaid
from aforesaid.cli.keys import note_keys_left_behind
from aforesaid.cli.options import AsJson, Store, announce_new_folder, must_exist
from aforesaid.cli.output import complain, console, harmless, inform, local_time, print_json, progress_bar, say
from aforesaid.domain.checks import counted
from aforesaid.portability import list_counts
from aforesaid.portability.repairing import repair
from aforesaid.settings import load_settings
from aforesaid.store import locate, restore_store

_SINGULAR: Final[Mapping[str, str]] = {
    "messages": "message",
    "memories": "memory",
    "summaries": "summary",
    "versions": "version",
    "derived": "derived text",
    "audit": "audit row",
    "spending": "spending row",
    "receipts": "receipt",
}
"""The kinds of retention rules, as nouns."""


def users(
    store: Store = None,
    space: Annotated[
        str | None, typer.Option("--space", help="Only this space. Default: all spaces. Example: --space default")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the users of a store.

    Example:
        aforesaid users --space default
    """
    must_exist(store)
    with aforesaid.open(store) as memory:
        found = memory.users(space)
    if as_json:
        print_json(found)
        return
    if not found:
        say('there are no users yet; try: aforesaid add "hello" --user ann')
        return
    # Ids are folded, never cut: people copy them.
    ids = [Column("space", overflow="fold"), Column("user", overflow="fold")]
    counts = [Column("messages", justify="right"), Column("archived", justify="right")]
    table = Table(*ids, Column("name", overflow="fold"), *counts, "last activity")
    for user in found:
        last = local_time(user.last_activity) if user.last_activity else "-"
        who = map(harmless, (user.space, user.id, user.name or ""))
        table.add_row(*who, f"{user.messages:,}", f"{user.archived:,}", last)
    console().print(table)


def cleanup(
    store: Store = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be archived or deleted, without doing it.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Archive and delete what the retention rules say is old enough. Running programs do this once a day.

    Without rules, everything is kept. Example:

        aforesaid cleanup --dry-run
    """
    must_exist(store)
    with aforesaid.open(store) as memory, progress_bar("cleaning up", hidden=as_json) as progress:
        report = memory.cleanup(progress, dry_run=dry_run)
    if as_json:
        print_json(report)
    elif not report.rules and report.error is None:
        say("there are no retention rules, so everything is kept; see [retention] in the configuration")
    else:
        for rule in report.rules:
            done = {"archive": "archived", "purge": "deleted"}[rule.action]
            verb = f"would be {done}" if dry_run else done
            say(
                Text.assemble(
                    f"{counted(rule.count, _SINGULAR[rule.kind]):>18} {verb}",
                    (f"   older than {local_time(rule.before)}", "dim"),
                )
            )
    if {rule.action for rule in report.rules if rule.kind == "messages"} == {"purge"}:
        inform(
            "messages are deleted only after they were archived; to archive them, set retention.messages.archive_days"
        )
    if report.error is not None:
        complain(f"stopped before the end; run it again to continue: {report.error}")
        raise typer.Exit(1)


def verify(
    store: Store = None,
    repairing: Annotated[
        bool,
        typer.Option("--repair", help="Copy intact data to a new store; the damaged one is renamed and kept."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Verify the whole store: pages, references, index, hashes, counts and archives.

    Exits with 1 if something is damaged, and prints what. Before --repair, stop every other process that uses the
    store. Example:

        aforesaid verify --store memory.db
    """
    if repairing:
        _repair(store, as_json=as_json)
        return
    must_exist(store)
    with aforesaid.open(store) as memory, progress_bar("verifying", hidden=as_json) as progress:
        report = memory.verify(progress)
    if as_json:
        print_json({"ok": report.ok, "checks": report.checks})
    else:
        for check in report.checks:
            mark = Text("ok     ", style="green") if check.ok else Text("WRONG  ", style="bold red")
            detail = "" if check.ok else f"  {harmless(check.detail)}"
            say(mark, Text.assemble(f"{check.name:<12}", (f"{check.seconds:8.2f} s", "dim"), detail))
    if not report.ok:
        raise typer.Exit(1)


def _repair(store: str | None, *, as_json: bool) -> None:
    with progress_bar("repairing", hidden=as_json) as progress:
        done = asyncio.run(repair(load_settings().store if store is None else store, progress))
    if as_json:
        print_json(done)
        return
    if not done.needed:
        say("nothing is damaged; nothing was changed")
        return
    say(f"recovered: {list_counts({kind: count for kind, count in done.recovered.items() if count})}")
    for line in done.lost:
        say(Text(f"not recovered: {harmless(line)}", style="red"))
    if not done.lost:
        say("everything was recovered")
    say(f"the damaged store is now {done.set_aside}")


def backup(
    target: Annotated[Path, typer.Argument(help="The new file. It must not exist.")],
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Back up the store to a new file and verify the copy. An SQLite store can be in use; one in files cannot.

    Example:
        aforesaid backup backups/2026-03-01.db
    """
    must_exist(store)
    with aforesaid.open(store) as memory, progress_bar("copying", hidden=as_json) as progress:
        memory.backup(target, progress)
        stats = memory.stats()
    if as_json:
        print_json({"backup": str(target.absolute()), "bytes": target.stat().st_size, "messages": stats.messages})
    else:
        say(f"backed up to {target} ({target.stat().st_size / 1_000_000:,.1f} MB), verified")
    note_keys_left_behind([store], str(target))


def restore(
    source: Annotated[Path, typer.Argument(help="A file made by `aforesaid backup`.")],
    store: Store = None,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Replace an existing store, which is renamed and kept."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Restore a backup and verify it. Stop every other process that uses the store first.

    Nothing is overwritten: with --replace, an existing store is renamed. Exits with 1 if verification fails. Example:

        aforesaid restore backups/2026-03-01.db --replace
    """
    announce_new_folder(store)
    where = load_settings().store if store is None else store
    aside = restore_store(source, where, replace=replace)
    target = locate(where).path
    with aforesaid.open(store, embedder="none") as memory, progress_bar("verifying", hidden=as_json) as progress:
        report = memory.verify(progress)
    wrong = [check for check in report.checks if not check.ok]
    if as_json:
        print_json({"store": str(target), "set_aside": None if aside is None else str(aside), "verified": report.ok})
    else:
        say(f"restored {target} from {source}, verified" if report.ok else f"restored {target} from {source}")
        if aside is not None:
            say(f"the previous store is now {aside}")
    for check in () if as_json else wrong:
        say(Text("WRONG  ", style="bold red"), harmless(f"{check.name}: {check.detail}"))
    note_keys_left_behind([str(source), None], where)
    if wrong:
        raise typer.Exit(1)
