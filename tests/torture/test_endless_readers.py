"""Readers that never pause do not let the write-ahead log grow without bound."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
from pathlib import Path
from random import Random

import apsw

from aforesaid.domain.message import draft
from aforesaid.domain.scope import Scope
from aforesaid.store.messages import AddMessage
from aforesaid.store.sqlite import SqliteStore
from torture.peers import read
from torture.support import Figures, Size, opened
from torture.workload import SHARED_THREADS, USERS
from torture.zygote import Zygote

MEBIBYTE = 1 << 20
LARGEST_LOG = 64 * MEBIBYTE
READERS_HERE = 16
READERS_ELSEWHERE = 16
WRITERS = 16


def test_endless_readers_do_not_make_the_log_grow(tmp_path: Path, size: Size) -> None:
    figures = Figures(
        "endless readers",
        "acknowledged messages",
        "bytes through the log",
        "bytes in the log at most",
        "reads here",
        "reads in another process",
    )
    path = tmp_path / "read.db"
    with Zygote("torture.peers") as zygote:
        asyncio.run(create(path))
        child = zygote.start("read_until_stopped", path=str(path), readers=READERS_ELSEWHERE)
        _, _, process = zygote.expect(child, "born")
        zygote.expect(child, "reading")
        asyncio.run(write_while_others_read(path, size.of(small=4, full=200) * MEBIBYTE, figures))
        os.kill(process, signal.SIGTERM)
        _, _, reads = zygote.expect(child, "read")
        figures.add("reads in another process", reads)
        _, _, status = zygote.expect(child, "ended")
        assert status == 0
    figures.show()
    assert reads > 0
    assert figures["bytes in the log at most"] < LARGEST_LOG


async def create(path: Path) -> None:
    """Make the file, so that whoever reads it finds one."""
    async with opened(path) as store:
        for user, thread in itertools.product(USERS, SHARED_THREADS):
            await store.apply([AddMessage(draft(Scope.of(user, thread=thread), "user", "Berlin has a garden"))])


async def write_while_others_read(path: Path, amount: int, figures: Figures) -> None:
    """Push so many bytes through the log while readers of this process read without pause."""
    stopped, enough = asyncio.Event(), asyncio.Event()
    async with opened(path) as store, asyncio.TaskGroup() as readers:
        counts = [readers.create_task(read(store, number, stopped)) for number in range(READERS_HERE)]
        async with asyncio.TaskGroup() as writers:
            for number in range(WRITERS):
                writers.create_task(write(store, number, enough, figures))
            figures.add("bytes through the log", await push_through_the_log(store, amount))
            enough.set()
        stopped.set()
        figures.add("reads here", sum([await count for count in counts]))


async def write(store: SqliteStore, number: int, enough: asyncio.Event, figures: Figures) -> None:
    """Write until it is enough, and look at the log after every message."""
    chance, log = Random(number), store.path.with_name(f"{store.path.name}-wal")
    for turn in itertools.count():
        if enough.is_set():
            return
        scope = Scope.of(chance.choice(USERS), thread=chance.choice(SHARED_THREADS))
        words = chance.choices(("tea", "rain", "Berlin", "garden", "train"), k=chance.randrange(5, 200))
        await store.apply([AddMessage(draft(scope, "user", f"w{number}.{turn} {' '.join(words)}"))])
        figures.add("acknowledged messages")
        figures.highest("bytes in the log at most", (await asyncio.to_thread(log.stat)).st_size)


async def push_through_the_log(store: SqliteStore, amount: int) -> int:
    """Wait until the writer has written so many bytes to the log; return how many it were."""

    def written(connection: apsw.Connection) -> int:
        pages, _ = connection.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE)
        return pages * int(connection.pragma("page_size"))

    # The writer answers between two groups, so this goes round once for every commit.
    while (so_far := await store._engine.alone(written)) < amount:
        pass
    return so_far
