"""A process that writes and archives without end, and says what was acknowledged, until it is killed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from torture.support import opened
from torture.witness import Event, to_wire
from torture.workload import bustle
from torture.zygote import Tell


def write_until_killed(tell: Tell, options: dict[str, Any]) -> None:
    """Run `options["writers"]` writers and an archivist over the file at `options["path"]`, with rivals or without."""

    def heard(event: Event) -> None:
        tell(["heard", to_wire(event)])

    async def run() -> None:
        tag, writers, rivals = options["tag"], options["writers"], options["rivals"]
        async with opened(Path(options["path"])) as store:
            await bustle(store, heard, seed=tag, tag=tag, writers=writers, messages=None, archives=None, rivals=rivals)

    asyncio.run(run())
