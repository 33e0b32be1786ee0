"""`aforesaid bench`: how quick it is on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import anyio
import typer
from rich.table import Table

from aforesaid.cli.options import AsJson
from aforesaid.cli.show import complain, print_json, progress_bar, say
from aforesaid.errors import InvalidInput
from aforesaid.evaluation.speed import BUDGET, TOGETHER, Latency, SpeedReport, measure_speed

_IN_MEMORY: Final = {"tmpfs", "ramfs"}


def bench(
    messages: Annotated[
        int, typer.Option("--messages", "-n", min=100, max=100_000, help="How many messages to store.")
    ] = 1_000,
    folder: Annotated[
        Path | None,
        typer.Option("--folder", help="On which disk to measure. Default: where the system keeps temporary files."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure how quick it is on this machine: adding, searching, building contexts, beside what the disk can do.

    The memory that is measured is a temporary one, filled with made-up talk and gone afterwards: nothing of yours is
    read or changed, no model is asked. Takes about a minute. Example:

        aforesaid bench --folder .
    """
    if folder is not None and not folder.is_dir():
        raise InvalidInput(f"there is no folder {folder}; name one on the disk that is to be measured")
    with progress_bar("bench", hidden=as_json) as progress:
        report = anyio.run(partial(measure_speed, messages, folder, progress))
    if as_json:
        print_json(report)
    else:
        _show(report)
    if not report.sound:
        complain("something that was acknowledged is missing or damaged; this must not be: please report it")
        raise typer.Exit(1)


def _show(report: SpeedReport) -> None:
    say(
        f"{report.messages:,} messages in {report.folder} ({report.file_system}); Python {report.python}, "
        f"SQLite {report.sqlite}, {report.machine}, {report.cores} cores"
    )
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_column(style="dim")
    for label, figure, more in _lines(report):
        table.add_row(label, figure, more)
    say(table)
    if report.file_system in _IN_MEMORY:
        say(f"\n{report.folder} lies in memory, where a sync costs nothing: name a folder on a disk with --folder.")


def _lines(report: SpeedReport) -> Iterator[tuple[str, str, str]]:
    yield "one page written and synced, p50", _ms(report.sync.p50_ms), f"{_slowest(report.sync)}; the disk's limit"
    yield "one durable add, p50", _ms(report.add.p50_ms), _slowest(report.add)
    yield f"durable adds, {TOGETHER} callers", _rate(report.adds_together_per_second), "they share syncs"
    yield "upkeep: embed, summarise, learn", _rate(report.upkeep_per_second), "in the background"
    yield "open", _ms(report.open_ms), "and read the newest message"
    yield "first search", _ms(report.first_search_ms), "it loads the encoder"
    yield "search, p50", _ms(report.search.p50_ms), _slowest(report.search)
    yield f"context of {BUDGET:,} tokens, p50", _ms(report.context.p50_ms), _slowest(report.context)
    yield "on the disk, a message", f"{report.bytes_per_message / 1000:,.1f} kB", "with all that is made of it"
    yield "afterwards", "sound" if report.sound else "WRONG", "all there, every hash agrees"


def _rate(per_second: float) -> str:
    return f"{per_second:,.0f} /s"


def _slowest(taken: Latency) -> str:
    return f"p99 {_ms(taken.p99_ms)}"


def _ms(milliseconds: float) -> str:
    return f"{milliseconds:,.0f} ms" if milliseconds >= 100 else f"{milliseconds:.3g} ms"  # noqa: PLR2004 - three digits
