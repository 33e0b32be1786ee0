"""Which files are opened and which are refused; what a new one is like."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from aforesaid.domain.message import message_hash
from aforesaid.domain.scope import Scope
from aforesaid.errors import InvalidInput, StoreRefused, StoreTooNew, StoreUnavailable
from aforesaid.store import Location, default_location, locate, open_store
from aforesaid.store.checksums import SQLITE as CHECKSUMS
from aforesaid.store.searches import SearchText, UnembeddedMessages
from aforesaid.store.sqlite import Options, SqliteStore, connection, engine
from aforesaid.store.sqlite.connection import APPLICATION_ID, file_system_of, migrations, refuse_unsafe_places
from making import add

ANN = Scope.of("ann")


_FIRST_ROWS = """
INSERT INTO person (space, name, owner, created_at, messages, turns, open_turns, words, last_seq, last_at)
VALUES ('default', 'ann', 1, 50, 1, 1, 1, 3, 1, 50);
INSERT INTO thread (space, name) VALUES ('default', 'direct:ann');
INSERT INTO session (thread, name, automatic, opened_by, started_at, last_at, first_seq, last_seq, messages, timeout)
VALUES (1, 's-1', 1, 1, 50, 50, 1, 1, 1, 9);
INSERT INTO log (owner, thread, shared, session, author, role, text, at, stored_at, words, hash)
VALUES (1, 1, 0, 1, 1, 'user', 'written long ago', 50, 50, 3, ?);
INSERT INTO log_index (rowid, terms) SELECT seq, terms FROM log_index_content;
"""
"""One message, in columns that every schema has."""
_WITH_CHECKSUMS = 14
"""The first schema whose rows have checksums."""


def contents(path: Path) -> tuple[object, ...]:
    """Return tables, views, indexes and rows of a new file, without the inner records of the keyword indexes."""
    with closing(connection.connect(path, Options(), create=True)) as made:
        connection.migrate(made, path)
        found = made.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY rowid").fetchall()
        tables = [name for kind, name, *_ in found if kind == "table" and not str(name).endswith("_index_data")]
        rows = {name: made.execute(f"SELECT * FROM {name}").fetchall() for name in tables}
        return found, rows, made.pragma("user_version"), made.pragma("application_id")


def test_a_new_file_has_the_schema_that_the_steps_make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_script = contents(tmp_path / "script.db")
    unused = replace(connection.whole_schema(), number=sys.maxsize)
    monkeypatch.setattr(connection, "whole_schema", lambda: unused)
    assert by_script == contents(tmp_path / "steps.db"), "run tools/sqlite_schema.py"


@pytest.mark.parametrize("schema", [step.number for step in migrations()[:-1]])
async def test_a_file_of_an_earlier_version_is_brought_up_to_date(
    path: Path, schema: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier, closing(connection.connect(path, Options(), create=True)) as old:
        earlier.setattr(connection, "migrations", lambda: migrations()[:schema])
        connection.migrate(old, path)
        stored = message_hash("default", "ann", "direct:ann", None, "user", "ann", None, "written long ago", 50, 50)
        old.execute(_FIRST_ROWS, (stored,))
        if schema >= _WITH_CHECKSUMS:
            for table in ("person", "thread", "session"):
                checksum = CHECKSUMS.of(table, {name: name for name in CHECKSUMS.columns[table]})
                old.execute(f"UPDATE {table} SET checksum = {checksum}")
    store = await open_store(path)
    assert [hit.text for hit in await store.read(SearchText(ANN, "written"))] == ["written long ago"]
    assert [due.text for due in await store.read(UnembeddedMessages("any", 10))] == ["written long ago"]
    report = await store.verify()
    assert report.ok, report
    await store.close()


@pytest.mark.skipif(sys.platform == "win32", reason="SQLite has this kind of locks on Unix alone")
async def test_a_place_where_processes_cannot_share_memory_is_refused(path: Path) -> None:
    # SQLite's locks for file systems that can do nothing but make files: the write-ahead log needs more than that.
    with pytest.raises(StoreRefused, match="does not support SQLite's WAL mode"):
        await SqliteStore.open(path, Options(vfs="unix-dotfile"))


async def test_a_file_of_a_newer_version_is_refused(path: Path) -> None:
    await (await open_store(path)).close()
    newer = migrations()[-1].number + 1
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA user_version = {newer}")
    with pytest.raises(StoreTooNew, match=f"schema {newer}; this version knows {newer - 1}.*install that version"):
        await open_store(path)


async def test_a_database_of_somebody_else_is_refused_and_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, content TEXT)")
        database.commit()
    before = path.read_bytes()
    with pytest.raises(StoreRefused, match="not one of Aforesaid's"):
        await open_store(path)
    assert path.read_bytes() == before


async def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.write_text("Dear diary, " * 1000)
    with pytest.raises(StoreRefused, match="not a SQLite database"):
        await open_store(path)
    assert path.read_text().startswith("Dear diary")


async def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable, match="check the folder and its rights"):
        await open_store(tmp_path / "file" / "memory.db")
    with pytest.raises(StoreRefused, match="is a folder"):
        await open_store(tmp_path)


async def test_missing_folders_are_made(tmp_path: Path) -> None:
    store = await open_store(tmp_path / "a" / "b" / "memory.db")
    await store.close()
    assert (tmp_path / "a" / "b" / "memory.db").exists()
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700


async def test_what_people_said_can_be_read_by_the_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    store = await open_store(path)
    await add(store, Scope.of("ann"), "hello")
    beside = sorted(tmp_path.glob("memory.db*"))
    assert len(beside) > 1
    assert {each.stat().st_mode & 0o777 for each in beside} == {0o600}
    await store.close()
    path.chmod(0o640)
    store = await open_store(path)
    await store.close()
    assert path.stat().st_mode & 0o777 == 0o640


def test_network_file_systems_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = (
        "22 1 254:0 / / rw - ext4 /dev/vda rw\n"
        "30 22 0:40 / /mnt/team\\040share rw,relatime shared:1 - nfs4 server:/export rw\n"
        "31 30 254:1 / /mnt/team\\040share/local rw - xfs /dev/vdb rw\n"
        "32 22 254:2 / /srv rw - ext4 /dev/vdc rw\n"
        "33 22 0:41 / /srv rw - cifs //server/share rw\n"
        "34 22 0:42 /mnt/cut - cifs //server/share rw\n"
        "35 22 0:43 / /mnt/short - smb3 //server/share rw\n"
        "a line that makes no sense\n"
    )
    assert file_system_of(Path("/home/ann/memory.db"), mounts) == "ext4"
    assert file_system_of(Path("/mnt/team share/memory.db"), mounts) == "nfs4"
    assert file_system_of(Path("/mnt/team share/local/memory.db"), mounts) == "xfs"
    assert file_system_of(Path("/srv/memory.db"), mounts) == "cifs", "what is mounted later hides the earlier"
    assert file_system_of(Path("/mnt/cut/memory.db"), mounts) == "ext4", "a line that ends early says nothing"
    assert file_system_of(Path("/mnt/short/memory.db"), mounts) == "smb3"
    assert file_system_of(Path("/anywhere"), "") == "unknown"
    refuse_unsafe_places(tmp_path / "memory.db")
    shared = tmp_path / "share"
    shared.mkdir()
    (tmp_path / "link.db").symlink_to(shared / "memory.db")

    def kind(place: Path, _mounts: str) -> str:
        return "nfs4" if place.is_relative_to(shared) else "ext4"

    monkeypatch.setattr(connection, "file_system_of", kind)
    for place in (shared / "memory.db", tmp_path / "link.db"):
        with pytest.raises(StoreRefused, match=r"network file system \(nfs4\)"):
            engine.acquire(place, Options())


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="this platform does not list open files")
def test_folders_are_made_for_a_file_and_none_stays_open(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    connection.make_folder(tmp_path / "some" / "folder" / "within")
    assert (tmp_path / "some" / "folder" / "within").stat().st_mode & 0o777 == 0o700
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_an_old_sqlite_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.51.2")
    with pytest.raises(StoreRefused, match=r"3\.51\.3 or newer"):
        refuse_unsafe_places(tmp_path / "memory.db")


async def test_a_new_file_is_ours_and_every_commit_is_synced(path: Path) -> None:
    store = await SqliteStore.open(path)
    writer = store._engine.writer._connection
    settings = {name: writer.pragma(name) for name in ("application_id", "journal_mode", "synchronous", "foreign_keys")}
    assert settings == {"application_id": APPLICATION_ID, "journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
    await store.close()


def test_locations_are_read_as_people_write_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert locate("memory.db").path == Path("memory.db")
    assert locate("sqlite:memory.db").path == Path("memory.db")
    assert locate("sqlite:///var/memory.db").path == Path("/var/memory.db")
    assert locate(tmp_path).path == tmp_path
    assert locate(":memory:").path is None
    assert locate("json:memory.json") == Location("json", Path("memory.json"))
    assert locate("files:memory/") == Location("files", Path("memory"))
    for wrong in ("", "json:", "files:", "mysql://host/db", "nul\0", 5):
        with pytest.raises(InvalidInput):
            locate(wrong)  # type: ignore[arg-type]
    monkeypatch.setenv("AFORESAID_STORE", f"sqlite:{tmp_path / 'chosen.db'}")
    assert locate(None).path == tmp_path / "chosen.db"
    monkeypatch.setenv("AFORESAID_STORE", ":memory:")
    assert locate(None).path is None
    monkeypatch.delenv("AFORESAID_STORE")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert default_location() == tmp_path / "aforesaid" / "memory.db"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert default_location() == Path.home() / "Library" / "Application Support" / "aforesaid" / "memory.db"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert default_location() == tmp_path / "aforesaid" / "memory.db"
