"""Commands that administer a whole store: status, summaries, background work, checks, backups."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final, cast

import typer
from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Column, Table
from rich.text import Text
from rich.tree import Tree
from typer import Argument, Option

import aforesaid
from aforesaid.cli.config import note_keys_left_behind
from aforesaid.cli.options import (
    LogLevel,
    PersonInChat,
    PersonInSession,
    Profile,
    Space,
    Store,
    Stored,
    announce_new_folder,
    command,
    complain,
    harmless,
    inform,
    local_time,
    say,
    write_log,
)
from aforesaid.domain.checks import counted
from aforesaid.domain.report import Component, Health, Operation, Stats, Storage
from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.domain.summary import Summary, SummaryKind
from aforesaid.errors import InvalidInput
from aforesaid.portability import list_counts
from aforesaid.portability.migrating import repair
from aforesaid.settings import Settings, load_settings
from aforesaid.store import locate, restore_store
from aforesaid.upkeep import Digesting, Extracting

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


@command
def users(
    place: Stored,
    *,
    space: Annotated[str | None, Option(help="Only this space. Default: all spaces. Example: --space default")] = None,
) -> None:
    """List the users of a store.

    Example:
        aforesaid users --space default
    """
    with place.read() as memory:
        found = memory.users(space)
    # Ids are folded, never cut: people copy them.
    ids = [Column("space", overflow="fold"), Column("user", overflow="fold")]
    counts = [Column("messages", justify="right"), Column("archived", justify="right")]
    table = Table(*ids, Column("name", overflow="fold"), *counts, "last activity")
    for user in found:
        last = local_time(user.last_activity) if user.last_activity else "-"
        who = map(harmless, (user.space, user.id, user.name or ""))
        table.add_row(*who, f"{user.messages:,}", f"{user.archived:,}", last)
    place.show(found, [table if found else 'there are no users yet; try: aforesaid add "hello" --user ann'])


@command
def cleanup(
    place: Stored,
    *,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Print what would be archived or deleted, without doing it.")
    ] = False,
) -> None:
    """Archive and delete what the retention rules say is old enough. Running programs do this once a day.

    Without rules, everything is kept. Example:

        aforesaid cleanup --dry-run
    """
    with place.read() as memory, place.progress("cleaning up") as progress:
        report = memory.cleanup(progress, dry_run=dry_run)
    lines = []
    for rule in report.rules:
        done = {"archive": "archived", "purge": "deleted"}[rule.action]
        what = f"{counted(rule.count, _SINGULAR[rule.kind]):>18} {'would be ' if dry_run else ''}{done}"
        lines.append(Text.assemble(what, (f"   older than {local_time(rule.before)}", "dim")))
    if not report.rules and report.error is None:
        lines = [Text("there are no retention rules, so everything is kept; see [retention] in the configuration")]
    place.show(report, lines)
    if {rule.action for rule in report.rules if rule.kind == "messages"} == {"purge"}:
        inform(
            "messages are deleted only after they were archived; to archive them, set retention.messages.archive_days"
        )
    if report.error is not None:
        complain(f"stopped before the end; run it again to continue: {report.error}")
        raise typer.Exit(1)


@command
def verify(
    place: Stored,
    *,
    repairing: Annotated[
        bool, Option("--repair", help="Copy intact data to a new store; the damaged one is renamed and kept.")
    ] = False,
) -> None:
    """Verify the whole store: pages, references, index, hashes, counts and archives.

    Exits with 1 if something is damaged, and prints what. Before --repair, stop every other process that uses the
    store. Example:

        aforesaid verify --store memory.db
    """
    if repairing:
        with place.progress("repairing") as progress:
            done = asyncio.run(repair(place.location, progress))
        told: list[str | Text] = ["nothing is damaged; nothing was changed"]
        if done.needed:
            lost: list[str | Text] = [Text(f"not recovered: {harmless(line)}", style="red") for line in done.lost]
            told = [
                f"recovered: {list_counts({kind: count for kind, count in done.recovered.items() if count})}",
                *(lost or ["everything was recovered"]),
                f"the damaged store is now {done.set_aside}",
            ]
        place.show(done, told)
        return
    with place.read() as memory, place.progress("verifying") as progress:
        report = memory.verify(progress)
    lines = []
    for check in report.checks:
        mark = ("ok     ", "green") if check.ok else ("WRONG  ", "bold red")
        detail = "" if check.ok else f"  {harmless(check.detail)}"
        lines.append(Text.assemble(mark, f"{check.name:<12}", (f"{check.seconds:8.2f} s", "dim"), detail))
    place.show({"ok": report.ok, "checks": report.checks}, lines)
    if not report.ok:
        raise typer.Exit(1)


@command
def backup(target: Annotated[Path, Argument(help="The new file. It must not exist.")], place: Stored) -> None:
    """Back up the store to a new file and verify the copy. An SQLite store can be in use; one in files cannot.

    Example:
        aforesaid backup backups/2026-03-01.db
    """
    with place.read() as memory, place.progress("copying") as progress:
        memory.backup(target, progress)
        stats = memory.stats()
    size = target.stat().st_size
    done = {"backup": str(target.absolute()), "bytes": size, "messages": stats.messages}
    place.show(done, [f"backed up to {target} ({size / 1_000_000:,.1f} MB), verified"])
    note_keys_left_behind([place.store], str(target))


@command
def restore(
    source: Annotated[Path, Argument(help="A file made by `aforesaid backup`.")],
    place: Stored,
    *,
    replace: Annotated[bool, Option("--replace", help="Replace an existing store, which is renamed and kept.")] = False,
) -> None:
    """Restore a backup and verify it. Stop every other process that uses the store first.

    Nothing is overwritten: with --replace, an existing store is renamed. Exits with 1 if verification fails. Example:

        aforesaid restore backups/2026-03-01.db --replace
    """
    announce_new_folder(place.store)
    aside = restore_store(source, place.location, replace=replace)
    target = locate(place.location).path
    with place.read(embedder="none") as memory, place.progress("verifying") as progress:
        report = memory.verify(progress)
    lines = [Text(f"restored {target} from {source}{', verified' if report.ok else ''}")]
    if aside is not None:
        lines.append(Text(f"the previous store is now {aside}"))
    lines += [
        Text.assemble(("WRONG  ", "bold red"), harmless(f"{check.name}: {check.detail}"))
        for check in report.checks
        if not check.ok
    ]
    done = {"store": str(target), "set_aside": None if aside is None else str(aside), "verified": report.ok}
    place.show(done, lines)
    note_keys_left_behind([str(source), None], place.location)
    if not report.ok:
        raise typer.Exit(1)


_MARKS: Final = {"active": ("●", "green"), "initializing": ("○", "yellow"), "failing": ("●", "bold red")}
_TOTALS: Final = {
    "messages": "message",
    "archived": "archived message",
    "summaries": "summary",
    "memories": "memory",
    "users": "user",
    "spaces": "space",
    "threads": "thread",
    "sessions": "session",
}
"""The totals of `Stats` that are shown, each with its noun."""
_KILO: Final = 1_000.0
_UNITS: Final = ("bytes", "kB", "MB", "GB", "TB")


@command
def status(
    place: Stored,
    *,
    user: Annotated[
        str | None,
        Option(
            "--user", "-u", help="Show the health of this user's memory only. Default: the whole store. Example: -u ann"
        ),
    ] = None,
    space: Space = DEFAULT_SPACE,
) -> None:
    """Print totals, health and alerts.

    Exits with 1 if a component is failing or an alert is active. Example:

        aforesaid status --user ann
    """
    with _without_health_log(), place.read() as memory:
        stats = memory.stats()
        health = memory.health() if user is None else memory.user(user, space=space).health()
    if user is None:  # the bots that other processes run on this store
        from aforesaid.bots.running import bots_of  # noqa: PLC0415 - brings what bots need

        bots = bots_of(place.location, datetime.now(UTC))
        failing = any(bot.status == "failing" for bot in bots)
        health = replace(health, status="failing" if failing else health.status, components=(*health.components, *bots))
    page = _page(stats, health) if user is None else [_parts(health.components)]
    mark, style = _MARKS[health.status]
    whose = "the memory" if user is None else f"the memory of {harmless(user)}"
    alerts = f", {counted(len(health.alerts), 'alert')}" if health.alerts else ""
    when = "" if health.checked_at is None else f"   {local_time(health.checked_at)}"
    line = Text.assemble((f"{mark} ", style), whose, " is ", (health.status, style), alerts, (when, "dim"))
    head = Panel(line, box=box.ROUNDED, border_style=style, expand=False, padding=(0, 2))
    shown = {"health": health} if user is not None else {"stats": stats, "health": health}
    place.show(shown, [Group(head, *page)])
    if health.status == "failing" or health.alerts:
        raise typer.Exit(1)


@contextmanager
def _without_health_log() -> Iterator[None]:
    """Disable the health log, which would print the same alerts a second time."""
    log = logging.getLogger("aforesaid.health")
    before = log.disabled
    log.disabled = True
    try:
        yield
    finally:
        log.disabled = before


def _page(stats: Stats, health: Health) -> Iterator[RenderableType]:
    if health.alerts:
        lines = [
            Text.assemble(("! ", "bold red"), harmless(alert.text), (f"   since {local_time(alert.since)}", "dim"))
            for alert in health.alerts
        ]
        yield Padding(Group(*lines), (0, 2))
    table = Table.grid(padding=(0, 3))
    for _ in range(4):
        table.add_column(justify="right")
    totals = (counted(getattr(stats, name), noun).split(" ", 1) for name, noun in _TOTALS.items())
    cells = [Text.assemble(f"{figure} ", (word, "dim")) for figure, word in totals]
    for start in range(0, len(cells), 4):
        table.add_row(*cells[start : start + 4])
    yield Padding(Group(table, Text(_size(stats, health.storage), style="dim")), (1, 2, 0, 2))
    yield _parts(health.components)
    recent = [operation for operation in health.operations if operation.calls and operation.name != "stats"]
    if recent:
        yield _operations(recent)


def _size(stats: Stats, storage: Storage | None) -> str:
    text = _bytes(stats.bytes)
    if storage is not None and storage.bytes_per_day is not None:
        text += f", {'+' if storage.bytes_per_day >= 0 else '-'}{_bytes(abs(storage.bytes_per_day))} a day"
    if storage is not None and storage.messages_per_day is not None:
        text += f" ({storage.messages_per_day:+,.0f} messages a day)"
    if storage is not None and storage.free is not None:
        text += f"; {_bytes(storage.free)} free on the disk"
    return text


def _parts(components: Sequence[Component]) -> RenderableType:
    table = Table(
        "component",
        Column("messages", justify="right"),
        Column("waiting", justify="right"),
        "last update",
        Column("details", overflow="fold"),
        box=box.SIMPLE,
        header_style="dim",
    )
    for part in components:
        mark, style = _MARKS[part.status]
        name = Text.assemble((f"{mark} ", style), part.name, *([(f" {part.status}", style)] * (style != "green")))
        facts = ", ".join(f"{name}: {harmless(value)}" for name, value in part.facts)
        issues = "".join(f"\n{harmless(issue)}" for issue in part.issues)
        details = Text.assemble((facts, "dim"), (issues if facts else issues.lstrip("\n"), "red"))
        table.add_row(name, _number(part.message_count), _number(part.waiting), _ago(part.last_update), details)
    return table


def _operations(operations: Sequence[Operation]) -> RenderableType:
    numbers = [Column(title, justify="right") for title in ("calls", "per minute", "failed", "mean", "p95", "cached")]
    table = Table("operation", *numbers, box=box.SIMPLE, header_style="dim")
    for each in operations:
        name = f"{each.name} by {harmless(each.model)}" if each.model else each.name
        failed = Text(f"{each.failed:,}", style="red" if each.failed else "")
        most = "> 60 s" if each.p95_seconds is None else f"≤ {_seconds(each.p95_seconds)}"
        table.add_row(
            name,
            f"{each.calls:,}",
            f"{each.per_minute:,.1f}",
            failed,
            _seconds(each.mean_seconds),
            most,
            _number(each.cache_hits or None),
        )
    return table


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value >= 1 else f"{value * 1_000:,.1f} ms"


def _bytes(value: float) -> str:
    for unit in _UNITS:
        if value < _KILO or unit == _UNITS[-1]:
            return f"{value:,.0f} {unit}" if unit == "bytes" else f"{value:,.1f} {unit}"
        value /= _KILO
    raise AssertionError  # the last unit takes whatever is left


def _ago(at: datetime | None) -> str:
    """Format how long ago a time was; a time in the future is printed in full."""
    if at is None:
        return ""
    seconds = (datetime.now(UTC) - at).total_seconds()
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{counted(count, unit)} ago"
    return "just now" if seconds >= 0 else local_time(at)


@command
def summarize(place: PersonInSession) -> None:
    """Summarise now, even if there is little to summarise.

    Example:
        aforesaid summarize --user ann
    """
    with place.read() as memory:
        made = place.of(memory).summarize()
    nothing = f"there is nothing to summarise for {harmless(place.user)}"
    place.show(made, [summary_line(summary) for summary in made] or [nothing])


@command
def summaries(
    *,
    every: Annotated[bool, Option("--all", help="Include summaries that newer ones replaced or cover.")] = False,
    kind: Annotated[
        str | None, Option(help="Only this kind: tree, rolling, day, week or history. Default: all.")
    ] = None,
    tree: Annotated[bool, Option("--tree", help="Show each summary's sources, down to the messages.")] = False,
    place: PersonInChat,
) -> None:
    """Print a user's summaries, highest level first; with --tree also their sources.

    Example:
        aforesaid summaries --user ann --tree
    """
    with place.read() as memory:
        user = place.of(memory)
        found = user.summaries(active=None if every else True, kind=cast("SummaryKind | None", kind))
        known = {summary.id: summary for summary in user.summaries(active=None)} if tree else {}
    branches = [Tree(summary_line(summary)) for summary in found]
    for branch, summary in zip(branches if tree else (), found, strict=False):
        _grow(branch, summary, known)
    nothing = f"there are no summaries for {harmless(place.user)} yet"
    place.show(found, (branches if tree else [summary_line(summary) for summary in found]) or [nothing])


@command
def upkeep(place: Stored) -> None:
    """Do all pending background work now: embed, summarise, extract memories. Running programs do this by themselves.

    Exits with 1 if a step failed; the next run tries it again. Example:

        aforesaid upkeep
    """
    with place.read() as memory, place.progress("upkeep") as progress:
        report = memory.upkeep(progress)
    done = (
        f"{counted(report.embedded, 'text')} embedded, {counted(report.summarised, 'summary')} made, "
        f"{counted(report.remembered, 'memory')} extracted"
    )
    failure = [] if report.error is None else [Text(f"could not finish: {harmless(report.error)}", style="red")]
    place.show(report, [done, *failure])
    if report.error is not None:
        raise typer.Exit(1)


def summary_line(summary: Summary) -> Text:
    """Format a summary: id, kind, period, number of messages, text."""
    kind = f"{summary.kind} level {summary.level}" if summary.kind == "tree" else summary.kind
    state = "" if summary.active else " rolled back" if summary.rolled_back else " replaced" if summary.replaced else ""
    parts = [(f"summary {summary.id}, ", "magenta"), (f"{kind}{state}, ", "cyan"), (f"{summary.period}, ", "dim")]
    parts.append((counted(summary.messages, "message"), "dim"))
    if summary.edited_by is not None:
        parts.append((f", edited by {harmless(summary.edited_by)}", "dim"))
    if summary.quality is not None and summary.quality.invented:
        parts.append((f", not in the sources: {harmless(', '.join(summary.quality.invented))}", "yellow"))
    return Text.assemble(*parts, "\n", harmless(summary.text))


def _grow(branch: Tree, summary: Summary, known: dict[int, Summary]) -> None:
    """Add a summary's sources to a tree: other summaries, and the messages that no older summary covers."""
    below = [known[source] for source in summary.sources if source in known]
    for source in below:
        _grow(branch.add(summary_line(source)), source, known)
    if summary.level == 1 and summary.reach != "sources":
        count = summary.messages - sum(source.messages for source in below)
        numbers = f"#{summary.last}" if summary.fresh == summary.last else f"#{summary.fresh} to #{summary.last}"
        branch.add(Text(f"{counted(count, 'message')}, {numbers}, until {local_time(summary.ended_at)}", style="dim"))


def worker(
    store: Store = None,
    concurrency: Annotated[
        int, Option("--concurrency", "-c", min=1, max=256, help="Jobs to run at the same time. Example: -c 8")
    ] = 4,
    profile: Profile = None,
    log_level: LogLevel = "warning",
) -> None:
    """Do the background work of all servers on a PostgreSQL database. Run any number of workers, on any machine.

    Stops with Ctrl+C or SIGTERM, after finishing running jobs. Set `background = false` for the servers. Example:

        aforesaid worker --store postgresql://db.example/aforesaid --concurrency 8
    """
    write_log(log_level)
    settings = load_settings()
    where = settings.store if store is None else store
    if locate(where).kind != "postgres":
        raise InvalidInput(
            "workers need a PostgreSQL store: pass --store postgresql://… (other stores do their work without workers)"
        )
    done = asyncio.run(_work(str(where), profile, replace(settings, background=False), concurrency))
    say(f"stopped after {counted(done, 'job')}; other workers, or the next run, do the rest")


async def _work(dsn: str, profile: str | None, settings: Settings, concurrency: int) -> int:
    from aforesaid.upkeep.workers import Workers, WorkerTasks  # noqa: PLC0415 - an extra

    async with aforesaid.connect(dsn, profile=profile, settings=replace(settings, fallback="none")) as memory:
        parts = {part.name: part for part in memory._services.upkeep.tasks}  # noqa: SLF001 - not public: only this command needs it
        learning, digesting = cast("Extracting", parts.pop("remembered")), cast("Digesting", parts.pop("summarised"))
        workers = Workers(
            dsn, WorkerTasks(learning, digesting, tuple(parts.values())), memory.loops, concurrency=concurrency
        )
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, workers.stop)
        say(f"working, up to {counted(concurrency, 'job')} at a time; stop with Ctrl+C")
        await workers.run()
        return workers.done
