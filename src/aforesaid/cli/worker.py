"""`aforesaid worker`: upkeep by processes of their own."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import replace
from typing import Annotated, cast

import typer

import aforesaid
from aforesaid.cli.logs import LogLevel, write_log
from aforesaid.cli.options import Store
from aforesaid.cli.show import say
from aforesaid.errors import InvalidInput
from aforesaid.settings import Settings, load_settings
from aforesaid.store import locate
from aforesaid.upkeep import Digesting, Extracting


def worker(
    store: Store = None,
    concurrency: Annotated[
        int, typer.Option("--concurrency", "-c", min=1, max=256, help="So many jobs at the same time.")
    ] = 4,
    profile: Annotated[
        str | None, typer.Option("--profile", "-p", help="A built-in profile, or the path of your own.")
    ] = None,
    log_level: LogLevel = "warning",
) -> None:
    """Summarise, learn, embed and clean up for all servers of a PostgreSQL database. Any number, on any machine.

    Ends with Ctrl+C or SIGTERM: what was begun is finished first. Servers beside it are run with `background = false`.
    Example:
        aforesaid worker --store postgresql://db.example/aforesaid --concurrency 8
    """
    write_log(log_level)
    settings = load_settings()
    where = settings.store if store is None else store
    if locate(where).kind != "postgres":
        raise InvalidInput("workers share a PostgreSQL database: --store postgresql://…; other stores need none")
    done = asyncio.run(_work(str(where), profile, replace(settings, background=False), concurrency))
    say(f"stopped after {done:,} jobs; what is still due is done by the others, or next time")


async def _work(dsn: str, profile: str | None, settings: Settings, concurrency: int) -> int:
    from aforesaid.upkeep.workers import Shop, Workers  # noqa: PLC0415 - an extra

    async with aforesaid.connect(dsn, profile=profile, settings=replace(settings, fallback="none")) as memory:
        parts = {part.name: part for part in memory._upkeep.parts}  # noqa: SLF001 - no business of other callers
        learning, digesting = cast("Extracting", parts.pop("remembered")), cast("Digesting", parts.pop("summarised"))
        workers = Workers(dsn, Shop(learning, digesting, tuple(parts.values())), concurrency=concurrency)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, workers.stop)
        say(f"working, {concurrency} jobs at a time; Ctrl+C ends it")
        await workers.run()
        return workers.done
