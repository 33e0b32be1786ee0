"""Upkeep by any number of processes on any machine, through a queue in the same PostgreSQL database.

The queue only spreads the work. What is due is still derived from what is stored: a scan looks for it every few seconds
and puts it in the queue, once for each user or subject, so nothing is forgotten when a job is lost. Locks keep two
workers from the same user; the store's own checks keep them from storing anything twice, whatever happens to the locks.

Two background loops do this in each process: `queue worker` carries out jobs and `queue scan` looks for what is due.
Both go on after every failure, and health shows them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from aforesaid.background import BackgroundLoop, BackgroundLoops, Work
from aforesaid.domain.memory import Unextracted
from aforesaid.domain.scope import Scope, Subject
from aforesaid.errors import StoreRefused, StoreUnavailable
from aforesaid.extras import how_to_install

try:
    import psycopg
    from procrastinate import App, PsycopgConnector, RetryStrategy
    from procrastinate.exceptions import AlreadyEnqueued, ProcrastinateException
    from procrastinate.jobs import Status

    from aforesaid.store.postgres.connection import is_pooled
except ImportError as missing:
    raise StoreRefused(f"workers need more packages; {how_to_install('postgres')}") from missing

if TYPE_CHECKING:
    from aforesaid.upkeep.digesting import Digesting
    from aforesaid.upkeep.extracting import Extracting
    from aforesaid.upkeep.upkeep import UpkeepTask

_log: Final = logging.getLogger("aforesaid.upkeep")

_UNREACHABLE: Final = (psycopg.Error, ProcrastinateException, OSError)
"""Errors of psycopg and procrastinate when the database is unavailable or refuses."""
SCAN_SECONDS: Final = 2.0
"""Pause between two scans for what is due: about how long a message waits for a worker."""
_PAGE: Final = 500
_STALLED_SECONDS: Final = 15
"""Time without a heartbeat of a worker after which its jobs are given to others."""
_QUEUE: Final = "aforesaid"
_SCHEMA_LOCK: Final = 0x52436C75
_RETRY_SECONDS: Final = 0.2
_LONGEST_RETRY_SECONDS: Final = 10.0
"""Longest pause between two attempts to reach the queue: a database that restarts is back within seconds."""
_SHUTDOWN_SECONDS: Final = 30.0
"""Time that running jobs have to finish when a worker is stopped."""


@dataclass(frozen=True, slots=True)
class WorkerTasks:
    extracting: Extracting
    digesting: Digesting
    others: tuple[UpkeepTask, ...]
    """Tasks that scan the whole store; one worker at a time runs each."""


class Workers:
    def __init__(
        self,
        dsn: str,
        tasks: WorkerTasks,
        loops: BackgroundLoops,
        *,
        concurrency: int = 4,
        scan_seconds: float = SCAN_SECONDS,
    ) -> None:
        """Work on the queue of the database `dsn`. Health shows the loops that are added to `loops`."""
        self._dsn = dsn
        self._tasks = tasks
        self._concurrency = concurrency
        self._scan_seconds = scan_seconds
        self._loops = loops
        self._working = loops.add(self._loop("queue worker", self._work))
        self._stopping = asyncio.Event()
        self.done = 0

    def stop(self) -> None:
        """Accept no more jobs, finish the running ones, and end."""
        self._stopping.set()

    async def run(self) -> None:
        """Work until `stop` is called. Every failure is logged and retried, with longer and longer pauses."""
        self._working.start()
        try:
            await self._stopping.wait()
        finally:
            await self._working.stop()

    def _loop(self, name: str, work: Work) -> BackgroundLoop:
        return BackgroundLoop(
            name, work, retry_seconds=_RETRY_SECONDS, longest_retry_seconds=_LONGEST_RETRY_SECONDS, log=_log
        )

    async def _work(self) -> float:
        """Carry out jobs until cancelled; raise StoreUnavailable when the queue cannot be reached."""
        try:
            pooled = await prepare_queue(self._dsn)
            connector = PsycopgConnector(
                conninfo=self._dsn,
                min_size=1,
                max_size=self._concurrency + 3,
                kwargs={"prepare_threshold": None} if pooled else None,
            )
            app = App(connector=connector)
            for job in (self._extract, self._digest, self._whole):
                name = job.__name__.removeprefix("_")
                app.task(name=name, queue=_QUEUE, retry=RetryStrategy(max_attempts=5, exponential_wait=2))(job)
            async with app.open_async():
                scanning = self._loops.add(self._loop("queue scan", lambda: self._scan(app)))
                scanning.start()
                try:
                    await app.run_worker_async(
                        queues=[_QUEUE],
                        concurrency=self._concurrency,
                        listen_notify=not pooled,  # no notification would arrive; the queue is polled anyway
                        install_signal_handlers=False,
                        delete_jobs="successful",
                        fetch_job_polling_interval=self._scan_seconds,
                        update_heartbeat_interval=3.0,
                        stalled_worker_timeout=float(_STALLED_SECONDS),
                        shutdown_graceful_timeout=_SHUTDOWN_SECONDS,
                    )
                finally:
                    await scanning.stop()
        except _UNREACHABLE as error:
            raise StoreUnavailable(f"the queue cannot be reached: {error}") from error
        return _RETRY_SECONDS

    async def _extract(self, space: str, user: str, after: int, last: int) -> None:
        await self._tasks.extracting.look_through_one(Unextracted(Scope.of(user, space), after, last))
        self.done += 1

    async def _digest(self, policy: str, space: str, user: str, thread: str, day: str) -> None:
        await self._tasks.digesting.work_off_one(Subject(policy, space, user, thread, day))
        self.done += 1

    async def _whole(self, name: str) -> None:
        await next(task for task in self._tasks.others if task.name == name).run()
        self.done += 1

    async def _scan(self, app: App) -> float:
        """Queue due work. Return the seconds until the next scan."""
        try:
            # A job of a worker that died is not tried again itself: one for the same subject may wait already, and two
            # cannot. The scan finds its work again.
            for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=_STALLED_SECONDS):
                _log.warning("job %s was left behind by a worker that died; it is given to another", job.id)
                if job.id is not None:
                    await app.job_manager.finish_job_by_id_async(job.id, Status.FAILED, delete_job=True)
            for task in self._tasks.others:
                await _enqueue(app, "whole", task.name, name=task.name)
            for (space, user, _, _), after, last in await self._tasks.extracting.waiting(_PAGE):
                await _enqueue(app, "extract", f"{space}\n{user}", space=space, user=user, after=after, last=last)
            for subject in await self._tasks.digesting.due(_PAGE):
                await _enqueue(app, "digest", "\n".join(subject), **subject._asdict())
        except _UNREACHABLE as error:
            raise StoreUnavailable(f"the queue cannot be reached: {error}") from error
        return self._scan_seconds


async def _enqueue(app: App, task: str, subject: str, **given: str | int) -> None:
    """Put a job in the queue, unless one for the same subject waits there."""
    # A hash, because names may be too long for an index, and may contain any character.
    lock = f"{task} {blake2b(subject.encode(), digest_size=16).hexdigest()}"
    defer: Callable[..., Awaitable[int]] = app.configure_task(
        task, queue=_QUEUE, lock=lock, queueing_lock=lock
    ).defer_async
    with suppress(AlreadyEnqueued):
        await defer(**given)


async def prepare_queue(dsn: str) -> bool:
    """Create the tables of the queue, once. Return whether a pooler is between us and the database."""
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection, connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_SCHEMA_LOCK,))
        row = await (await connection.execute("SELECT to_regclass('procrastinate_jobs') IS NOT NULL")).fetchone()
        if row is not None and not row[0]:
            async with App(connector=PsycopgConnector(conninfo=dsn)).open_async() as app:
                await app.schema_manager.apply_schema_async()
        return await is_pooled(connection)
