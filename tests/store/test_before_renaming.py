"""Stores and exports that were written before the project had its present name (`before_renaming/make.py`)."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import psycopg
import pytest

import aforesaid
from pg import Server, shared_server

PACKED = Path(__file__).parent / "before_renaming" / "stores.tar.xz"
LAST = "My sister visits on Friday."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with tarfile.open(PACKED) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def restored(server: Server, dump: Path) -> str:
    """Put an old database into a new one, owned by whoever uses it."""
    dsn = server.create("before_renaming")
    with server.admin("before_renaming") as admin:
        admin.execute("DROP EXTENSION vector")
        admin.execute("ALTER ROLE aforesaid SUPERUSER")
    try:
        psql = [str(server._programs / "psql"), "-q", "-v", "ON_ERROR_STOP=1", "-f", str(dump), dsn]
        subprocess.run(psql, stdout=subprocess.DEVNULL, check=True)
    finally:
        with server.admin() as admin:
            admin.execute("ALTER ROLE aforesaid NOSUPERUSER")
    return dsn


@pytest.mark.defect("N1")
@pytest.mark.parametrize("kind", ["sqlite", "json", "files", "postgres"])
def test_an_old_store_opens_verifies_and_goes_on(kind: str, folder: Path) -> None:
    paths = {"sqlite": "memory.db", "json": "json:memory.json", "files": "files:memory"}
    if kind == "postgres":
        location = restored(shared_server(), folder / "postgres.sql")
    else:
        scheme, _, name = paths[kind].rpartition(":")
        location = f"{scheme}:{folder / name}" if scheme else str(folder / name)
    with aforesaid.open(location, embedder="none") as memory:
        ann = memory.user("ann")
        before = [message.text for message in ann.history(limit=100)]
        assert before[0] == "I live in Berlin"
        assert before[-1] == LAST
        assert memory.verify().ok, memory.verify()
        assert "lives in Berlin Mitte" in [known.text for known in ann.memories()]
        assert ann.add("user", "I moved on.").durable
    with aforesaid.open(location, embedder="none") as memory:
        assert [message.text for message in memory.user("ann").history(limit=100)] == [*before, "I moved on."]
        assert memory.verify().ok
        assert memory.user("bob").search("tea")


def test_an_old_export_is_recognised_and_loads(folder: Path) -> None:
    with (
        aforesaid.open(folder / "memory.db", embedder="none") as old,
        aforesaid.open(folder / "new.db", embedder="none") as new,
    ):
        report = new.load(folder / "export.jsonl")
        assert report.format == "aforesaid"
        assert not report.problems
        assert [m.text for m in new.user("ann").history(limit=100)] == [
            m.text for m in old.user("ann").history(limit=100)
        ]
        assert new.verify().ok


async def test_jobs_that_an_old_worker_left_in_the_queue_do_not_block_new_ones(folder: Path) -> None:
    dsn = restored(shared_server(), folder / "postgres.sql")
    with psycopg.connect(dsn, autocommit=True) as database:
        database.execute(
            "INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args, status)"
            " VALUES ('before', 'whole', 'whole x', 'whole x', '{}', 'todo')"
        )
    async with aforesaid.connect(dsn, embedder="none"):
        pass
    with psycopg.connect(dsn) as database:
        assert database.execute("SELECT queue_name FROM procrastinate_jobs").fetchall() == [("aforesaid",)]


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    with tarfile.open(Path(__file__).parent / "before_databases" / "stores.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


@pytest.mark.parametrize("kind", ["json", "files"])
@pytest.mark.parametrize("ended", ["closed", "killed"])
@pytest.mark.parametrize("commit", ["dce1651", "43d6b203"])
def test_files_without_a_database_get_one_when_they_are_opened(
    commit: str, ended: str, kind: str, earlier: Path
) -> None:
    place = earlier / commit / ended / kind / ("memory.json" if kind == "json" else "memory")
    assert any(earlier.joinpath(commit, ended, kind).rglob("*.journal-*")) == (ended == "killed")
    with aforesaid.open(f"{kind}:{place}", embedder="none") as memory:
        ann = memory.user("ann")
        before = [message.text for message in ann.history(limit=100)]
        assert (before[0], before[-1]) == ("I live in Berlin", LAST)
        assert "lives in Berlin Mitte" in [known.text for known in ann.memories()]
        assert memory.verify().ok, memory.verify()
        assert memory.health().component("store").issues == ()
        assert ann.add("user", "I moved on.").durable
        assert memory.user("bob").search("tea")
    assert not list(earlier.joinpath(commit, ended, kind).rglob("*.journal-*"))
    with aforesaid.open(f"{kind}:{place}", embedder="none") as memory:
        assert [message.text for message in memory.user("ann").history(limit=100)] == [*before, "I moved on."]
        assert memory.verify().ok


@pytest.mark.defect("D5")
@pytest.mark.parametrize("torn", ["half a line", "sectors that were never written"])
@pytest.mark.parametrize("kind", ["json", "files"])
def test_what_a_crash_left_at_the_end_of_an_old_journal_is_left_out(kind: str, torn: str, earlier: Path) -> None:
    folder = earlier / "43d6b203" / "killed" / kind
    (journal,) = folder.rglob("*.journal-*")
    whole = journal.read_bytes()
    rest = b'{"group": 9, "put": {"mess' if torn == "half a line" else bytes(512 - len(whole) % 512) + b'ge"}\n'
    journal.write_bytes(whole + rest)
    with aforesaid.open(
        f"{kind}:{folder / ('memory.json' if kind == 'json' else 'memory')}", embedder="none"
    ) as memory:
        assert memory.user("ann").history(limit=100)[-1].text == LAST
        assert memory.verify().ok
