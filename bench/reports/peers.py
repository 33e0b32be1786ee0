"""The results of `make bench-peers` as tables and charts."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from reports import pages, svg
from reports.machine import sentence

Results = dict[str, Any]
Column = tuple[str, Callable[[Results], str]]


def milliseconds(value: float) -> str:
    """Format a time with its significant digits."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def at_size(
    size: int, tell: Callable[[Results], str | None], over: str = "over {over:.0f} s"
) -> Callable[[Results], str]:
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
            return over.format(**found)
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


def recalled(key: str) -> Callable[[Results], str]:
    """Return recall@10 on a labelled set, the better of both ways to store a turn."""

    def told(peer: Results) -> str:
        if peer["no_run"] is not None or peer["no_search"] is not None:
            return "not run" if peer["no_run"] is not None else "no search"
        asked = list((peer.get("recall", {}).get(key) or {}).values())
        found = [each["recall_at_10"] for each in asked if "recall_at_10" in each]
        if found:
            return f"{max(found):.1%}"
        if not asked:
            return "left out"
        return f"failed: {asked[0]['failed']}" if "failed" in asked[0] else f"over {asked[0]['over']:.0f} s"

    return told


def _adding(results: Results) -> list[Column]:
    sizes = results["sizes"]
    made: list[Column] = [("on the disk when `add` returns (syncs per add)", durable)]
    made += [
        (f"one add, with {size:,} stored: p50 / p99 ms", at_size(size, spread("add")))
        for size in dict.fromkeys((sizes[0], sizes[-1]))
    ]
    late = "over {over:.0f} s: {stored:,} stored by then"
    made += [(f"adds in batches, findable: messages/s, {size:,}", at_size(size, rate, late)) for size in sizes]
    return made


def _searching(results: Results) -> list[Column]:
    made: list[Column] = [
        (f"{each['title']}: recall@10", recalled(each["key"])) for each in results["labelled"] if "left_out" not in each
    ]
    made += [
        (f"search of {size:,}: p50 / p99 ms", unless("no_search", at_size(size, spread("search"))))
        for size in results["sizes"]
    ]
    return made


def _contexts(results: Results) -> list[Column]:
    return [
        (f"context from {size:,}: p50 / p99 ms", unless("no_context", at_size(size, spread("context"))))
        for size in results["sizes"]
    ]


def _resources(results: Results) -> list[Column]:
    sizes = results["sizes"]
    made: list[Column] = [(f"memory, {size:,}: MB", at_size(size, megabytes("memory_mb"))) for size in sizes]
    made += [(f"on the disk, {size:,}: MB", unless("no_disk", at_size(size, megabytes("disk_mb")))) for size in sizes]
    made += [(f"cold start, {size:,}: ms", unless("no_disk", at_size(size, cold))) for size in sizes]
    made.append(("import: ms", lambda peer: milliseconds(peer["import_ms"])))
    return made


TOPICS = {"Adding": _adding, "Searching": _searching, "Contexts": _contexts, "Resources": _resources}


def grouped(rows: Sequence[tuple[Results, list[str]]]) -> str:
    """Return a row for each library: first the memories, then the search engines below a line that names them."""

    def lines(*, memory: bool) -> list[str]:
        return [f"| {peer['name']} | {' | '.join(cells)} |" for peer, cells in rows if peer["memory"] is memory]

    memories, engines = lines(memory=True), lines(memory=False)
    between = ["| **search engines** |" + " |" * len(rows[0][1])] if engines else []
    return "\n".join([*memories, *between, *engines])


def table(results: Results) -> str:
    """Return a table for each topic. Libraries that were not run, or build no context, are not in its rows."""
    run = [peer for peer in results["peers"].values() if peer["no_run"] is None]
    parts = []
    for topic, columns_of in TOPICS.items():
        peers = [peer for peer in run if topic != "Contexts" or peer["no_context"] is None]
        if peers:
            columns = columns_of(results)
            heads = f"| | {' | '.join(label for label, _ in columns)} |\n" + "|---" * (len(columns) + 1) + "|"
            rows = grouped([(peer, [tell(peer) for _, tell in columns]) for peer in peers])
            parts.append(f"## {topic}\n\n{heads}\n{rows}")
    return "\n\n".join(parts)


def setting(results: Results) -> str:
    """Return the notes on the machine and the method."""
    lines = [sentence(results["machine"]), f"Vectors by `{results['embedder']}`."]
    lines += [
        f"{each['title']}: left out, {each['left_out']}."
        if "left_out" in each
        else f"{each['title']}: {each['conversations']} conversations, {each['turns']:,} turns, "
        f"{each['questions']:,} questions."
        for each in results["labelled"]
    ]
    lines += ["", "| | version | how it is set up | context |", "|---|---|---|---|"]

    def told(peer: Results) -> list[str]:
        context = "" if peer["no_run"] else peer["context_is"] or peer["no_context"]
        return [peer["version"], peer["no_run"] or peer["how"], context]

    return "\n".join([*lines, grouped([(peer, told(peer)) for peer in results["peers"].values()])])


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

    made = {
        "comparison-search.svg": svg.lines(
            "Search: median time", "messages stored", "milliseconds", over_sizes("search")
        ),
        "comparison-add.svg": svg.lines(
            "One add: median time until it returns", "messages stored", "milliseconds", over_sizes("add")
        ),
    }
    for each in results["labelled"]:
        if "left_out" not in each:
            shares = {peer["name"]: _share(recalled(each["key"])(peer)) for peer in peers if peer["no_run"] is None}
            title = f"{each['title']}: turns found among the first ten"
            made[f"comparison-recall-{each['key']}.svg"] = svg.bars(title, "%", shares)
    return made


def _share(said: str) -> float | str:
    return float(said.rstrip("%")) if said.endswith("%") else said


def pictures(drawn: dict[str, str]) -> str:
    """Return the lines that show the charts."""
    names = {name: Path(name).stem.removeprefix("comparison-").replace("-", ", ").capitalize() for name in drawn}
    return "\n\n".join(f"![{shown}]({name})" for name, shown in names.items())


def write_page(page: Path, results: Results) -> None:
    """Update the tables and charts of a page."""
    drawn = charts(results)
    pages.write(page, {"setting": setting(results), "table": table(results), "charts": pictures(drawn)}, drawn)
    page.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def write_results(folder: Path, results: Results) -> None:
    """Write figures, table and charts to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "comparison.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (folder / "comparison.md").write_text(f"{setting(results)}\n\n{table(results)}\n", encoding="utf-8")
    for name, chart in charts(results).items():
        (folder / name).write_text(chart, encoding="utf-8")
