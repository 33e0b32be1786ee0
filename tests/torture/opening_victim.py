"""A process that opens a store of readable files, and kills itself before one of its calls that change a file."""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import Any

from aforesaid.store import open_store
from torture.restore_victim import Countdown, DeadlyDisk
from torture.zygote import Tell


def open_until_killed(tell: Tell, options: dict[str, Any]) -> None:
    """Open a store and close it. The process is killed before its call with the number `fatal`."""

    async def run() -> None:
        store = await open_store(options["place"])
        await store.close()

    countdown = Countdown(options["fatal"])
    disk = DeadlyDisk(countdown)
    threading.setprofile(countdown.watch_python)
    sys.setprofile(countdown.watch_python)
    try:
        asyncio.run(run())
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        disk.unregister()
    tell(["opened", countdown.calls])
