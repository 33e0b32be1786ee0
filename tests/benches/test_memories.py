"""Measuring what is learned, on labelled conversations of our own making."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from evaluation.commands import commands as app
from evaluation.memories import load_cases
from typer.testing import CliRunner

from aforesaid.errors import InvalidInput

LOCOMO = [
    {
        "sample_id": "one",
        "conversation": {
            "speaker_a": "Ann",
            "speaker_b": "Bob",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ann", "dia_id": "D1:1", "text": "I live in Berlin."},
                {"speaker": "Bob", "dia_id": "D1:2", "text": "Well, well."},
                {"speaker": "Bob", "dia_id": "D1:3", "text": "I like chess."},
            ],
        },
        "observation": {
            "session_1_observation": {
                "Ann": [["Ann lives in Berlin.", "D1:1"]],
                "Bob": [["Bob is thoughtful.", "D1:2"], ["Bob owns a boat.", "D9:9"]],
            }
        },
        "qa": [{"question": "Where does Ann live?", "answer": "Berlin", "evidence": ["D1:1"], "category": 4}],
    }
]
MEMDAILY = [
    {
        "tid": 0,
        "message_list": [
            {"mid": 0, "message": "我住在北京。", "time": "2024年04月01日 周一 08:39", "place": "北京"},
            {"mid": 1, "message": "天气不错。", "time": "2024年04月01日 周一 08:40", "place": "北京"},
        ],
        "question_list": [
            {"qid": 0, "question": "我住在哪里？", "target_step_id": [0], "time": "2024年04月05日 周五 11:59"},
        ],
    }
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "locomo.json").write_text(json.dumps(LOCOMO), encoding="utf-8")
    (tmp_path / "daily").mkdir()
    (tmp_path / "daily" / "01_simple.json").write_text(json.dumps(MEMDAILY), encoding="utf-8")
    texts = [{"id": "1", "text": "I prefer tea over coffee."}, {"id": "2", "text": "Nothing here."}]
    labels = [{"id": "1", "memories": [{"type": "preference", "content": "Prefers tea."}]}, {"id": "2", "memories": []}]
    for name, rows in (("dataset.jsonl", texts), ("labels.jsonl", labels)):
        (tmp_path / name).write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return tmp_path


def test_what_was_learned_is_compared_with_the_labels(data: Path) -> None:
    ran = CliRunner().invoke(app, ["memories", str(data), "--json", "--sample", "1"])
    assert ran.exit_code == 0, ran.output
    found = {report["format"]: report for report in json.loads(ran.stdout)["data_sets"]}
    chat = found["LoCoMo"]
    assert (chat["labels"], chat["found"], chat["covered"]) == (2, 0.5, 0.5)
    assert (chat["memories"], chat["precise"], chat["recalled"]) == (2, 0.5, 1.0)
    assert len(chat["samples"]) == 1
    daily = found["MemDaily"]
    assert (daily["labels"], daily["found"], daily["recalled"]) == (1, 1.0, 1.0)
    typed = found["typed texts, en"]
    assert (typed["labels"], typed["typed"], typed["precise"]) == (1, 1.0, 1.0)


def test_the_figures_are_shown_as_a_table(data: Path) -> None:
    ran = CliRunner().invoke(app, ["memories", str(data / "locomo.json"), "--no-recall", "--sample", "2"])
    assert "LoCoMo" in ran.stdout
    assert "50.0" in ran.stdout
    assert "[FACT] Ann lives in Berlin." in ran.stdout


def test_what_is_no_labelled_conversation_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InvalidInput, match="nothing there is LoCoMo"):
        load_cases(tmp_path)
    with pytest.raises(InvalidInput, match="does not exist"):
        load_cases(tmp_path / "missing")
