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
    assert run("key", "list", "--json")[0] == 2, "there is no file"


def test_adding_a_key_says_its_id_and_its_file_but_prints_the_key_alone(tmp_path: Path) -> None:
    (tmp_path / "memory.db").touch()
    ran = CliRunner().invoke(app, ["key", "add", "my-app"])
    (key,) = json.loads(run("key", "list", "--json")[1])
    assert ran.stderr == f"added the key {key['id']} to {tmp_path / 'memory.db.keys.json'}\n"
    assert ran.stdout.startswith("ak_")
    assert len(ran.stdout.splitlines()) == 1


def test_a_second_key_of_the_same_name_is_noted(tmp_path: Path) -> None:
    (tmp_path / "memory.db").touch()
    run("key", "add", "my-app")
    run("key", "add", "other")
    ran = CliRunner().invoke(app, ["key", "add", "my-app", "--json"])
    first = json.loads(run("key", "list", "--json")[1])[0]["id"]
    assert f"there are other keys named my-app ({first}); to revoke one: aforesaid key remove ID" in ran.stderr
    assert set(json.loads(ran.stdout)) == {"id", "token"}


def test_a_key_for_a_store_that_does_not_exist_is_noted(tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["key", "add", "my-app", "--store", str(tmp_path / "memry.db")])
    assert ran.exit_code == 0, "a key can be added before a server creates its store"
    assert f"there is no store at {tmp_path / 'memry.db'} yet" in ran.stderr
    assert run("key", "list", "--store", str(tmp_path / "memry.db"))[0] == 0


def test_listing_the_keys_of_a_store_that_does_not_exist_fails(tmp_path: Path) -> None:
    code, said = run("key", "list", "--store", str(tmp_path / "memry.db"))
    assert code == 2
    assert f"there is no store at {tmp_path / 'memry.db'}" in said
