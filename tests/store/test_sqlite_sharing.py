"""A file that several have open: processes, children, other libraries; and one that is taken away."""

from __future__ import annotations

import asyncio
import gc
import os
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import apsw
import pytest

from aforesaid.domain.scope import Scope
from aforesaid.errors import StoreBusy, StoreClosed, StoreError
from aforesaid.store import open_store
from aforesaid.store.messages import Messages, Sessions, UserLedger
from aforesaid.store.people import Users
from aforesaid.store.searches import SearchText
from aforesaid.store.sqlite import Options, SqliteStore, engine
from making import add, adding
from store.processes import run_program

ANN = Scope.of("ann")
T = TypeVar("T")


async def test_everybody_in_a_process_shares_one_owner_of_the_file(path: Path, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(path)
    first = await SqliteStore.open(path)
    second = await SqliteStore.open(tmp_path / "link.db")
    assert first._engine is second._engine
    await first.close()
    with pytest.raises(StoreClosed):
        await first.read(Messages(ANN))
    await add(second, ANN, "still open")
    await second.close()
    third = await SqliteStore.open(path)
    assert third._engine is not second._shared
    assert len(await third.read(Messages(ANN))) == 1
    await third.close()


OTHER_PROCESS = """
import asyncio, sys
from aforesaid.memory import connect
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
    everything = await store.read(
        Messages(before_scope := Scope.of("me", thread="general"), within="thread", limit=1000)
    )
    assert [message.seq for message in everything] == sorted(message.seq for message in everything)
    for user in ("me", "carl", "dora"):
        own = [message.text for message in everything if message.user == user and message != before]
        assert own == [f"{user} {number}" for number in range(40)]
    # The other process made people and threads that this one had not heard of.
    await add(store, Scope.of("carl"), "in his own chat")
    assert (await store.read(UserLedger(Scope.of("carl")))).messages == 41
    assert (await store.read(SearchText(before_scope, "dora", within="thread", limit=100))) != []
    assert (await store.verify()).ok
    await store.close()


async def test_whoever_another_process_erased_can_come_back(path: Path) -> None:
    store = await open_store(path)
    await add(store, ANN, "before")
    done = await run_program('import aforesaid, sys; aforesaid.open(sys.argv[1]).purge("ann")', path)
    assert done.returncode == 0, done.stderr
    await add(store, ANN, "after")
    assert [message.text for message in await store.read(Messages(ANN))] == ["after"]
    assert [(user.id, user.messages) for user in await store.read(Users())] == [("ann", 1)]
    assert [session.messages for session in await store.read(Sessions(ANN))] == [1]
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
    assert [message.text for message in await store.read(Messages(ANN))] == ["before", "after"]
    await store.close()


FORKED = """
import asyncio, os, sys
from making import add, adding
from aforesaid.domain.scope import Scope
from aforesaid.errors import StoreClosed, StoreRefused
from aforesaid.store import open_store
from aforesaid.store.messages import Messages

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
    await refused(open_store(path), StoreRefused, "forked")
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
assert len(loop.run_until_complete(store.read(Messages(ann)))) == 2
loop.run_until_complete(store.close())
"""


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
    assert [message.text for message in await new.read(Messages(ANN))] == ["new"]
    await new.close()
    await old.close()


async def test_another_sqlite_library_in_this_process_cannot_make_us_acknowledge_what_is_lost(path: Path) -> None:
    store = await open_store(path)
    await add(store, ANN, "before")
    # Closing this connection drops every lock of the process on the file; the next process then tidies the log away.
    with closing(sqlite3.connect(path)) as other:
        other.execute("SELECT count(*) FROM messages").fetchone()
    tidied = await run_program("import aforesaid, sys; aforesaid.open(sys.argv[1]).close()", path)
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
import aforesaid, sys
with aforesaid.open(sys.argv[1]) as memory:
    print(*[message.text for message in memory.user("ann").history()], sep="\\n")
"""


@pytest.mark.parametrize("opens", [True, False])
async def test_opening_that_nobody_waits_for_lets_go_of_the_file_again(path: Path, opens: bool) -> None:  # noqa: FBT001
    trouble: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: trouble.append(context))
    with closing(apsw.Connection(str(path))) as other:
        other.pragma("journal_mode", "wal")
        other.execute("BEGIN IMMEDIATE")
        opening = asyncio.create_task(SqliteStore.open(path, Options(busy_seconds=60 if opens else 0.2)))
        slot = await some(lambda: engine._slots.get((path.resolve(), None)))
        await some(slot.lock.locked)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        if opens:
            other.execute("ROLLBACK")
            assert (await some(lambda: slot.engine)).users == 1
        await some(lambda: not slot.lock.locked() and slot.engine is None)
    for _ in range(10):
        await asyncio.sleep(0)
    gc.collect()
    assert trouble == [], "nobody is told of what nobody waits for"


async def some(look: Callable[[], T | None]) -> T:
    """Wait until there is something to see, looking in every turn of the loop."""
    async with asyncio.timeout(120):
        while not (found := look()):
            await asyncio.sleep(0)
    return found


async def test_a_locked_file_does_not_keep_others_from_being_opened(path: Path, tmp_path: Path) -> None:
    with closing(apsw.Connection(str(path))) as other:
        other.pragma("journal_mode", "wal")
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(SqliteStore.open(path, Options(busy_seconds=60)))
        await asyncio.sleep(0.05)
        store = await asyncio.wait_for(open_store(tmp_path / "other.db"), 50)
        await store.close()
        other.execute("ROLLBACK")
    await (await waiting).close()
