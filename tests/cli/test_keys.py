"""Keys on the command line: who uses a key is decided when it is made."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

import aforesaid
from aforesaid.cli import app
from aforesaid.cli.config import note_keys_left_behind
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


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """Return a store with one message and one key."""
    store = tmp_path / "memory.db"
    with aforesaid.open(store, embedder="none") as memory:
        memory.user("ann").add("user", "hello")
    run("key", "add", "my-app")
    return store


def test_copies_of_a_store_say_which_keys_they_do_not_have(filled: Path, tmp_path: Path) -> None:
    keys, backup, other = f"{filled}.keys.json", tmp_path / "monday.db", tmp_path / "other.db"
    said = CliRunner().invoke(app, ["backup", str(backup)]).stderr
    assert said == f"the server's keys were not copied; to keep them, run: cp {keys} {backup}.keys.json\n"
    said = CliRunner().invoke(app, ["migrate", str(filled), str(other), "--json"]).stderr
    assert said == f"the server's keys were not copied; to keep them, run: cp {keys} {other}.keys.json\n"
    said = CliRunner().invoke(app, ["restore", str(backup), "--store", str(tmp_path / "new.db")]).stderr
    assert said == f"the server's keys were not copied; to keep them, run: cp {keys} {tmp_path / 'new.db'}.keys.json\n"


def test_after_a_restore_the_keys_beside_the_backup_are_named(filled: Path, tmp_path: Path) -> None:
    backup = tmp_path / "monday.db"
    run("backup", str(backup))
    Path(f"{filled}.keys.json").rename(f"{backup}.keys.json")
    ran = CliRunner().invoke(app, ["restore", str(backup), "--replace"])
    assert ran.stderr.endswith(f"run: cp {backup}.keys.json {filled}.keys.json\n")


def test_nothing_is_said_where_keys_stay_valid_or_there_are_none(filled: Path, tmp_path: Path) -> None:
    backup = tmp_path / "monday.db"
    run("backup", str(backup))
    assert CliRunner().invoke(app, ["restore", str(backup), "--replace"]).stderr == ""
    Path(f"{filled}.keys.json").unlink()
    assert CliRunner().invoke(app, ["migrate", str(filled), str(tmp_path / "other.db")]).stderr == ""


def test_a_target_with_other_keys_is_told_which_are_missing(filled: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    run("key", "add", "theirs", "--store", str(other))
    said = CliRunner().invoke(app, ["migrate", str(filled), str(other)]).stderr
    assert said == f"1 key of {filled}.keys.json is not in {other}.keys.json\n"
    Path(f"{other}.keys.json").write_text("{", encoding="utf-8")
    ran = CliRunner().invoke(app, ["migrate", str(filled), str(other)])
    assert ran.exit_code == 0, "everything was copied"
    assert "cannot be read" in ran.stderr


def test_keys_that_older_versions_had_for_all_databases_are_named(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    shared = tmp_path / "aforesaid" / "keys.json"
    shared.parent.mkdir()
    shared.write_bytes(Path(f"{filled}.keys.json").read_bytes())
    note_keys_left_behind(["postgresql://db/aa"], str(tmp_path / "other.db"))
    assert f"cp {shared} {tmp_path / 'other.db'}.keys.json" in capsys.readouterr().err


def test_a_backup_is_restored_to_the_store_of_the_configuration(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup = tmp_path / "monday.db"
    run("backup", str(backup))
    (tmp_path / "aforesaid.toml").write_text('store = "configured.db"\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AFORESAID_STORE")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert run("restore", str(backup))[0] == 0
    assert (tmp_path / "configured.db").exists()
    assert not (tmp_path / "data").exists()
    del filled
