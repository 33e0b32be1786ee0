"""`bench/eval.py speed`: measure speed on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import anyio
import typer
from rich.table import Table

from aforesaid.cli.options import AsJson, complain, print_json, progress_bar, say
from aforesaid.domain.checks import counted
from aforesaid.errors import InvalidInput
from evaluation.speed import BUDGET, TOGETHER, Latency, SpeedReport, measure_speed

_IN_MEMORY: Final = {"tmpfs", "ramfs"}


def bench(
    messages: Annotated[
        int,
        typer.Option("--messages", "-n", min=100, max=100_000, help="Number of messages to store. Example: -n 10000"),
    ] = 1_000,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder",
            help="A folder on the disk to measure. Default: the system's temporary folder. Example: --folder .",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure adding, searching and building contexts on this machine, next to the speed of its disk.

    Uses a temporary store with generated messages and deletes it afterwards: your own memory is not read or changed,
    and no model is called. Takes about a minute. Exits with 1 if an acknowledged message is missing. Example:

        python bench/eval.py speed --folder .
    """
    if folder is not None and not folder.is_dir():
        raise InvalidInput(f"there is no folder {folder}; pass an existing folder on the disk to measure")
    with progress_bar("bench", hidden=as_json) as progress:
        report = anyio.run(partial(measure_speed, messages, folder, progress))
    if as_json:
        print_json(report)
    else:
        _show(report)
    if not report.sound:
        complain("an acknowledged message is missing or damaged; this is a bug, please report it")
        raise typer.Exit(1)


def _show(report: SpeedReport) -> None:
    say(
        f"{counted(report.messages, 'message')} in {report.folder} ({report.file_system}); Python {report.python}, "
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
        say(f"\n{report.folder} is in RAM, where a sync costs nothing; pass a folder on a disk with --folder.")


def _lines(report: SpeedReport) -> Iterator[tuple[str, str, str]]:
    yield "one page written and synced, p50", _ms(report.sync.p50_ms), f"{_p99(report.sync)}; the disk's limit"
    yield "one durable add, p50", _ms(report.add.p50_ms), _p99(report.add)
    yield f"durable adds, {TOGETHER} callers", _rate(report.adds_together_per_second), "they share disk syncs"
    yield "upkeep: embed, summarise, learn", _rate(report.upkeep_per_second), "in the background"
    yield "open", _ms(report.open_ms), "including reading the newest message"
    yield "first search", _ms(report.first_search_ms), "loads the encoder"
    yield "search, p50", _ms(report.search.p50_ms), _p99(report.search)
    yield f"context of {BUDGET:,} tokens, p50", _ms(report.context.p50_ms), _p99(report.context)
    yield "disk space per message", f"{report.bytes_per_message / 1000:,.1f} kB", "with its index, vector and summaries"
    yield "verification", "ok" if report.sound else "WRONG", "all messages present, all hashes match"


def _rate(per_second: float) -> str:
    return f"{per_second:,.0f} /s"


def _p99(taken: Latency) -> str:
    return f"p99 {_ms(taken.p99_ms)}"


def _ms(milliseconds: float) -> str:
    return f"{milliseconds:,.0f} ms" if milliseconds >= 100 else f"{milliseconds:.3g} ms"
