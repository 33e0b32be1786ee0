"""`aforesaid status`: totals, health, alerts and latency on one page."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Final

import typer
from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Column, Table
from rich.text import Text

import aforesaid
from aforesaid.cli.options import AsJson, Space, Store, must_exist
from aforesaid.cli.output import console, harmless, local_time, print_json
from aforesaid.domain.checks import counted
from aforesaid.domain.report import Alert, Component, Health, Operation, Stats, Storage
from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.settings import load_settings

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


def status(
    store: Store = None,
    user: Annotated[
        str | None,
        typer.Option(
            "--user", "-u", help="Show the health of this user's memory only. Default: the whole store. Example: -u ann"
        ),
    ] = None,
    space: Space = DEFAULT_SPACE,
    as_json: AsJson = False,
) -> None:
    """Print totals, health and alerts.

    Exits with 1 if a component is failing or an alert is active. Example:

        aforesaid status --user ann
    """
    must_exist(store)
    with _without_health_log(), aforesaid.open(store) as memory:
        stats = memory.stats()
        health = _with_bots(memory.health(), store) if user is None else memory.user(user, space=space).health()
    if as_json:
        print_json({"health": health} if user is not None else {"stats": stats, "health": health})
    else:
        page = _page(stats, health) if user is None else [_parts(health.components)]
        whose = "the memory" if user is None else f"the memory of {harmless(user)}"
        console().print(Group(_head(whose, health), *page))
    if health.status == "failing" or health.alerts:
        raise typer.Exit(1)


def _with_bots(health: Health, store: str | None) -> Health:
    """Add the bots that other processes run on this store."""
    from aforesaid.bots.running import bots_of  # noqa: PLC0415 - brings what bots need

    bots = bots_of(load_settings().store if store is None else store, datetime.now(UTC))
    failing = any(bot.status == "failing" for bot in bots)
    return replace(health, status="failing" if failing else health.status, components=(*health.components, *bots))


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


def _head(whose: str, health: Health) -> RenderableType:
    mark, style = _MARKS[health.status]
    alerts = f", {counted(len(health.alerts), 'alert')}" if health.alerts else ""
    when = "" if health.checked_at is None else f"   {local_time(health.checked_at)}"
    line = Text.assemble((f"{mark} ", style), whose, " is ", (health.status, style), alerts, (when, "dim"))
    return Panel(line, box=box.ROUNDED, border_style=style, expand=False, padding=(0, 2))


def _page(stats: Stats, health: Health) -> Iterator[RenderableType]:
    if health.alerts:
        yield _alerts(health.alerts)
    yield _totals(stats, health.storage)
    yield _parts(health.components)
    recent = [operation for operation in health.operations if operation.calls and operation.name != "stats"]
    if recent:
        yield _operations(recent)


def _alerts(alerts: Sequence[Alert]) -> RenderableType:
    lines = [
        Text.assemble(("! ", "bold red"), harmless(alert.text), (f"   since {local_time(alert.since)}", "dim"))
        for alert in alerts
    ]
    return Padding(Group(*lines), (0, 2))


def _totals(stats: Stats, storage: Storage | None) -> RenderableType:
    table = Table.grid(padding=(0, 3))
    for _ in range(4):
        table.add_column(justify="right")
    cells = [_total(getattr(stats, name), noun) for name, noun in _TOTALS.items()]
    for start in range(0, len(cells), 4):
        table.add_row(*cells[start : start + 4])
    return Padding(Group(table, Text(_size(stats, storage), style="dim")), (1, 2, 0, 2))


def _total(number: int, noun: str) -> Text:
    figure, word = counted(number, noun).split(" ", 1)
    return Text.assemble(f"{figure} ", (word, "dim"))


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
        table.add_row(name, _number(part.message_count), _number(part.waiting), _ago(part.last_update), _details(part))
    return table


def _details(part: Component) -> Text:
    facts = ", ".join(f"{name}: {harmless(value)}" for name, value in part.facts)
    issues = "".join(f"\n{harmless(issue)}" for issue in part.issues)
    return Text.assemble((facts, "dim"), (issues if facts else issues.lstrip("\n"), "red"))


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
