"""The benchmarks of the docs run, at a small size; what they write is what stands in the docs."""

from __future__ import annotations

import importlib
import json
import os
import re
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
LONG = pytest.mark.skipif("not config.getoption('--torture')", reason="it takes as long as 200 other tests")


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The list of the measured libraries."""
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    yield importlib.import_module("peers.registry")
    for name in [name for name in sys.modules if name.partition(".")[0] == "peers"]:
        del sys.modules[name]


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


def transcript(path: Path) -> Path:
    lines = [
        "# id: ann-and-bob",
        "== 2026-05-08 13:56",
        "Ann: I moved to Berlin last week.",
        "Bob: The landlord wants the rent by Friday.",
        "Q single | When does the landlord want the rent? | 2 | by Friday",
        "Q none | What is the name of Bob's cat? | | never said",
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@LONG
def test_aforesaid_is_measured_beside_those_that_are_installed(tmp_path: Path) -> None:
    printed = run(
        "beside_others.py",
        *("--sizes", 100, "--calls", 5, "--rounds", 1, "--embedder", "deterministic", "--embedded", 20),
        *("--only", "aforesaid", "fts5", "--folder", tmp_path, "--results", tmp_path / "results"),
        *("--data", conversation(tmp_path / "chat.json"), "--own", transcript(tmp_path / "own.txt"), "--seconds", 60),
    )
    found = json.loads((tmp_path / "results/comparison.json").read_text(encoding="utf-8"))
    assert {each["key"]: each["questions"] for each in found["labelled"]} == {"locomo": 1, "own": 1}
    ours, fts5 = found["peers"]["aforesaid"], found["peers"]["fts5"]
    assert ours["speed"]["100"]["stored"] == 100
    assert ours["speed"]["100"]["context_items"] > 10
    assert ours["speed"]["100"]["cold_ms"] > 0
    assert ours["speed"]["100"]["unknown"] == 0, "a text was embedded that the others were not given"
    assert fts5["speed"]["100"].keys() >= {"add", "search", "memory_mb", "disk_mb", "cold_ms"}
    for each in (ours, fts5):
        assert {key: asked["text"]["recall_at_10"] for key, asked in each["recall"].items()} == {"locomo": 1, "own": 1}
    assert "| search of 100: p50 / p99 ms |" in printed
    ET.parse(tmp_path / "results/comparison-search.svg")  # noqa: S314 - written a moment ago


def test_two_checkouts_are_compared_operation_by_operation() -> None:
    sizes = ("--small", 5, "--large", 10, "--rounds", 3, "--block", 2, "--pairs", 1)
    printed = run("versions.py", ROOT, "--same", *sizes, "--embedder", "none")
    assert "the other checkout with itself" in printed
    for operation in ("add", "search, 5 messages", "search, 10 messages", "context, 5 messages", "upkeep"):
        (line,) = (line for line in printed.splitlines() if line.strip().startswith(operation))
        low, middle, high = (
            float(each) for each in re.findall(r"\d+\.\d{3}", line)[1::-1] + re.findall(r"to (\S+)", line)
        )
        assert 0 < low <= middle <= high


def test_every_library_describes_itself_without_being_installed(registry: ModuleType) -> None:
    for key in registry.EVERYBODY:
        about = registry.about_peer(key)
        assert about.key == key
        assert all((about.name, about.imports, about.how, about.package or about.version)), key
        assert bool(about.context) is (about.no_context is None), key
        assert about.memory or about.no_context == "none", key
    assert set(registry.NOT_RUN) == {key for key in registry.EVERYBODY if registry.about_peer(key).no_run}


async def test_sqlite_alone_finds_words_whatever_a_question_contains(registry: ModuleType, tmp_path: Path) -> None:
    said = importlib.import_module("peers.contract").Said
    vectors = importlib.import_module("peers.vectors").Vectors([], [])
    fts5 = registry.peer("fts5")
    await fts5.open(tmp_path, vectors)
    await fts5.add_many([said("a", "user", "We moved to Berlin."), said("b", "assistant", "The cat is called Luna.")])
    await fts5.add(said("c", "user", "Is Berlin large? Berlin is."))
    assert await fts5.search('"moving" AND NOT (Berlin*', 10) == ["a", "c"]
    assert await fts5.search("Berlin", 1) == ["c"]
    assert await fts5.search("?!", 10) == []
    await fts5.close()
    await fts5.open(tmp_path, vectors)
    assert await fts5.search("cats", 10) == ["b"]
    await fts5.close()


@LONG
def test_growth_is_measured(tmp_path: Path) -> None:
    printed = run(
        "growing.py",
        *("--sizes", 10, 100, "--calls", 3, "--ways", "many"),
        *("--folder", tmp_path, "--results", tmp_path / "results"),
    )
    found = json.loads((tmp_path / "results/scaling.json").read_text(encoding="utf-8"))
    assert found["ways"]["many"]["100"]["search"]["p50"] > 0
    assert set(found["ways"]["many"]["100"]) >= {"fill", "add", "context", "upkeep", "open", "verify"}
    assert "slope" in printed
    ET.parse(tmp_path / "results/scaling-many.svg")  # noqa: S314


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
    return {**plain, **without, "memory": True, "speed": {}, **changes}


def cells(table: str) -> dict[tuple[str, str], str]:
    """Return the cells of tables by row and column."""
    found: dict[tuple[str, str], str] = {}
    for part in table.split("\n\n"):
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if "|" in line]
        found |= {(row[0], head): cell for row in rows[2:] for head, cell in zip(rows[0][1:], row[1:], strict=True)}
    return found


def test_the_table_says_what_was_not_measured_and_why(reports: dict[str, ModuleType]) -> None:
    slow = peer(name="Slow", speed={"10": {"over": 60, "stored": 7, "fill_seconds": 61}})
    broken = peer(name="Broken", speed={"10": {"failed": "OSError: no"}}, syncs=None)
    absent = peer(name="Absent", no_run="needs a network", no_search="no", no_context="no", no_disk="no")
    forgetful = peer(name="Forgetful", no_disk="not durable", no_search="no search here", syncs=0.0)
    engine = peer(name="Engine", memory=False, no_context="none", recall={"own": {"text": {"recall_at_10": 0.5}}})
    peers = {each["name"]: each for each in (engine, slow, broken, absent, forgetful)}
    labelled = [{"key": "own", "title": "own", "questions": 1}, {"key": "locomo", "title": "LoCoMo", "left_out": "no"}]
    table = reports["peers"].table({"sizes": [10, 20], "labelled": labelled, "peers": peers})
    found = cells(table)
    batches, searched = "adds in batches, findable: messages/s, 10", "search of 10: p50 / p99 ms"
    assert found["Slow", batches] == "over 60 s: 7 stored by then"
    assert found["Slow", searched] == "over 60 s"
    assert found["Broken", searched] == "failed: OSError: no"
    assert found["Forgetful", searched] == "no search here"
    assert found["Slow", "search of 20: p50 / p99 ms"] == "not tried: too slow at the size before"
    durable = "on the disk when `add` returns (syncs per add)"
    assert found["Slow", durable] == "yes (1.0)"
    assert found["Broken", durable] == "not looked at: strace is missing"
    assert found["Forgetful", durable] == "not durable"
    assert found["Engine", "own: recall@10"] == "50.0%"
    assert found["Slow", "own: recall@10"] == "left out"
    assert not any("LoCoMo" in head or row == "Absent" for row, head in found)
    assert ("Engine", "context from 10: p50 / p99 ms") not in found
    assert [row for row, head in found if head == durable] == [
        *("Slow", "Broken", "Forgetful"),
        *("**search engines**", "Engine"),
    ]


def test_lines_that_share_a_colour_are_told_apart(reports: dict[str, ModuleType]) -> None:
    svg = reports["svg"]
    series = {f"line {number}": [(10, number), (100, number)] for number in range(1, len(svg.COLOURS) + 3)}
    root = ET.fromstring(svg.lines("Many", "n", "ms", series))  # noqa: S314
    drawn = [(each.attrib["stroke"], each.attrib.get("stroke-dasharray")) for each in root.iter(f"{SVG}polyline")]
    assert len(set(drawn)) == len(series)


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
