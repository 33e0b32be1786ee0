"""The results of `make bench-growth` as a table and charts."""

from __future__ import annotations

import json
from math import log
from pathlib import Path
from typing import Any

from reports import pages, svg
from reports.machine import sentence

Figures = dict[str, Any]
WAYS = {
    "one": "one person, default profile",
    "many": "many people of 1,000 messages each, default profile",
    "log-one": "one person, the log alone",
    "log-many": "many people of 1,000 messages each, the log alone, found by words",
    "people": "many people of 10 messages each, the log alone, found by words",
    "spaces": "many spaces of 100 messages each, the log alone, found by words",
}
NAMES = {
    "fill": "store, in change sets of 1,000: ms per message",
    "add": "one add, synced: ms",
    "floor_add": "FTS5 alone, one insert, synced: ms",
    "search": "search: ms",
    "floor_search": "FTS5 alone, search: ms",
    "first_search": "first search after opening: ms",
    "context": "context of 8,000 tokens: ms",
    "first_upkeep": "upkeep of everything: ms per message",
    "upkeep": "upkeep of 20 new messages: ms per message",
    "nothing_due": "upkeep with nothing due: ms",
    "open": "open: ms",
    "verify": "verify everything: ms",
    "memory_mb": "memory of the process: MB",
    "bytes": "on the disk: bytes per message",
}


def value(found: Figures, key: str) -> float | None:
    """Return a figure; the median, where there are several."""
    given = found.get(key)
    return given["p50"] if isinstance(given, dict) else given


def points(found: Figures, key: str) -> list[tuple[float, float]]:
    """Return a figure at every size."""
    given = [(float(size), value(each, key)) for size, each in found.items()]
    return [(size, each) for size, each in given if each is not None]


def slope(found: Figures, key: str) -> float | None:
    """Return the exponent of growth: 0 is constant, 1 is linear. Least squares on the logarithms."""
    given = [(log(size), log(each)) for size, each in points(found, key) if each > 0]
    if len(given) < 2:
        return None
    middle = sum(x for x, _ in given) / len(given)
    height = sum(y for _, y in given) / len(given)
    return sum((x - middle) * (y - height) for x, y in given) / sum((x - middle) ** 2 for x, _ in given)


def _figure(found: Figures, key: str) -> str:
    given = value(found, key)
    if given is None:
        return "–"
    if key in {"add", "search", "context", "floor_add", "floor_search"}:
        return f"{_short(given)} / {_short(found[key]['p99'])}"
    return _short(given)


def _short(given: float) -> str:
    if given >= 100:
        return f"{given:,.0f}"
    return f"{given:.1f}" if given >= 10 else f"{given:.2f}" if given >= 0.1 else f"{given:.3f}"


def table(results: Figures) -> str:
    """Return each figure at the largest size of each kind of growth, with its slope. Two figures are p50 and p99."""
    ways = results["ways"]
    made = [
        f"| largest size, and slope | {' | '.join(WAYS[way] for way in ways)} |",
        "|---" * (len(ways) + 1) + "|",
        f"| stored | {' | '.join(f'{max(map(int, found)):,}' for found in ways.values())} |",
    ]
    for key, name in NAMES.items():
        cells = [_largest(found, key) for found in ways.values()]
        if any(each != "–" for each in cells):
            made.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(made)


def _largest(found: Figures, key: str) -> str:
    figure, grown = _figure(found[max(found, key=int)], key), slope(found, key)
    return figure if grown is None else f"{figure} ({grown:+.2f})"


def charts(results: Figures) -> dict[str, str]:
    """Return the charts by file name."""
    shown = ("add", "search", "context", "upkeep", "open", "verify")
    made = {}
    for way, found in results["ways"].items():
        series = {}
        for key in shown:
            grown = slope(found, key)
            name = NAMES[key].partition(":")[0]
            series[name if grown is None else f"{name} ({grown:+.2f})"] = points(found, key)
        made[f"scaling-{way}.svg"] = svg.lines(
            f"How cost grows: {WAYS[way]} (slope)", "messages stored", "milliseconds", series
        )
    return made


def write_page(page: Path, results: Figures) -> None:
    """Update the tables and charts of a page."""
    pages.write(page, {"setting": sentence(results["machine"]), "table": table(results)}, charts(results))
    page.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def write_results(folder: Path, results: Figures) -> None:
    """Write figures, table and charts to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scaling.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (folder / "scaling.md").write_text(f"{table(results)}\n", encoding="utf-8")
    for name, chart in charts(results).items():
        (folder / name).write_text(chart, encoding="utf-8")
