"""Keys on the command line: who uses a key is decided when it is made."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aforesaid.cli import app
from aforesaid.server.auth import KeyUse, keys_path
from aforesaid.settings import load_settings


def run(*arguments: str) -> tuple[int, str]:
    ended = CliRunner().invoke(app, arguments)
    return ended.exit_code, ended.output


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AFORESAID_STORE", str(tmp_path / "memory.db"))


@pytest.mark.defect("P3")
@pytest.mark.parametrize(
    ("options", "user"),
    [
        ((), None),
        (("--people", "many"), None),
        (("--people", "one"), "my-laptop"),
        (("--people", "one", "--user", "ann", "--space", "default"), "ann"),
    ],
)
def test_a_key_is_for_many_people_unless_it_is_made_for_one(options: tuple[str, ...], user: str | None) -> None:
    assert run("key", "add", "my-laptop", *options)[0] == 0
    (key,) = json.loads(run("key", "list", "--json")[1])
    assert key["user"] == user


def test_the_list_says_when_a_key_was_last_used(tmp_path: Path) -> None:
    run("key", "add", "my-app")
    (key,) = json.loads(run("key", "list", "--json")[1])
    assert key["last_used"] is None
    use = KeyUse(keys_path(load_settings(), str(tmp_path / "memory.db")))
    use.mark(key["id"])
    use.write()
    (key,) = json.loads(run("key", "list", "--json")[1])
    assert datetime.fromisoformat(key["last_used"]) <= datetime.now(UTC)
    assert key["last_used"][:10] in run("key", "list")[1]


@pytest.mark.defect("P3")
@pytest.mark.parametrize("options", [("--people", "few"), ("--people", "many", "--user", "ann")])
def test_a_key_whose_people_contradict_is_not_made(options: tuple[str, ...]) -> None:
    assert run("key", "add", "my-laptop", *options)[0] != 0
    assert json.loads(run("key", "list", "--json")[1]) == []
