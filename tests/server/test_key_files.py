"""Which file has the keys of a store: each store, and each database, has its own."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aforesaid.cli import app
from aforesaid.errors import InvalidInput
from aforesaid.server.auth import Keys, check_shared_keys, keys_path
from aforesaid.settings import Serving, Settings
from aforesaid.store.locations import database_of

AA = "postgresql://ann:secret@db.example.org/aa"
BB = "postgresql://ann:secret@db.example.org/bb"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the configuration."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "aforesaid"


def file_of(address: str) -> Path:
    path = keys_path(Settings(), address)
    assert path is not None
    return path


def shared_key(folder: Path) -> str:
    """Add a key to the file that older versions had for all databases."""
    return str.__str__(Keys(folder / "keys.json").add("everywhere", "admin")[1])


def test_keys_lie_beside_the_store(tmp_path: Path) -> None:
    settings = Settings()
    assert keys_path(settings, tmp_path / "memory.db") == tmp_path / "memory.db.keys.json"
    assert keys_path(settings, f"json:{tmp_path}/memory.json") == tmp_path / "memory.json.keys.json"
    assert keys_path(settings, f"files:{tmp_path}/memory") == tmp_path / "memory.keys.json"
    assert keys_path(Settings(store=f"json:{tmp_path}/m.json"), None) == tmp_path / "m.json.keys.json"
    assert keys_path(settings, ":memory:") is None
    named = Settings(server=Serving(keys=str(tmp_path / "own.json")))
    assert keys_path(named, ":memory:") == keys_path(named, AA) == tmp_path / "own.json"


def test_a_key_for_one_database_opens_no_other(folder: Path) -> None:
    _, token = Keys(file_of(AA)).add("only-for-a", "admin")
    assert file_of(AA).parent == folder
    assert Keys(file_of(AA)).find(token) is not None
    assert Keys(file_of(BB)).find(token) is None


@pytest.mark.parametrize(
    "address",
    [
        "postgres://ann:secret@db.example.org/aa",
        "postgresql://bob:an%40ther@db.example.org/aa",
        "postgresql://DB.example.org:5432/aa?sslmode=require",
        "postgresql:///?host=db.example.org&dbname=aa",
        "postgresql://ann:with?mark@db.example.org/%61a",
        "postgresql://db.example.org/aa?options=-c%20statement_timeout=5s",
    ],
    ids=range(6),
)
def test_other_users_passwords_and_spellings_name_the_same_database(address: str) -> None:
    assert file_of(address) == file_of(AA)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://db.example.org:5433/aa",
        "postgresql://db2.example.org/aa",
        "postgresql://db.example.org/AA",
        "postgresql:///aa",
        "postgresql://db.example.org,db2.example.org/aa",
        "postgresql://db.example.org/aa?options=-csearch_path%3Dother",
        "postgresql:///aa?service=other",
    ],
    ids=range(7),
)
def test_another_host_port_name_or_schema_is_another_database(address: str) -> None:
    assert file_of(address) != file_of(AA)


def test_what_an_address_leaves_out_comes_from_the_environment() -> None:
    full = database_of("postgresql://ann@db:5433/aa", {})
    assert full == ("db:5433", "aa", "", "")
    assert database_of("postgresql://", {"PGHOST": "db", "PGPORT": "5433", "PGDATABASE": "aa"}) == full
    assert database_of("postgresql://aa@db:5433", {}) == full, "without a name, the database is named as the user"
    assert database_of("postgresql://aa@db:5433", {"PGDATABASE": "bb"})[1] == "bb"
    assert database_of("postgresql://[::1]/aa", {}) == database_of("postgresql://127.0.0.1:5432/aa", {})
    several = database_of("postgresql://two:5433,ONE/aa", {})
    assert several == database_of("postgresql://one,two:5433/aa", {}) == ("one:5432,two:5433", "aa", "", "")


def test_keys_of_all_databases_are_refused_until_they_are_copied_or_moved_away(folder: Path) -> None:
    token = shared_key(folder)
    with pytest.raises(InvalidInput, match="each database has a key file of its own") as refused:
        check_shared_keys(Settings(), AA)
    keep, leave = (command.partition(". When")[0] for command in str(refused.value).split("run: ")[1:])
    subprocess.run(shlex.split(keep), check=True)
    check_shared_keys(Settings(), AA)
    assert Keys(file_of(AA)).find(token) is not None
    with pytest.raises(InvalidInput, match="each database has a key file of its own"):
        check_shared_keys(Settings(), BB)
    subprocess.run(shlex.split(leave), check=True)
    check_shared_keys(Settings(), BB)
    assert Keys(file_of(BB)).all() == ()


@pytest.mark.parametrize("command", [("key", "add", "app"), ("key", "list"), ("key", "remove", "1f2e3d4c"), ("serve",)])
def test_commands_on_a_database_say_how_to_move_old_keys(folder: Path, command: tuple[str, ...]) -> None:
    shared_key(folder)
    ran = CliRunner().invoke(app, [*command, "--store", AA])
    assert ran.exit_code == 2
    assert f"cp {folder / 'keys.json'} {file_of(AA)}" in ran.stderr
    assert not file_of(AA).exists()


def test_old_keys_do_not_concern_other_stores_and_files_that_are_named(folder: Path, tmp_path: Path) -> None:
    shared_key(folder)
    check_shared_keys(Settings(), tmp_path / "memory.db")
    check_shared_keys(Settings(server=Serving(keys=str(folder / "keys.json"))), AA)


def test_an_old_file_without_keys_is_ignored(folder: Path) -> None:
    keys = Keys(folder / "keys.json")
    key, _ = keys.add("everywhere", "admin")
    keys.remove(key.id)
    check_shared_keys(Settings(), AA)
