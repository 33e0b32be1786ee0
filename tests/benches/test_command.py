"""`bench/eval.py`, from the files to the figures."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from evaluation.commands import commands as app
from typer.testing import CliRunner, Result

from benches import samples

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("AFORESAID_STORE", str(tmp_path / "not to be touched.db"))

    def run(*words: str) -> Result:
        result = CliRunner().invoke(app, [*words])
        assert not list(temporary.iterdir())
        assert not (tmp_path / "not to be touched.db").exists()
        return result

    return run


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    samples.write(folder / "locomo.json", samples.locomo())
    samples.write(folder / "longmemeval_x.json", samples.longmemeval())
    return folder


def as_json(result: Result) -> Any:  # noqa: ANN401
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)["data_sets"]


def without_times(reports: Any) -> Any:  # noqa: ANN401
    for report in reports:
        for ranking in report["rankings"]:
            del ranking["p50_ms"], ranking["p95_ms"]
    return reports


def test_everything_as_json(run: Run, data: Path) -> None:
    locomo, haystack = as_json(run(str(data), "--arms", "keyword", "--baseline", "like", "--json"))
    assert (locomo["format"], locomo["conversations"], locomo["turns"]) == ("LoCoMo", 1, 5)
    assert (locomo["questions"], locomo["in_headline"], locomo["apart"]) == (4, 3, 1)
    assert {"what": "questions without evidence", "number": 1} in locomo["left_out"]
    like, keyword = locomo["rankings"]
    assert (like["ranking"], keyword["ranking"]) == ("like", "keyword")
    assert like["overall"]["questions_by_turn"] == 3
    assert keyword["overall"]["by_turn"]["recall_at_1"] == pytest.approx((1 + 0.5 + 1) / 3)
    assert keyword["overall"]["by_session"]["recall_at_1"] == pytest.approx((1 + 0.5 + 1) / 3)
    assert [(c["category"], c["apart"]) for c in keyword["categories"]] == [
        ("1 multi-hop", False),
        ("3 open-domain", False),
        ("4 single-hop", False),
        ("5 adversarial", True),
    ]
    assert 0 < keyword["p50_ms"] <= keyword["p95_ms"]
    overall = haystack["rankings"][1]["overall"]
    assert (overall["questions_by_turn"], overall["questions_by_session"]) == (1, 2)


def test_all_rankings_are_measured_by_default(run: Run, data: Path) -> None:
    (report,) = as_json(run(str(data / "locomo.json"), "--json"))
    assert "deterministic" in report["embedder"]
    assert [ranking["ranking"] for ranking in report["rankings"]] == ["keyword", "dense", "all"]


def test_figures_are_the_same_every_time(run: Run, data: Path) -> None:
    samples.beam(data / "beam")
    samples.write(data / "scenes.json", samples.friendsqa())
    samples.write(data / "daily" / "01_simple_items.json", samples.memdaily())
    first, second = (run(str(data), "--baseline", "like", "--json") for _ in range(2))
    assert without_times(as_json(first)) == without_times(as_json(second))


def test_tables_for_people(run: Run, data: Path) -> None:
    result = run(str(data), "--arms", "all,keyword", "--baseline", "like")
    assert result.exit_code == 0, result.output
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    assert "1 conversation, 5 turns, 4 questions asked" in lines
    assert "in the denominator: 3 questions with labelled turns; reported separately: 1" in lines
    assert "in the denominator: 1 question with labelled turns; 2 with labelled sessions" in lines
    assert [line.split()[0] for line in lines if line.startswith(("like", "keyword", "all"))] == [
        "like",
        "keyword",
        "all",
    ] * 4
    assert any(line.startswith("5 adversarial (apart)") for line in lines)
    assert "left out: questions without evidence (1)" in lines
    assert "corrected: malformed evidence ids, repaired (1)" in lines
    assert max(len(line) for line in lines if str(data) not in line) <= 80


def test_words_alone_need_no_embedder(run: Run, data: Path) -> None:
    (report,) = as_json(run(str(data / "locomo.json"), "--arms", "keyword", "--json"))
    assert report["embedder"] == "none"


def test_an_embedder_that_fails_gives_no_figures(run: Run, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AFORESAID_EMBEDDER", "some-model@http://127.0.0.1:9/v1")
    result = run(str(data), "--arms", "dense")
    assert (result.exit_code, "recall cannot be measured" in result.stderr) == (1, True)


def test_a_quick_look(run: Run, data: Path) -> None:
    (report,) = as_json(run(str(data / "locomo.json"), "--arms", "keyword", "--limit", "2", "--json"))
    assert (report["questions"], report["apart"]) == (2, 0)
    assert {"what": "questions outside the sample", "number": 2} in report["left_out"]


def test_a_data_set_whose_questions_all_fall_out_has_no_figures(run: Run, tmp_path: Path) -> None:
    value = samples.locomo()
    value[0]["qa"] = value[0]["qa"][3:4]
    path = samples.write(tmp_path / "locomo.json", value)
    (report,) = as_json(run(str(path), "--arms", "keyword", "--json"))
    assert report["rankings"][0]["overall"]["by_turn"] is None
    assert "–" in run(str(path), "--arms", "keyword").stdout


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--arms", "sparse"], "unknown arms 'sparse'; use one or more of keyword, dense, all"),
        (["--arms", ","], "unknown arms"),
        (["--baseline", "grep"], "unknown baseline 'grep'; use: like"),
    ],
)
def test_wrong_options(run: Run, data: Path, words: list[str], complaint: str) -> None:
    result = run(str(data), *words)
    assert (result.exit_code, complaint in result.stderr) == (2, True)


def test_wrong_files(run: Run, tmp_path: Path) -> None:
    result = run(str(tmp_path))
    assert (result.exit_code, "no labelled conversations" in result.stderr) == (2, True)
    (tmp_path / "half.json").write_text('[{"qa": ', encoding="utf-8")
    result = run(str(tmp_path))
    assert (result.exit_code, "half.json is damaged: line 1, column 9" in result.stderr) == (2, True)


def test_a_turn_that_no_memory_would_take(run: Run, tmp_path: Path) -> None:
    value = samples.locomo()
    value[0]["conversation"]["session_2"][1]["text"] = "ladder " * 3_000_000
    result = run(str(samples.write(tmp_path / "locomo.json", value)), "--arms", "keyword")
    assert (result.exit_code, "aforesaid: the text has 21,000,000 bytes" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    "words",
    [
        ["contexts", "missing.json"],
        ["summaries", "missing.json"],
        ["memories", "missing.json"],
        ["own", "missing"],
        ["answers", "missing.json", "--model", "http://127.0.0.1:9/v1/m", "--judge", "http://127.0.0.1:9/v1/j"],
        ["answers", "chat.txt", "--model", "llama", "--judge", "http://127.0.0.1:9/v1/j"],
        ["answers", "chat.txt"],
        ["missing.json"],
        ["speed", "--folder", "missing"],
    ],
    ids=" ".join,
)
def test_wrong_use_exits_with_2(run: Run, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("chat.txt").write_text(samples.TRANSCRIPT, encoding="utf-8")
    result = run(*words)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    assert not Path("answers.jsonl").exists()


def test_an_answering_model_that_cannot_be_reached_is_a_failure(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("chat.txt").write_text(samples.TRANSCRIPT, encoding="utf-8")
    nobody = "http://127.0.0.1:9/v1/none"
    result = run("answers", "chat.txt", "--model", nobody, "--judge", nobody)
    assert result.exit_code == 1, result.output
    assert "Traceback" not in result.output
