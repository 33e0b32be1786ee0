"""Tables of `bench/eval.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich import box
from rich.table import Column, Table
from rich.text import Text

from aforesaid.cli.options import console, harmless, say
from evaluation.memories import FactReport, MemoryReport, Sample

NOTHING: Final = "–"


def show_facts(report: FactReport) -> None:
    """Print the figures of transcripts with facts: whole, by language, and by kind of chat."""
    # Two short columns more than the others, and still narrow enough for 80 columns.
    table = table_of(
        "facts",
        "turns",
        "facts",
        "cover-\nage",
        "preci-\nsion",
        "chan-\nges",
        "instruc-\ntions",
        "ρ",
        "active",
        "super-\nseded",
    )
    kinds = [(f"chat: {name}", figures) for name, figures in report.kinds.items() if name]
    for name, figures in [("all", report.overall), *report.languages.items(), *kinds]:
        table.add_row(
            harmless(name),
            f"{figures.turns:,}",
            f"{figures.facts:,}",
            *map(percent, (figures.coverage, figures.precision, figures.changes, figures.instructions)),
            NOTHING if figures.importance is None else f"{figures.importance:.2f}",
            f"{figures.memories:,}",
            f"{figures.superseded:,}",
        )
    print_table(table)
    _show_samples("transcripts", report.samples)


def show_memories(reports: Sequence[MemoryReport]) -> None:
    """Print the figures of memories, a row for each data set."""
    figures = ("turns", "labels", "found", "in\nwords", "right\nkind", "precise\nat least", "learned", "R@10")
    table = table_of("memories", *figures)
    for report in reports:
        shares = (report.found, report.covered, report.typed, report.precise)
        table.add_row(
            harmless(report.format),
            f"{report.turns:,}",
            f"{report.labels:,}",
            *map(percent, shares),
            f"{report.memories:,}",
            percent(report.recalled),
        )
    print_table(table)
    for report in reports:
        _show_samples(report.format, report.samples)


def _show_samples(title: str, samples: Sequence[Sample]) -> None:
    if samples:
        say(Text.assemble("\n", (title, "bold")))
    for each in samples:
        say(f"  [{each.category.upper()}] {harmless(each.memory)}")
        say(Text(f"      {harmless(' '.join(each.said.split()))[:300]}", style="dim"))


def table_of(title: str, *columns: str) -> Table:
    """Return an empty table."""
    # Narrow enough for 80 columns.
    table = Table(Column(title), box=box.SIMPLE_HEAD, show_edge=False, padding=0)
    for column in columns:
        table.add_column(column, justify="right")
    return table


def print_table(table: Table) -> None:
    """Print a table after an empty line."""
    say("")
    console().print(table)


def percent(share: float | None) -> str:
    """Return a share in percent, or a dash."""
    return NOTHING if share is None else f"{100 * share:.1f}"


def number(value: float | None, digits: int) -> str:
    """Return a number with some digits, or a dash."""
    return NOTHING if value is None else f"{value:.{digits}f}"
