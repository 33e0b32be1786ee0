"""`aforesaid settings`, as somebody types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import aforesaid
from aforesaid.cli import app


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = tmp_path / "memory.db"
    with aforesaid.open(path, embedder="none") as memory:
        memory.user("ann").add("user", "hello")
    return str(path)


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["settings", *words])
    return result.exit_code, result.output


def test_a_setting_is_changed_shown_and_taken_back(store: str) -> None:
    assert run("short_term_memory_limit", "5", "--store", store)[0] == 0
    assert run("bot_persona", "a patient librarian", "--user", "ann", "--store", store)[0] == 0
    assert json.loads(run("--store", store, "--json")[1]) == {"short_term_memory_limit": 5}
    assert json.loads(run("--store", store, "--user", "ann", "--json")[1]) == {"bot_persona": "a patient librarian"}
    shown = run("--store", store)[1]
    assert "short_term_memory_limit" in shown
    assert "from the profile" in shown
    assert run("short_term_memory_limit", "--reset", "--store", store)[0] == 0
    assert json.loads(run("--store", store, "--json")[1]) == {}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["short_term_memory_limit", "many"], "whole number"),
        (["short_term_memory_limit"], "a value for short_term_memory_limit is missing"),
        (["--reset"], "a setting's name and no value"),
        (["bot_person", "x"], "did you mean 'bot_persona'"),
    ],
)
def test_what_cannot_be_set_is_told(store: str, words: list[str], said: str) -> None:
    code, output = run(*words, "--store", store)
    assert code == 2
    assert said in " ".join(output.split())


def test_a_setting_that_nothing_reads_is_stored_and_told(store: str) -> None:
    code, output = run("favourite_colour", "blue", "--store", store)
    assert code == 0
    assert "Aforesaid has no setting of this name" in " ".join(output.split())
