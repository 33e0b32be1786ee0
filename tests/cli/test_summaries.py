"""Summaries on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import aforesaid
from aforesaid.cli import app
from cli.typed import Run, ok


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    path = tmp_path / "memory.db"
    monkeypatch.setenv("AFORESAID_STORE", str(path))
    monkeypatch.setenv("COLUMNS", "200")
    with aforesaid.open(path) as memory:
        for user in ("ann", "bob"):
            handle = memory.user(user)
            for number in range(60 if user == "ann" else 2):
                handle.add("user", f"I bought {number} apples in Berlin.")
                handle.add("assistant", "Good.")
    return lambda *words: CliRunner().invoke(app, words)


def test_upkeep_does_all_that_is_due_and_the_tree_of_it_can_be_seen(run: Run) -> None:
    assert ", 7 summaries made, " in ok(run("upkeep"))
    assert json.loads(ok(run("upkeep", "--json")))["summarised"] == 0
    lines = ok(run("summaries", "--user", "ann")).splitlines()
    assert [line.split(", ")[1] for line in lines if "messages" in line] == ["tree level 2", "tree level 1"]
    tree = ok(run("summaries", "--user", "ann", "--tree"))
    assert tree.count("tree level 1, ") == 6
    assert tree.count("20 messages, #") == 6
    found = json.loads(ok(run("summaries", "--user", "ann", "--all", "--json")))
    assert sorted(summary["level"] for summary in found) == [1] * 6 + [2]


def test_a_person_can_have_it_summarised_now(run: Run) -> None:
    assert "there are no summaries for bob yet" in ok(run("summaries", "--user", "bob"))
    made = json.loads(ok(run("summarize", "--user", "bob", "--json")))
    assert [(summary["level"], summary["messages"]) for summary in made] == [(1, 4)]
    assert "there is nothing to summarise for bob" in ok(run("summarize", "--user", "bob"))
    assert "apples" in ok(run("summaries", "--user", "bob", "--kind", "tree"))
    assert run("summaries", "--user", "bob", "--kind", "novel").exit_code == 2


def test_what_could_not_be_done_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AFORESAID_MODEL", "missing:model")
    monkeypatch.setenv("AFORESAID_PROVIDERS__MISSING__BASE_URL", "http://127.0.0.1:9/v1")
    result = run("upkeep")
    assert result.exit_code == 1, result.output
    assert "could not finish" in result.stdout
