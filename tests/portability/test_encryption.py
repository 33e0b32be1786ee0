"""Encryption at rest, with the real library: installed into a folder of its own, as it takes the place of apsw."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

import aforesaid
from aforesaid.errors import InvalidInput, StoreRefused
from aforesaid.portability.migrating import repair
from aforesaid.store.sqlite.connection import KEY, KEY_FILE

CACHE = Path(__file__).parent.parent.parent / ".cache" / "apsw-sqlite3mc"
WORDS = "zugzwang-and-xylophones"

Run = Callable[..., subprocess.CompletedProcess[str]]

TALK = """
import sys, aforesaid
with aforesaid.open(sys.argv[1], embedder="none") as memory:
    for number in range(200):
        memory.user("ann").add("user", f"zugzwang-and-xylophones {number}")
    memory.user("bob").add("user", "nothing special")
    memory.backup(sys.argv[1] + ".backup")
    assert memory.verify().ok
    print(len(memory.user("ann").search("xylophones", arms="keyword")))
"""
REPAIR = """
import asyncio, sys
from aforesaid.portability.migrating import repair
print(asyncio.run(repair(sys.argv[1])).needed)
"""
PURGE = """
import sys, aforesaid
with aforesaid.open(sys.argv[1], embedder="none") as memory:
    print(memory.purge("ann").messages, memory.verify().ok, [user.id for user in memory.users()])
"""


@pytest.fixture(scope="module")
def library() -> Path:
    """A folder with the library in it, made once."""
    if not (CACHE / "apsw").exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        (CACHE.parent / ".gitignore").write_text("*\n")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        done = subprocess.run(
            [*pip, "--target", str(CACHE), "apsw-sqlite3mc"], check=False, capture_output=True, text=True, timeout=100
        )
        if done.returncode:
            pytest.skip(f"apsw-sqlite3mc cannot be installed here, so encryption is not tried: {done.stderr[-300:]}")
    return CACHE


@pytest.fixture
def run(library: Path) -> Run:
    def run(program: str, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "PYTHONPATH": str(library), **variables}
        return subprocess.run(
            [sys.executable, "-W", "error", "-c", program, *words], env=env, check=False, capture_output=True, text=True
        )

    return run


def plaintext(folder: Path) -> list[str]:
    return [path.name for path in sorted(folder.iterdir()) if WORDS.encode() in path.read_bytes()]


def test_nothing_can_be_read_without_the_key(run: Run, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    path = home / "memory.db"
    done = run(TALK, str(path), **{KEY: "correct horse"})
    assert (done.returncode, done.stdout.strip()) == (0, "10"), done.stderr
    assert plaintext(home) == []
    assert not path.read_bytes().startswith(b"SQLite format 3")
    for variables in ({}, {KEY: "wrong"}):
        refused = run(PURGE, str(path), **variables)
        assert refused.returncode == 1
        assert ("encrypted; if it is, say with which key" if not variables else "it has another one") in refused.stderr
    (tmp_path / "key").write_text("correct horse\n")
    (tmp_path / "key").chmod(0o600)
    before = path.read_bytes()
    again = run(PURGE, str(path), **{KEY_FILE: str(tmp_path / "key")})
    assert (again.returncode, again.stdout.strip()) == (0, "200 True ['bob']"), again.stderr
    assert path.read_bytes() != before
    assert plaintext(home) == []
    assert run(PURGE, str(path) + ".backup", **{KEY: "correct horse"}).returncode == 0


@pytest.mark.defect("W8")
def test_a_wrong_key_is_not_taken_for_damage(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    assert run(TALK, str(path), **{KEY: "correct horse"}).returncode == 0
    files = {each: each.read_bytes() for each in tmp_path.iterdir()}
    for variables, why in (({}, "say with which key"), ({KEY: "wrong"}, "it has another one")):
        refused = run(REPAIR, str(path), **variables)
        assert refused.returncode == 1
        assert "StoreRefused" in refused.stderr
        assert why in refused.stderr
        assert "restore" not in refused.stderr.splitlines()[-1]
        assert {each: each.read_bytes() for each in tmp_path.iterdir()} == files
    done = run(REPAIR, str(path), **{KEY: "correct horse"})
    assert (done.returncode, done.stdout.strip()) == (0, "False"), done.stderr


@pytest.mark.defect("W8")
async def test_what_may_be_encrypted_is_not_repaired_and_no_copy_is_left(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(Random(1).randbytes(8 * 4096))
    with pytest.raises(StoreRefused, match="or it is encrypted; if it is, say with which key"):
        await repair(path)
    assert list(tmp_path.iterdir()) == [path]


def test_a_plain_file_is_not_touched_with_a_key(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with aforesaid.open(path, embedder="none") as memory:
        memory.user("ann").add("user", "hello")
    before = path.read_bytes()
    refused = run(PURGE, str(path), **{KEY: "any"})
    assert refused.returncode == 1
    assert "is not encrypted, but a key is configured" in refused.stderr
    assert "nothing was changed" in refused.stderr
    assert path.read_bytes() == before


def test_without_the_library_a_key_is_refused_and_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, "secret")
    with pytest.raises(StoreRefused, match="pip install 'apsw-sqlite3mc'"), aforesaid.open(tmp_path / "memory.db"):
        pass
    assert not (tmp_path / "memory.db").exists()
    with (
        pytest.raises(StoreRefused, match="can be read without it"),
        aforesaid.open(f"json:{tmp_path / 'memory.json'}"),
    ):
        pass


def test_a_key_file_that_cannot_be_used_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_FILE, str(tmp_path / "missing"))
    with pytest.raises(InvalidInput, match="cannot be used: it cannot be read"), aforesaid.open(tmp_path / "memory.db"):
        pass
    (tmp_path / "missing").write_text("\n")
    with pytest.raises(InvalidInput, match="it is empty"), aforesaid.open(tmp_path / "memory.db"):
        pass
    monkeypatch.setenv(KEY, "both")
    with pytest.raises(InvalidInput, match="both set"), aforesaid.open(tmp_path / "memory.db"):
        pass
