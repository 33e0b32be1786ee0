"""The benchmarks of the docs run, at a small size; what they write is what stands in the docs."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs/explanation"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    """The writers, which lie beside the benchmarks and not in a package."""
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    yield {name: importlib.import_module(f"reports.{name}") for name in ("peers", "growth", "svg", "pages")}
    for name in [name for name in sys.modules if name.partition(".")[0] == "reports"]:
        del sys.modules[name]


def run(program: str, *options: object) -> str:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "bench" / program), *map(str, options)],
        cwd=ROOT,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def conversation(path: Path) -> Path:
    chat = {
        "session_1_date_time": "1:56 pm on 8 May, 2026",
        "session_1": [
            {"dia_id": "D1:1", "speaker": "Ann", "text": "I moved to Berlin last week."},
            {"dia_id": "D1:2", "speaker": "Bob", "text": "The landlord wants the rent by Friday."},
        ],
    }
    asked = [{"question": "Where does Ann live, in Berlin?", "evidence": ["D1:1"], "category": 4}]
    path.write_text(json.dumps([{"sample_id": "a", "conversation": chat, "qa": asked}]), encoding="utf-8")
    return path


def test_aforesaid_is_measured_beside_those_that_are_installed(tmp_path: Path) -> None:
    printed = run(
        "beside_others.py",
        *("--sizes", 50, 100, "--calls", 5, "--rounds", 1, "--embedder", "deterministic", "--embedded", 20),
        *("--only", "aforesaid", "--folder", tmp_path, "--results", tmp_path / "results"),
        *("--data", conversation(tmp_path / "chat.json"), "--seconds", 60),
    )
    found = json.loads((tmp_path / "results/comparison.json").read_text(encoding="utf-8"))
    ours = found["peers"]["aforesaid"]
    assert ours["speed"]["100"]["stored"] == 100
    assert ours["speed"]["100"]["context_items"] > 10
    assert ours["speed"]["100"]["cold_ms"] > 0
    assert ours["recall"]["text"]["recall_at_10"] == 1
    assert ours["speed"]["100"]["unknown"] == 0, "a text was embedded that the others were not given"
    assert "| search of 100: p50 / p99 ms |" in printed
    ET.parse(tmp_path / "results/comparison-search.svg")  # noqa: S314 - written a moment ago


def test_growth_is_measured(tmp_path: Path) -> None:
    printed = run(
        "growing.py",
        *("--sizes", 10, 100, "--calls", 3, "--ways", "one", "many"),
        *("--folder", tmp_path, "--results", tmp_path / "results"),
    )
    found = json.loads((tmp_path / "results/scaling.json").read_text(encoding="utf-8"))
    for way in ("one", "many"):
        assert found["ways"][way]["100"]["search"]["p50"] > 0
        assert set(found["ways"][way]["100"]) >= {"fill", "add", "context", "upkeep", "open", "verify"}
    assert "slope" in printed
    ET.parse(tmp_path / "results/scaling-one.svg")  # noqa: S314


@pytest.mark.parametrize(("page", "writer"), [("comparison", "peers"), ("scaling", "growth")])
def test_the_docs_show_what_was_measured(
    page: str, writer: str, reports: dict[str, ModuleType], tmp_path: Path
) -> None:
    copy = tmp_path / f"{page}.md"
    copy.write_bytes((DOCS / f"{page}.md").read_bytes())
    reports[writer].write_page(copy, json.loads((DOCS / f"{page}.json").read_text(encoding="utf-8")))
    for made in tmp_path.iterdir():
        assert made.read_text(encoding="utf-8") == (DOCS / made.name).read_text(encoding="utf-8"), made.name


def peer(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - figures of every kind
    plain = {"name": "Some", "version": "1", "how": "somehow", "context_is": "newest", "import_ms": 5.0, "syncs": 1.0}
    without = dict.fromkeys(("no_run", "no_disk", "no_search", "no_context"))
    return {**plain, **without, "speed": {}, **changes}


def test_the_table_says_what_was_not_measured_and_why(reports: dict[str, ModuleType]) -> None:
    slow = peer(name="Slow", speed={"10": {"over": 60, "stored": 7, "fill_seconds": 61}})
    broken = peer(name="Broken", speed={"10": {"failed": "OSError: no"}}, syncs=None)
    absent = peer(name="Absent", no_run="needs a network", no_search="no", no_context="no", no_disk="no")
    forgetful = peer(name="Forgetful", no_disk="not durable", no_search="no search here", syncs=0.0)
    peers = {each["name"]: each for each in (slow, broken, absent, forgetful)}
    table = reports["peers"].table({"sizes": [10, 20], "peers": peers})
    rows = {line.split(" | ")[0].strip("| "): line.split(" | ")[1:] for line in table.splitlines()}
    searched = rows["search of 10: p50 / p99 ms"]
    assert searched[0] == "over 60 s: 7 stored by then"
    assert searched[1] == "failed: OSError: no"
    assert searched[2] == "not run"
    assert searched[3].startswith("no search here")
    assert rows["search of 20: p50 / p99 ms"][0] == "not tried: too slow at the size before"
    durable = rows["on the disk when `add` returns (syncs per add)"]
    assert durable[0] == "yes (1.0)"
    assert durable[1] == "not looked at: strace is missing"
    assert durable[3].startswith("not durable")


def test_a_slope_is_how_cost_grows(reports: dict[str, ModuleType]) -> None:
    slope = reports["growth"].slope
    assert slope({"10": {"open": 3}, "100": {"open": 3}}, "open") == pytest.approx(0)
    assert slope({"10": {"open": 3}, "100": {"open": 30}, "1000": {"open": 300}}, "open") == pytest.approx(1)
    assert slope({"10": {"add": {"p50": 2}}, "1000": {"add": {"p50": 20}}}, "add") == pytest.approx(0.5)
    assert slope({"10": {"open": 3}}, "open") is None


def test_charts_are_drawn_to_scale_and_names_are_escaped(reports: dict[str, ModuleType]) -> None:
    chart = reports["svg"].lines("A & B", "n", "ms", {"<one>": [(10, 1), (1_000, 100)], "none": []})
    root = ET.fromstring(chart)  # noqa: S314
    (drawn,) = root.iter(f"{SVG}polyline")
    (x1, y1), (x2, y2) = [tuple(map(float, each.split(","))) for each in drawn.attrib["points"].split()]
    svg = reports["svg"]
    assert (x1, x2) == (svg.LEFT, svg.WIDTH - svg.RIGHT)
    assert y1 > y2
    assert "<one>" in [each.text for each in root.iter(f"{SVG}text")]
    bars = ET.fromstring(reports["svg"].bars("Share", "%", {"half": 50.0, "all": 100.0, "other": "no search"}))  # noqa: S314
    widths = [float(each.attrib["width"]) for each in bars.iter(f"{SVG}rect") if "class" not in each.attrib]
    assert widths[0] * 2 == pytest.approx(widths[1], abs=0.2)
    assert "no search" in [each.text for each in bars.iter(f"{SVG}text")]


def test_a_page_without_a_place_is_refused(reports: dict[str, ModuleType]) -> None:
    with pytest.raises(ValueError, match="no place for 'table'"):
        reports["pages"].fill("# A page\n", "table", "| a |")
