"""Processes that share a file: some write a given number of messages, some read without end."""

from __future__ import annotations

import asyncio
import itertools
import signal
from pathlib import Path
from typing import Any

from aforesaid.domain.scope import Scope
from aforesaid.store import Store
from aforesaid.store.messages import Messages
from aforesaid.store.searches import SearchText
from torture.support import opened
from torture.witness import Event, to_wire
from torture.workload import SHARED_THREADS, USERS, write
from torture.zygote import Tell


def write_messages(tell: Tell, options: dict[str, Any]) -> None:
    """Write `messages` change sets, shared out among `writers`, and say what was acknowledged."""

    def heard(event: Event) -> None:
        tell(["heard", to_wire(event)])

    async def run() -> None:
        tag, share = options["tag"], options["messages"] // options["writers"]
        async with opened(Path(options["path"])) as store, asyncio.TaskGroup() as tasks:
            for number in range(options["writers"]):
                tasks.create_task(write(store, heard, f"{tag}.w{number}", tag, share))

    asyncio.run(run())


def read_until_stopped(tell: Tell, options: dict[str, Any]) -> None:
    """Read with `readers` tasks until SIGTERM, then say how often."""

    async def run() -> None:
        stopped = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
        async with opened(Path(options["path"])) as store:
            tell(["reading"])
            counts = await asyncio.gather(*(read(store, number, stopped) for number in range(options["readers"])))
        tell(["read", sum(counts)])

    asyncio.run(run())


async def read(store: Store, number: int, stopped: asyncio.Event) -> int:
    """Read history and search, of everybody in turn, until told to stop. Returns how often."""
    for turn in itertools.count():
        if stopped.is_set():
            return turn
        scope = Scope.of(USERS[(number + turn) % len(USERS)], thread=SHARED_THREADS[turn % len(SHARED_THREADS)])
        if turn % 2:
            await store.read(Messages(scope, within="thread", limit=50))
        else:
            await store.read(SearchText(scope, "Berlin garden", limit=5))
    raise AssertionError("counting does not end")
