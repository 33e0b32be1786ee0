"""The results of `make bench-peers` as tables and charts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reports import pages, svg
from reports.machine import sentence

Results = dict[str, Any]
Row = tuple[str, Callable[[Results], str]]


def milliseconds(value: float) -> str:
    """Format a time with its significant digits."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def at_size(size: int, tell: Callable[[Results], str | None]) -> Callable[[Results], str]:
    """Return the figures of one size, or the reason why there are none."""

    def told(peer: Results) -> str:
        if peer["no_run"] is not None:
            return "not run"
        found = peer["speed"].get(str(size))
        if found is None:
            return "not tried: too slow at the size before"
        if "failed" in found:
            return f"failed: {found['failed']}"
        if "over" in found:
            return f"over {found['over']:.0f} s: {found['stored']:,} stored by then"
        said = tell(found)
        return "–" if said is None else said

    return told


def spread(name: str) -> Callable[[Results], str | None]:
    """Format p50 and p99."""

    def told(found: Results) -> str | None:
        if name not in found:
            return None
        return f"{milliseconds(found[name]['p50'])} / {milliseconds(found[name]['p99'])}"

    return told


def unless(reason: str, tell: Callable[[Results], str]) -> Callable[[Results], str]:
    """Return the figure, or the reason why there is none."""
    return lambda peer: (peer["no_run"] and "not run") or peer[reason] or tell(peer)


def rate(found: Results) -> str:
    """Return messages per second, stored in batches and searchable."""
    return f"{found['stored'] / (found['fill_seconds'] + found['settle_seconds']):,.0f}"


def megabytes(name: str) -> Callable[[Results], str | None]:
    """Format a size."""
    return lambda found: f"{found[name]:,.0f}" if name in found else None


def cold(found: Results) -> str | None:
    """Format the time to the first answer."""
    return None if found.get("cold_ms") is None else milliseconds(found["cold_ms"])


def durable(peer: Results) -> str:
    """Return whether an add is on the disk when it returns."""
    if peer["no_run"] or peer["no_disk"]:
        return (peer["no_run"] and "not run") or str(peer["no_disk"])
    if peer.get("syncs") is None:
        return "not looked at: strace is missing"
    return f"yes ({peer['syncs']:.1f})" if peer["syncs"] >= 1 else f"no ({peer['syncs']:.1f})"


def recalled(peer: Results) -> str:
    """Return recall@10, the better of both ways to store a turn."""
    if peer.get("no_search"):
        return "no search" if peer["no_run"] is None else "not run"
    asked = list((peer.get("recall") or {}).values())
    found = [each["recall_at_10"] for each in asked if "recall_at_10" in each]
    if found:
        return f"{max(found):.1%}"
    if not asked:
        return "left out"
    return f"failed: {asked[0]['failed']}" if "failed" in asked[0] else f"over {asked[0]['over']:.0f} s"


def rows(results: Results) -> list[Row]:
    """Return the rows of the table."""
    sizes = results["sizes"]
    made: list[Row] = [("on the disk when `add` returns (syncs per add)", durable)]
    made += [
        (f"one add, with {size:,} stored: p50 / p99 ms", at_size(size, spread("add"))) for size in (sizes[0], sizes[-1])
    ]
    made += [(f"adds in batches, findable: messages/s, {size:,}", at_size(size, rate)) for size in sizes]
    made += [
        (f"search of {size:,}: p50 / p99 ms", unless("no_search", at_size(size, spread("search")))) for size in sizes
    ]
    made.append(("LoCoMo, turns found: recall@10", recalled))
    made += [
        (f"context from {size:,}: p50 / p99 ms", unless("no_context", at_size(size, spread("context"))))
        for size in sizes
    ]
    made += [(f"memory of the process, {size:,}: MB", at_size(size, megabytes("memory_mb"))) for size in sizes]
    made += [(f"on the disk, {size:,}: MB", unless("no_disk", at_size(size, megabytes("disk_mb")))) for size in sizes]
    made += [(f"cold start, {size:,}: ms", unless("no_disk", at_size(size, cold))) for size in sizes]
    made.append(("import: ms", lambda peer: milliseconds(peer["import_ms"])))
    return made


def table(results: Results) -> str:
    """Return the whole table."""
    peers = results["peers"].values()
    lines = [
        "| | " + " | ".join(f"{peer['name']} {peer['version']}" for peer in peers) + " |",
        "|---" * (len(peers) + 1) + "|",
    ]
    lines += [f"| {label} | " + " | ".join(tell(peer) for peer in peers) + " |" for label, tell in rows(results)]
    return "\n".join(lines)


def setting(results: Results) -> str:
    """Return the notes on the machine and the method."""
    data = results["locomo"]
    labelled = (
        f"LoCoMo was left out: {data['left_out']}."
        if "left_out" in data
        else f"LoCoMo: {data['conversations']} conversations, {data['turns']:,} turns, {data['questions']:,} questions."
    )
    lines = [
        sentence(results["machine"]),
        f"Vectors by `{results['embedder']}`. {labelled}",
        "",
        "| | how it is set up | context |",
        "|---|---|---|",
    ]
    for peer in results["peers"].values():
        told = "" if peer["no_run"] else peer["context_is"] or peer["no_context"]
        lines.append(f"| {peer['name']} {peer['version']} | {peer['no_run'] or peer['how']} | {told} |")
    return "\n".join(lines)


def charts(results: Results) -> dict[str, str]:
    """Return the charts by file name."""
    peers, sizes = results["peers"].values(), results["sizes"]

    def over_sizes(name: str) -> dict[str, list[tuple[float, float]]]:
        return {
            peer["name"]: [
                (size, peer["speed"][str(size)][name]["p50"])
                for size in sizes
                if name in peer["speed"].get(str(size), {})
            ]
            for peer in peers
            if peer["no_run"] is None
        }

    recall = {peer["name"]: _share(peer) for peer in peers if peer["no_run"] is None}
    return {
        "comparison-search.svg": svg.lines(
            "Search: median time", "messages stored", "milliseconds", over_sizes("search")
        ),
        "comparison-add.svg": svg.lines(
            "One add: median time until it returns", "messages stored", "milliseconds", over_sizes("add")
        ),
        "comparison-recall.svg": svg.bars("LoCoMo: turns found among the first ten", "%", recall),
    }


def _share(peer: Results) -> float | str:
    said = recalled(peer)
    return float(said.rstrip("%")) if said.endswith("%") else said


def write_page(page: Path, results: Results) -> None:
    """Update the tables and charts of a page."""
    pages.write(page, {"setting": setting(results), "table": table(results)}, charts(results))
    page.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def write_results(folder: Path, results: Results) -> None:
    """Write figures, table and charts to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "comparison.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (folder / "comparison.md").write_text(f"{setting(results)}\n\n{table(results)}\n", encoding="utf-8")
    for name, chart in charts(results).items():
        (folder / name).write_text(chart, encoding="utf-8")
