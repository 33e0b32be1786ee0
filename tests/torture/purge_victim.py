"""A process that purges a user and is killed during the purge."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

from aforesaid.domain.scope import Scope
from aforesaid.store import open_store
from torture.zygote import Tell

ANN = Scope.of("ann")


def purge_until_killed(tell: Tell, options: dict[str, Any]) -> None:
    """Open the store, and erase Ann. The process is killed when the purge has taken `seconds`."""

    async def purge() -> None:
        store = await open_store(options["place"])
        # Nobody handles this signal, so that it ends the process at once, wherever it is.
        signal.setitimer(signal.ITIMER_REAL, options["seconds"])
        await store.purge(ANN, "admin")
        tell(["purged", ""])
        signal.setitimer(signal.ITIMER_REAL, 0)
        await store.close()

    asyncio.run(purge())
