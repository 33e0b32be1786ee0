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
    StoreError,
    StoreTooNew,
    StoreUnavailable,
)
from recollect.store import Store, default_location, locate, open_store, restore_store, sqlite_path
from recollect.store.sqlite import Options, SqliteStore, connection, migrate, sharing
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


FORKED = """
import asyncio, os, sys
from making import add, adding
from recollect.domain.scope import Scope
from recollect.errors import StoreClosed, StoreUnavailable
from recollect.store import open_store

ann = Scope.of("ann")

async def refused(call, error, said):
    try:
        await call
    except error as raised:
        assert said in str(raised), raised
    else:
        raise AssertionError("was not refused")

async def child(store, path):
    await refused(store.apply([adding(ann, "from the child")]), StoreClosed, "forked")
    await refused(open_store(path), StoreUnavailable, "forked")
    await store.close()
    other = await open_store(path + ".other")
    await add(other, ann, "another file is fine")
    await other.close()

async def parent(path):
    store = await open_store(path)
    await add(store, ann, "before")
    return store

loop = asyncio.new_event_loop()
store = loop.run_until_complete(parent(sys.argv[1]))
pid = os.fork()
if pid == 0:
    asyncio.run(child(store, sys.argv[1]))
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
loop.run_until_complete(add(store, ann, "after"))
assert len(loop.run_until_complete(store.messages(ann))) == 2
loop.run_until_complete(store.close())
"""


async def run_program(program: str, path: Path) -> subprocess.CompletedProcess[bytes]:
    """Run a program that may use the tests' helpers."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program, str(path)]
    return await asyncio.to_thread(
        subprocess.run, command, check=False, env=environment, capture_output=True, timeout=60
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
async def test_a_file_that_was_open_at_a_fork_is_refused_in_the_child(path: Path) -> None:
    done = await run_program(FORKED, path)
    assert done.returncode == 0, done.stderr


async def test_a_file_that_is_removed_while_it_is_open_is_noticed_before_anything_is_acknowledged(path: Path) -> None:
    store = await open_store(path)
    await add(store, ANN, "before")
    path.unlink()
    path.with_name("memory.db-wal").unlink()
    with pytest.raises(StoreError):
        await add(store, ANN, "into the void")
    assert (await store.health()).status == "failing"
    await store.close()


async def test_whoever_opens_a_replaced_file_gets_the_new_one(path: Path) -> None:
    old = await SqliteStore.open(path)
    await add(old, ANN, "old")
    path.rename(path.with_name("moved.db"))
    path.with_name("memory.db-wal").rename(path.with_name("moved.db-wal"))
    new = await SqliteStore.open(path)
    assert new._engine is not old._engine
    await add(new, ANN, "new")
    assert [message.text for message in await new.messages(ANN)] == ["new"]
    await new.close()
    await old.close()


async def test_another_sqlite_library_in_this_process_cannot_make_us_acknowledge_what_is_lost(path: Path) -> None:
    store = await open_store(path)
    await add(store, ANN, "before")
    # Closing this connection drops every lock of the process on the file; the next process then tidies the log away.
    with closing(sqlite3.connect(path)) as other:
        other.execute("SELECT count(*) FROM messages").fetchone()
    tidied = await run_program("import recollect, sys; recollect.open(sys.argv[1]).close()", path)
    assert tidied.returncode == 0, tidied.stderr
    for number in range(3):
        with pytest.raises(StoreError, match="Close it and open it again"):
            await add(store, ANN, f"into the void {number}")
    await store.close()
    store = await open_store(path)
    await add(store, ANN, "after")
    await store.close()
    assert (await run_program(COUNT, path)).stdout.decode().splitlines() == ["before", "after"]


COUNT = """
import recollect, sys
with recollect.open(sys.argv[1]) as memory:
    print(*[message.text for message in memory.user("ann").history()], sep="\\n")
"""


async def test_one_unexpected_error_does_not_stop_the_writer(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await SqliteStore.open(path)
    for broken in ("commit", "checkpoint_when_due"):

        def fail(*_args: object, **_kwargs: object) -> None:
            raise MemoryError("injected")

        with monkeypatch.context() as patch:
            patch.setattr(store._engine.writer, broken, fail)
            try:
                await asyncio.wait_for(add(store, ANN, f"while {broken} is broken"), 10)
            except MemoryError:
                assert broken == "commit"
        await asyncio.wait_for(add(store, ANN, f"after {broken}"), 10)
    texts = [message.text for message in await store.messages(ANN)]
    assert texts == ["after commit", "while checkpoint_when_due is broken", "after checkpoint_when_due"]
    await store.close()


async def test_opening_that_nobody_waits_for_lets_go_of_the_file_again(path: Path) -> None:
    await (await open_store(path)).close()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(open_store(path), 0)
    await asyncio.sleep(0)
    for _ in range(500):
        slot = sharing._slots.get((path.resolve(), None))
        if slot is None or slot.engine is None:
            break
        await asyncio.sleep(0.01)
    else:
        pytest.fail("the file is still open")


async def test_a_locked_file_does_not_keep_others_from_being_opened(path: Path, tmp_path: Path) -> None:
    with closing(apsw.Connection(str(path))) as other:
        other.pragma("journal_mode", "wal")
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(SqliteStore.open(path, Options(busy_seconds=5)))
        await asyncio.sleep(0.05)
        store = await asyncio.wait_for(open_store(tmp_path / "other.db"), 4)
        await store.close()
        other.execute("ROLLBACK")
    await (await waiting).close()


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
    died = await run_program(BAD_SYNC, path)
    assert died.returncode == 9, died.stderr
    store = await open_store(path)
    assert [message.text for message in await store.messages(ANN)] == ["before"]
    assert (await store.verify()).ok
    await store.close()


@pytest.mark.parametrize("schema", [step.number for step in migrations()[:-1]])
async def test_a_file_of_an_earlier_version_is_brought_up_to_date(
    path: Path, schema: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(migrate, "migrations", lambda: migrations()[:schema])
        store = await open_store(path)
        await add(store, ANN, "written long ago")
        await store.close()
    store = await open_store(path)
    assert [hit.text for hit in await store.search_text(ANN, "written")] == ["written long ago"]
    assert [due.text for due in await store.unembedded("any", 10)] == ["written long ago"]
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
    before = path.read_bytes()
    with pytest.raises(StoreUnavailable, match="not one of Recollect's"):
        await open_store(path)
    assert path.read_bytes() == before


async def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.write_text("Dear diary, " * 1000)
    with pytest.raises(StoreUnavailable, match="not a SQLite database"):
        await open_store(path)
    assert path.read_text().startswith("Dear diary")


async def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        await open_store(tmp_path / "file" / "memory.db")
    with pytest.raises(StoreUnavailable, match="is a folder"):
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
        "a line that makes no sense\n"
    )
    assert file_system_of(Path("/home/ann/memory.db"), mounts) == "ext4"
    assert file_system_of(Path("/mnt/team share/memory.db"), mounts) == "nfs4"
    assert file_system_of(Path("/mnt/team share/local/memory.db"), mounts) == "xfs"
    refuse_unsafe_places(tmp_path / "memory.db")
    shared = tmp_path / "share"
    shared.mkdir()
    (tmp_path / "link.db").symlink_to(shared / "memory.db")

    def kind(place: Path, _mounts: str) -> str:
        return "nfs4" if place.is_relative_to(shared) else "ext4"

    monkeypatch.setattr(connection, "file_system_of", kind)
    for place in (shared / "memory.db", tmp_path / "link.db"):
        with pytest.raises(StoreUnavailable, match=r"network file system \(nfs4\)"):
            sharing.acquire(place, Options())


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


async def test_verify_survives_text_that_is_no_text(path: Path) -> None:
    store = await open_store(path)
    await add(store, ANN, "one", "two", "three")
    await damage(path, "UPDATE log SET text = CAST(x'ff00fe' AS TEXT) WHERE seq = 2")
    report = await store.verify()
    found = {check.name: check.detail for check in report.checks if not check.ok}
    assert found["hashes"] == "#2 is not what was stored"
    with pytest.raises(StoreDamaged, match="not valid Unicode"):
        await store.messages(ANN)
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


async def backed_up(path: Path, target: Path) -> None:
    store = await open_store(path)
    await add(store, ANN, "in the backup")
    await store.backup(target)
    await add(store, ANN, "later")
    await store.close()


async def test_a_log_left_by_a_crash_never_meets_the_restored_file(path: Path, tmp_path: Path) -> None:
    await backed_up(path, tmp_path / "copy.db")
    await run_program(KILLED, path)
    assert path.with_name("memory.db-wal").exists()
    path.unlink()
    restore_store(tmp_path / "copy.db", path, replace=False)
    store = await open_store(path)
    assert [message.text for message in await store.messages(ANN)] == ["in the backup"]
    assert (await store.verify()).ok
    await store.close()
    assert [entry for entry in tmp_path.iterdir() if entry.name.endswith("-wal")]


@pytest.mark.parametrize("rubbish", [b"not a database at all " * 100, b""])
async def test_what_is_damaged_can_be_replaced_by_a_backup(path: Path, tmp_path: Path, rubbish: bytes) -> None:
    await backed_up(path, tmp_path / "copy.db")
    path.write_bytes(rubbish)
    aside = restore_store(tmp_path / "copy.db", path, replace=True)
    assert aside is not None
    assert aside.read_bytes() == rubbish
    store = await open_store(path)
    assert [message.text for message in await store.messages(ANN)] == ["in the backup"]
    await store.close()


async def test_restoring_leaves_the_backup_as_it_is(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    await backed_up(path, copy)
    before = copy.read_bytes()
    copy.chmod(0o400)
    restore_store(copy, path, replace=True)
    assert copy.read_bytes() == before


async def test_a_restore_that_fails_leaves_the_store_where_it_is(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await backed_up(path, tmp_path / "copy.db")

    def fail(*_args: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(StoreUnavailable):
        restore_store(tmp_path / "copy.db", path, replace=True)
    monkeypatch.undo()
    store = await open_store(path)
    assert [message.text for message in await store.messages(ANN)] == ["in the backup", "later"]
    await store.close()


async def test_of_many_backups_to_one_name_one_wins_and_is_whole(path: Path, tmp_path: Path) -> None:
    store = await open_store(path)
    await add(store, ANN, *["some text"] * 50)
    copy = tmp_path / "copies" / "copy.db"
    outcomes = await asyncio.gather(*[store.backup(copy) for _ in range(4)], return_exceptions=True)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["InvalidInput"] * 3 + ["NoneType"]
    assert [entry.name for entry in copy.parent.iterdir()] == ["copy.db"]
    restore_store(copy, tmp_path / "again.db", replace=False)
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        await store.backup(Path("/proc/no/such/place.db"))
    await store.close()


async def test_a_file_system_without_links_can_hold_backups(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_store(path)
    await add(store, ANN, "some text")

    def fail(*_args: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", fail)
    await store.backup(tmp_path / "copy.db")
    with pytest.raises(InvalidInput, match="exists already"):
        await store.backup(tmp_path / "copy.db")
    await store.close()
    assert restore_store(tmp_path / "copy.db", path, replace=True) is not None


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
    assert locate("json:memory.json") == ("json", Path("memory.json"))
    assert locate("files:memory/") == ("files", Path("memory"))
    for wrong in ("", "json:", "files:", "mysql://host/db", "nul\0", 5):
        with pytest.raises(InvalidInput):
            sqlite_path(wrong)  # type: ignore[arg-type]
    monkeypatch.setenv("RECOLLECT_STORE", f"sqlite:{tmp_path / 'chosen.db'}")
    assert sqlite_path(None) == tmp_path / "chosen.db"
    monkeypatch.setenv("RECOLLECT_STORE", ":memory:")
    assert sqlite_path(None) is None
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
