"""`aforesaid worker`: background work in separate processes."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import replace
from typing import Annotated, cast

import typer

import aforesaid
from aforesaid.cli.log_output import LogLevel, write_log
from aforesaid.cli.options import Profile, Store
from aforesaid.cli.output import say
from aforesaid.domain.checks import counted
from aforesaid.errors import InvalidInput
from aforesaid.settings import Settings, load_settings
from aforesaid.store import locate
from aforesaid.upkeep import Digesting, Extracting


def worker(
    store: Store = None,
    concurrency: Annotated[
        int, typer.Option("--concurrency", "-c", min=1, max=256, help="Jobs to run at the same time. Example: -c 8")
    ] = 4,
    profile: Profile = None,
    log_level: LogLevel = "warning",
) -> None:
    """Do the background work of all servers on a PostgreSQL database. Run any number of workers, on any machine.

    Stops with Ctrl+C or SIGTERM, after finishing running jobs. Set `background = false` for the servers. Example:

        aforesaid worker --store postgresql://db.example/aforesaid --concurrency 8
    """
    write_log(log_level)
    settings = load_settings()
    where = settings.store if store is None else store
    if locate(where).kind != "postgres":
        raise InvalidInput(
            "workers need a PostgreSQL store: pass --store postgresql://… (other stores do their work without workers)"
        )
    done = asyncio.run(_work(str(where), profile, replace(settings, background=False), concurrency))
    say(f"stopped after {counted(done, 'job')}; other workers, or the next run, do the rest")


async def _work(dsn: str, profile: str | None, settings: Settings, concurrency: int) -> int:
    from aforesaid.upkeep.workers import WorkerParts, Workers  # noqa: PLC0415 - an extra

    async with aforesaid.connect(dsn, profile=profile, settings=replace(settings, fallback="none")) as memory:
        parts = {part.name: part for part in memory._services.upkeep.parts}  # noqa: SLF001 - not public: only this command needs it
        learning, digesting = cast("Extracting", parts.pop("remembered")), cast("Digesting", parts.pop("summarised"))
        workers = Workers(
            dsn, WorkerParts(learning, digesting, tuple(parts.values())), memory.loops, concurrency=concurrency
        )
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, workers.stop)
        say(f"working, up to {counted(concurrency, 'job')} at a time; stop with Ctrl+C")
        await workers.run()
        return workers.done
