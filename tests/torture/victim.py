"""A process that writes and archives without end, and says what was acknowledged, until it is killed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from aforesaid.store.readable import ReadableStore
from torture.support import opened
from torture.witness import Event, to_wire
from torture.workload import bustle
from torture.zygote import Tell


def write_until_killed(tell: Tell, options: dict[str, Any]) -> None:
    """Run `options["writers"]` writers and an archivist over the file at `options["path"]`, with rivals or without."""

    def heard(event: Event) -> None:
        tell(["heard", to_wire(event)])

    async def write_files(store: ReadableStore) -> None:
        while True:
            await asyncio.to_thread(store._files.write)

    async def run() -> None:
        tag, writers, rivals = options["tag"], options["writers"], options["rivals"]
        async with opened(Path(options["path"]), kind=options["kind"]) as store:
            if isinstance(store, ReadableStore):
                # They would be written in pauses, and there are none.
                writing = asyncio.create_task(write_files(store))
                writing.add_done_callback(lambda done: done.result())
            await bustle(store, heard, seed=tag, tag=tag, writers=writers, messages=None, archives=None, rivals=rivals)

    asyncio.run(run())
