"""Replaces the text between two markers on a documentation page."""

from __future__ import annotations

from pathlib import Path


def fill(page: str, name: str, text: str) -> str:
    """Return the page with the text between the markers of this name replaced."""
    begin, end = f"<!-- {name}: written by the benchmark -->\n", f"<!-- end of {name} -->\n"
    before, first, rest = page.partition(begin)
    _, second, after = rest.partition(end)
    if not first or not second:
        raise ValueError(f"the page has no place for {name!r}: {begin.strip()} … {end.strip()}")
    return f"{before}{begin}\n{text}\n\n{end}{after}"


def write(page: Path, parts: dict[str, str], charts: dict[str, str]) -> None:
    """Update every section of a page, and write the charts next to it."""
    text = page.read_text(encoding="utf-8")
    for name, part in parts.items():
        text = fill(text, name, part)
    for name, chart in charts.items():
        (page.parent / name).write_text(chart, encoding="utf-8")
    page.write_text(text, encoding="utf-8")
