"""Upkeep by any number of processes on any machine, through a queue in the same PostgreSQL database.

The queue only spreads the work. What is due is still derived from what is stored: a scan looks for it every few seconds
and puts it in the queue, once for each user or subject, so nothing is forgotten when a job is lost. Locks keep two
workers from the same user; the store's own checks keep them from storing anything twice, whatever happens to the locks.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from aforesaid.domain.agenda import Subject
from aforesaid.domain.memory import Unextracted
from aforesaid.domain.scope import Scope
from aforesaid.errors import StoreRefused, StoreUnavailable
from aforesaid.extras import how_to_install

try:
    import psycopg
    from procrastinate import App, PsycopgConnector, RetryStrategy
    from procrastinate.exceptions import AlreadyEnqueued, ProcrastinateException
    from procrastinate.jobs import Status
except ImportError as missing:
    raise StoreRefused(f"workers need more packages; {how_to_install('postgres')}") from missing

if TYPE_CHECKING:
    from aforesaid.upkeep.digesting import Digesting
    from aforesaid.upkeep.extracting import Extracting
    from aforesaid.upkeep.part import Part

_log: Final = logging.getLogger("aforesaid.upkeep")

SCAN_SECONDS: Final = 2.0
_PAGE: Final = 500
_STALLED_SECONDS: Final = 15
"""A job whose worker has not been heard of for so long is given to another."""
_QUEUE: Final = "aforesaid"
_SCHEMA_LOCK: Final = 0x52436C75
_LONGEST_PAUSE: Final = 10.0


@dataclass(frozen=True, slots=True)
class Shop:
    """The parts of upkeep that workers do."""

    extracting: Extracting
    digesting: Digesting
    others: tuple[Part, ...]
    """Those that go over everything by themselves: one worker at a time does each."""


class Workers:
    """One process that works."""

    def __init__(self, dsn: str, shop: Shop, *, concurrency: int = 4, scan_seconds: float = SCAN_SECONDS) -> None:
        self._dsn = dsn
        self._shop = shop
        self._concurrency = concurrency
        self._scan_seconds = scan_seconds
        self._stopping = asyncio.Event()
        self.done = 0
        """How many jobs were done."""

    def stop(self) -> None:
        """Take no more jobs, finish those that were begun, and end."""
        self._stopping.set()

    async def run(self) -> None:
        """Work until `stop` is called. Every failure is logged and retried, with longer and longer pauses."""
        pause = 0.2
        while not self._stopping.is_set():
            try:
                await self._work()
                pause = 0.2
            except (psycopg.Error, ProcrastinateException, OSError, StoreUnavailable) as error:
                _log.warning("the queue cannot be reached and is tried again in %.1f s: %s", pause, error)
            except Exception:
                _log.exception("the worker failed and is started again in %.1f s", pause)
            else:
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._stopping.wait()
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _work(self) -> None:
        await prepare_queue(self._dsn)
        connector = PsycopgConnector(conninfo=self._dsn, min_size=1, max_size=self._concurrency + 3)
        app = App(connector=connector)
        self._declare(app)
        async with app.open_async():
            worker = asyncio.create_task(
                app.run_worker_async(
                    queues=[_QUEUE],
                    concurrency=self._concurrency,
                    install_signal_handlers=False,
                    delete_jobs="successful",
                    fetch_job_polling_interval=self._scan_seconds,
                    update_heartbeat_interval=3.0,
                    stalled_worker_timeout=float(_STALLED_SECONDS),
                    shutdown_graceful_timeout=30.0,
                )
            )
            scanning = asyncio.create_task(self._scan_again_and_again(app))
            stopping = asyncio.create_task(self._stopping.wait())
            try:
                ended, _ = await asyncio.wait({worker, scanning, stopping}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (scanning, stopping, worker):
                    task.cancel()
                outcomes = await asyncio.gather(scanning, stopping, worker, return_exceptions=True)
            if stopping not in ended:
                failed = [each for each in outcomes if isinstance(each, Exception)]
                if failed:
                    raise failed[0]

    def _declare(self, app: App) -> None:
        """Tell the queue what can be done."""
        again = RetryStrategy(max_attempts=5, exponential_wait=2)
        shop = self._shop

        async def extract(space: str, user: str, after: int, last: int) -> None:
            await self._did(shop.extracting.look_through_one(Unextracted(Scope.of(user, space), after, last)))

        async def digest(policy: str, space: str, user: str, thread: str, day: str) -> None:
            await self._did(shop.digesting.work_off_one(Subject(policy, space, user, thread, day)))

        async def whole(name: str) -> None:
            part = next(part for part in shop.others if part.name == name)
            await self._did(part.run())

        app.task(name="extract", queue=_QUEUE, retry=again)(extract)
        app.task(name="digest", queue=_QUEUE, retry=again)(digest)
        app.task(name="whole", queue=_QUEUE, retry=again)(whole)

    async def _did(self, work: Awaitable[object]) -> None:
        await work
        self.done += 1

    async def _scan_again_and_again(self, app: App) -> None:
        while True:
            await self._scan(app)
            await asyncio.sleep(self._scan_seconds)

    async def _scan(self, app: App) -> None:
        """Put what is due in the queue, after what workers that died were doing was taken out of it.

        A job that was left behind is not tried again itself: one for the same subject may wait already, and two cannot.
        """
        for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=_STALLED_SECONDS):
            _log.warning("job %s was left behind by a worker that died; it is given to another", job.id)
            if job.id is not None:
                await app.job_manager.finish_job_by_id_async(job.id, Status.FAILED, delete_job=True)
        shop = self._shop
        for part in shop.others:
            await _enqueue(app, "whole", part.name, name=part.name)
        for (space, user, _, _), after, last in await shop.extracting.waiting(_PAGE):
            await _enqueue(app, "extract", f"{space}\n{user}", space=space, user=user, after=after, last=last)
        for subject in await shop.digesting.due(_PAGE):
            await _enqueue(app, "digest", "\n".join(subject), **subject._asdict())


async def _enqueue(app: App, task: str, subject: str, **given: str | int) -> None:
    """Put a job in the queue, unless one for the same subject waits there."""
    # A hash, because names may be longer than an index takes, and may hold anything.
    lock = f"{task} {blake2b(subject.encode(), digest_size=16).hexdigest()}"
    defer: Callable[..., Awaitable[int]] = app.configure_task(
        task, queue=_QUEUE, lock=lock, queueing_lock=lock
    ).defer_async
    with suppress(AlreadyEnqueued):
        await defer(**given)


async def prepare_queue(dsn: str) -> None:
    """Make the tables of the queue, once."""
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        await connection.execute("SELECT pg_advisory_lock(%s)", (_SCHEMA_LOCK,))
        row = await (await connection.execute("SELECT to_regclass('procrastinate_jobs') IS NOT NULL")).fetchone()
        if row is not None and not row[0]:
            async with App(connector=PsycopgConnector(conninfo=dsn)).open_async() as app:
                await app.schema_manager.apply_schema_async()
