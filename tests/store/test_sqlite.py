"""What only a file can do: survive, be shared, be refused, be damaged and be copied."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from making import add, adding, archive
from recollect.domain.change import PutSetting
from recollect.domain.receipt import Receipt
from recollect.domain.scope import Scope
from recollect.errors import (
    InvalidInput,
    NotFound,
    StoreBusy,
    StoreClosed,
    StoreDamaged,
    StoreTooNew,
    StoreUnavailable,
)
from recollect.store import Store, default_location, open_store, restore_store, sqlite_path
from recollect.store.sqlite import Options, SqliteStore, connection
from recollect.store.sqlite.connection import file_system_of, refuse_unsafe_places
from recollect.store.sqlite.migrate import APPLICATION_ID, migrations
from recollect.store.sqlite.transaction import Step

ANN = Scope.of("ann")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.mark.req("A1", "E1")
async def test_messages_settings_and_counters_resume_after_a_restart(path: Path) -> None:
    store = await open_store(path)
    messages = await add(store, ANN, "one", "two", "three")
    await archive(store, ANN, messages[:2])
    await store.apply([PutSetting(ANN, "summary_every_n", 15)])
    before = (await store.messages(ANN), await store.settings(ANN), await store.ledger(ANN), await store.sessions(ANN))
    await store.close()
    store = await open_store(path)
    assert (
        await store.messages(ANN),
        await store.settings(ANN),
        await store.ledger(ANN),
        await store.sessions(ANN),
    ) == before
    assert (await store.ledger(ANN)).open_turns == 1
    (next_message,) = await add(store, ANN, "four")
    assert next_message.seq == messages[-1].seq + 1
    assert [message.text for message in await store.messages(ANN)] == ["one", "two", "three", "four"]
    await store.close()


KILLED = """
import asyncio, os, signal, sys
from recollect.memory import connect
async def main():
    memory = await connect(sys.argv[1])
    for number in range(5):
        await memory.user("ann").add("user", f"message {number}")
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


@pytest.mark.req("A1")
async def test_what_was_acknowledged_survives_kill_9(path: Path) -> None:
    killed = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", KILLED, str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    store = await open_store(path)
    assert [message.text for message in await store.messages(ANN)] == [f"message {number}" for number in range(5)]
    assert (await store.verify()).ok
    await store.close()


async def test_everybody_in_a_process_shares_one_owner_of_the_file(path: Path, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(path)
    first = await SqliteStore.open(path)
    second = await SqliteStore.open(tmp_path / "link.db")
    assert first._engine is second._engine
    await first.close()
    with pytest.raises(StoreClosed):
        await first.messages(ANN)
    await add(second, ANN, "still open")
    await second.close()
    third = await SqliteStore.open(path)
    assert third._engine is not second._shared
    assert len(await third.messages(ANN)) == 1
    await third.close()


OTHER_PROCESS = """
import asyncio, sys
from recollect.memory import connect
async def main():
    async with connect(sys.argv[1]) as memory:
        users = [memory.user(name, thread="general") for name in sys.argv[2].split(",")]
        for number in range(int(sys.argv[3])):
            await asyncio.gather(*[user.add("user", f"{user.scope.user} {number}") for user in users])
asyncio.run(main())
"""


@pytest.mark.req("C9")
async def test_two_processes_write_to_one_file_without_disturbing_each_other(path: Path) -> None:
    store = await open_store(path)
    (before,) = await add(store, Scope.of("me", thread="general"), "before")
    other = await asyncio.create_subprocess_exec(sys.executable, "-c", OTHER_PROCESS, str(path), "carl,dora", "40")
    for number in range(40):
        await store.apply([adding(Scope.of("me", thread="general"), f"me {number}")])
    assert await other.wait() == 0
    everything = await store.messages(before_scope := Scope.of("me", thread="general"), within="thread", limit=1000)
    assert [message.seq for message in everything] == sorted(message.seq for message in everything)
    for user in ("me", "carl", "dora"):
        own = [message.text for message in everything if message.user == user and message != before]
        assert own == [f"{user} {number}" for number in range(40)]
    # The other process made people and threads that this one had not heard of.
    await add(store, Scope.of("carl"), "in his own chat")
    assert (await store.ledger(Scope.of("carl"))).messages == 41
    assert (await store.search_text(before_scope, "dora", within="thread", limit=100)) != []
    assert (await store.verify()).ok
    await store.close()


async def test_a_writer_that_waits_too_long_for_another_process_is_told(path: Path) -> None:
    store = await SqliteStore.open(path, Options(busy_seconds=0.2))
    await add(store, ANN, "before")
    with closing(apsw.Connection(str(path))) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy, match="another process"):
            await add(store, ANN, "not now")
        assert (await store.health()).status == "failing"
        other.execute("ROLLBACK")
    await add(store, ANN, "after")
    assert (await store.health()).status == "active"
    assert [message.text for message in await store.messages(ANN)] == ["before", "after"]
    await store.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_a_store_opened_before_a_fork_is_refused_in_the_child(path: Path) -> None:
    store = await open_store(path)
    await add(store, ANN, "from the parent")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            coroutine = store.apply([adding(ANN, "from the child")])
            coroutine.send(None)
        except StoreClosed as error:
            status = 0 if "fork" in str(error) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    await add(store, ANN, "the parent goes on")
    assert len(await store.messages(ANN)) == 2
    await store.close()


async def test_a_cancelled_caller_does_not_take_its_message_back(path: Path) -> None:
    store = await open_store(path)
    task = asyncio.create_task(store.apply([adding(ANN, "sent and left")]))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await add(store, ANN, "next")
    assert [message.text for message in await store.messages(ANN)] == ["sent and left", "next"]
    await store.close()


async def test_closing_finishes_what_was_handed_in(path: Path) -> None:
    store = await open_store(path)
    for turn in range(6):
        waiting = [asyncio.create_task(store.apply([adding(ANN, f"message {number}")])) for number in range(50)]
        for _ in range(turn % 3 + 1):
            await asyncio.sleep(0)
        await store.close()
        await asyncio.gather(*waiting)
        store = await open_store(path)
        assert (await store.ledger(ANN)).messages == 50 * (turn + 1)
    await store.close()


BAD_SYNC = """
import asyncio, os, sys
from pathlib import Path
import apsw
from making import add
from recollect.domain.scope import Scope
from recollect.errors import StoreError
from recollect.store.sqlite import Options, SqliteStore

failing = False

class File(apsw.VFSFile):
    def __init__(self, name, flags):
        super().__init__("unix", name, flags)
    def xSync(self, flags):
        global failing
        if failing:
            failing = False
            raise apsw.exception_for(apsw.SQLITE_IOERR_FSYNC)
        super().xSync(flags)

class Disk(apsw.VFS):
    def __init__(self):
        super().__init__("bad", "unix")
    def xOpen(self, name, flags):
        return File(name, flags)

disk = Disk()

async def main():
    global failing
    store = await SqliteStore.open(Path(sys.argv[1]), Options(vfs="bad"))
    await add(store, Scope.of("ann"), "before")
    failing = True
    try:
        await add(store, Scope.of("ann"), "refused")
    except StoreError as error:
        assert "disk failed" in str(error)
        os._exit(9)

asyncio.run(main())
"""


async def test_a_refused_message_does_not_come_back_when_the_process_dies(path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    died = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", BAD_SYNC, str(path)], check=False, env=environment, capture_output=True
    )
    assert died.returncode == 9, died.stderr
    store = await open_store(path)
    assert [message.text for message in await store.messages(ANN)] == ["before"]
    assert (await store.verify()).ok
    await store.close()


async def test_a_file_of_a_newer_version_is_refused(path: Path) -> None:
    await (await open_store(path)).close()
    newer = migrations()[-1].number + 1
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA user_version = {newer}")
    with pytest.raises(StoreTooNew, match=f"schema {newer}; this version knows {newer - 1}.*upgrade"):
        await open_store(path)


async def test_a_database_of_somebody_else_is_refused_and_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, content TEXT)")
        database.commit()
    with pytest.raises(StoreUnavailable, match="not one of Recollect's"):
        await open_store(path)
    with closing(sqlite3.connect(path)) as database:
        assert [row[0] for row in database.execute("SELECT name FROM sqlite_master")] == ["messages"]


async def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.write_text("Dear diary, " * 1000)
    with pytest.raises(StoreUnavailable, match="not a SQLite database"):
        await open_store(path)
    assert path.read_text().startswith("Dear diary")


async def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        await open_store(tmp_path / "file" / "memory.db")
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        await open_store(tmp_path)


async def test_missing_folders_are_made(tmp_path: Path) -> None:
    store = await open_store(tmp_path / "a" / "b" / "memory.db")
    await store.close()
    assert (tmp_path / "a" / "b" / "memory.db").exists()
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700


def test_network_file_systems_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = (
        "22 1 254:0 / / rw - ext4 /dev/vda rw\n"
        "30 22 0:40 / /mnt/team\\040share rw,relatime shared:1 - nfs4 server:/export rw\n"
        "31 30 254:1 / /mnt/team\\040share/local rw - xfs /dev/vdb rw\n"
        "a line that makes no sense\n"
    )
    assert file_system_of(Path("/home/ann/memory.db"), mounts) == "ext4"
    assert file_system_of(Path("/mnt/team share/memory.db"), mounts) == "nfs4"
    assert file_system_of(Path("/mnt/team share/local/memory.db"), mounts) == "xfs"
    refuse_unsafe_places(tmp_path / "memory.db")
    monkeypatch.setattr(connection, "file_system_of", lambda _path, _mounts: "nfs4")
    with pytest.raises(StoreUnavailable, match=r"network file system \(nfs4\)"):
        refuse_unsafe_places(tmp_path / "memory.db")


def test_an_old_sqlite_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.51.2")
    with pytest.raises(StoreUnavailable, match=r"3\.51\.3 or newer"):
        refuse_unsafe_places(tmp_path / "memory.db")


async def test_a_new_file_is_ours_and_every_commit_is_synced(path: Path) -> None:
    store = await SqliteStore.open(path)
    writer = store._engine.writer._connection
    settings = {name: writer.pragma(name) for name in ("application_id", "journal_mode", "synchronous", "foreign_keys")}
    assert settings == {"application_id": APPLICATION_ID, "journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
    await store.close()


async def damage(path: Path, sql: str) -> None:
    """Change a row behind the back of the store."""

    def change() -> None:
        with closing(apsw.Connection(str(path))) as database:
            database.execute(sql)

    await asyncio.to_thread(change)


@pytest.mark.parametrize(
    ("sql", "check"),
    [
        ("UPDATE log SET text = 'two!' WHERE seq = 2", "hashes"),
        ("UPDATE log SET at = at + 1 WHERE seq = 2", "hashes"),
        ("UPDATE log SET owner = (SELECT id FROM person WHERE name = 'bob') WHERE seq = 2", "hashes"),
        ("DELETE FROM log WHERE seq = 2", "counts"),
        ("UPDATE person SET open_turns = open_turns + 1 WHERE name = 'ann'", "counts"),
        ("UPDATE session SET messages = 7", "counts"),
        ("UPDATE log SET active = 1 WHERE seq = 1", "archives"),
        ("DELETE FROM summary", "archives"),
        ("UPDATE log SET active = 0, chunk = 1 WHERE seq = 3", "archives"),
        ("UPDATE log SET session = 99 WHERE seq = 2", "references"),
        ("INSERT INTO log_index (log_index, rowid, terms) VALUES ('delete', 3, 'u1.three')", "index"),
        ("INSERT INTO log_index (rowid, terms) VALUES (77, 'u1.ghost')", "index"),
    ],
)
async def test_verify_finds_silent_damage(path: Path, sql: str, check: str) -> None:
    store = await open_store(path)
    messages = await add(store, ANN, "one", "two", "three")
    await add(store, Scope.of("bob"), "me too")
    await archive(store, ANN, messages[:1])
    assert (await store.verify()).ok
    await damage(path, sql)
    report = await store.verify()
    assert not report.ok
    found = {finding.name: finding.detail for finding in report.checks if not finding.ok}
    assert check in found
    assert found[check] != "ok"
    await store.close()


async def test_verify_reports_its_progress(path: Path) -> None:
    store = await open_store(path)
    await add(store, ANN, "one", "two")
    seen: list[tuple[str, int, int]] = []
    await store.verify(lambda what, done, total: seen.append((what, done, total)))
    assert seen == [("hashes", 2, 2)]
    await store.close()


async def test_a_backup_made_while_writing_is_complete_and_can_be_restored(path: Path, tmp_path: Path) -> None:
    store = await open_store(path)
    before = await add(store, ANN, *[f"message {number}" for number in range(30)])
    copy = tmp_path / "copies" / "memory.db"

    async def keep_writing() -> None:
        for number in range(30):
            await store.apply([adding(ANN, f"during {number}")])

    await asyncio.gather(store.backup(copy), keep_writing())
    with pytest.raises(InvalidInput, match="exists already"):
        await store.backup(copy)
    with pytest.raises(InvalidInput, match="exists already"):
        restore_store(copy, path, replace=False)
    with pytest.raises(StoreBusy, match="in use"):
        await asyncio.to_thread(restore_store, copy, path, replace=True)
    await store.close()
    assert [entry.name for entry in copy.parent.iterdir()] == ["memory.db"]

    aside = await asyncio.to_thread(restore_store, copy, path, replace=True)
    assert aside is not None
    restored = await open_store(path)
    texts = [message.text for message in await restored.messages(ANN, limit=100)]
    assert texts[:30] == [message.text for message in before]
    assert texts[30:] == [f"during {number}" for number in range(len(texts) - 30)]
    assert (await restored.verify()).ok
    await restored.close()
    set_aside = await open_store(aside)
    assert len(await set_aside.messages(ANN, limit=100)) == 60
    await set_aside.close()


async def test_what_is_no_backup_is_not_restored(path: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        restore_store(tmp_path / "missing.db", path, replace=False)
    (tmp_path / "text.db").write_text("not a database at all, really " * 100)
    with pytest.raises(StoreUnavailable):
        restore_store(tmp_path / "text.db", path, replace=False)
    store = await open_store(path)
    await add(store, ANN, *["some text " * 50] * 50)
    await store.backup(tmp_path / "torn.db")
    await store.close()
    torn = bytearray((tmp_path / "torn.db").read_bytes())
    torn[40_000:60_000] = bytes(20_000)
    (tmp_path / "torn.db").write_bytes(torn)
    with pytest.raises((StoreDamaged, StoreUnavailable)):
        restore_store(tmp_path / "torn.db", tmp_path / "new.db", replace=False)
    assert not (tmp_path / "new.db").exists()
    assert len(list(tmp_path.iterdir())) == 3


def test_locations_are_read_as_people_write_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert sqlite_path("memory.db") == Path("memory.db")
    assert sqlite_path("sqlite:memory.db") == Path("memory.db")
    assert sqlite_path("sqlite:///var/memory.db") == Path("/var/memory.db")
    assert sqlite_path(tmp_path) == tmp_path
    assert sqlite_path(":memory:") is None
    for wrong in ("", "mysql://host/db", "nul\0", 5):
        with pytest.raises(InvalidInput):
            sqlite_path(wrong)  # type: ignore[arg-type]
    monkeypatch.setenv("RECOLLECT_STORE", str(tmp_path / "chosen.db"))
    assert sqlite_path(None) == tmp_path / "chosen.db"
    monkeypatch.delenv("RECOLLECT_STORE")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert default_location() == tmp_path / "recollect" / "memory.db"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert default_location() == Path.home() / "Library" / "Application Support" / "recollect" / "memory.db"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert default_location() == tmp_path / "recollect" / "memory.db"


@pytest.mark.req("D12")
async def test_many_callers_share_few_commits(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await SqliteStore.open(path)
    commits = 0
    commit = store._engine.writer.commit

    def counted(change_sets: Sequence[Sequence[Step]]) -> list[Receipt | Exception]:
        nonlocal commits
        commits += 1
        return commit(change_sets)

    monkeypatch.setattr(store._engine.writer, "commit", counted)
    await asyncio.gather(*[store.apply([adding(ANN, f"message {number}")]) for number in range(200)])
    assert commits <= 3
    await store.close()


async def test_old_pages_are_copied_back_while_writing_goes_on(path: Path) -> None:
    store = await open_store(path)
    for _ in range(60):
        await asyncio.gather(*[store.apply([adding(ANN, "x " * 5_000)]) for _ in range(20)])
    assert path.with_name("memory.db-wal").stat().st_size < 64 * 1024 * 1024
    await store.close()
    assert not path.with_name("memory.db-wal").exists()


async def test_reads_cannot_change_anything(path: Path) -> None:
    store = await SqliteStore.open(path)
    with pytest.raises(Exception, match=r"readonly|read-only"):
        await store._engine.read(lambda reader: reader.execute("DELETE FROM log"))
    await store.close()


async def test_a_store_is_a_store(path: Path) -> None:
    store: Store = await SqliteStore.open(path)
    await store.close()
