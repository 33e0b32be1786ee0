"""The database: transactions that read and transactions that write, over connections that may break."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeVar

import psycopg

from aforesaid.errors import AforesaidError, StoreClosed
from aforesaid.store.postgres.breaker import Breaker
from aforesaid.store.postgres.connection import Options, Pool, can_be_repeated, is_gone, translate
from aforesaid.store.postgres.queries import SNAPSHOT, WRITING, Queries, opening
from aforesaid.store.postgres.write_transaction import WriteTransaction

if TYPE_CHECKING:
    from aforesaid.store.postgres.connection import Connection

T = TypeVar("T")

_FIRST_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 0.5
_REPEATS: Final = 5
"""How often a transaction is repeated that the database rolled back because of others."""
_PROBE_SECONDS: Final = 2.0
"""The least time that an attempt gets, such as the first one after the breaker opened."""

_COMMITTED: Final = "SELECT batch FROM writer WHERE space = $1 AND writer = $2"
_MARK: Final = """
INSERT INTO writer (space, writer, batch) VALUES ($1, $2, $3)
ON CONFLICT (space, writer) DO UPDATE SET batch = excluded.batch, at = excluded.at
"""
_DROP_MARKS: Final = "DELETE FROM writer WHERE starts_with(writer, $1) OR at < now() - interval '7 days'"
"""Drops the marks of a process that ends, and those of processes that died without dropping theirs."""


class Database:
    """One database, for one event loop."""

    def __init__(self, dsn: str, options: Options) -> None:
        self.pool = Pool(dsn, options)
        self.breaker = Breaker(self.pool.shown)
        self._patience = options.patience
        self._answer_seconds = options.statement_seconds + 1.0
        """One more than the server's own limit, which has the better message."""
        self._name = uuid.uuid4().hex
        self._batches = 0
        self._marked = False

    async def read(self, space: str | None, work: Callable[[Queries], Awaitable[T]]) -> T:
        """Run several reads that all see the same moment."""

        async def attempt(seconds: float) -> T:
            async with self.pool.connection(seconds) as connection:
                queries = self._queries(connection, SNAPSHOT, space)
                try:
                    result = await work(queries)
                except (psycopg.Error, AforesaidError):
                    await queries.finish(keep=False)
                    raise
                await queries.finish(keep=True)
                return result

        return await self._persist("reading", attempt)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Queries]:
        """Read for as long as it takes, over all spaces, what is there at one moment. Nothing is tried again."""
        async with self.pool.connection() as connection:
            queries = self._queries(connection, SNAPSHOT, None)
            queries.later("SET LOCAL statement_timeout = 0")
            queries.later("SET LOCAL idle_in_transaction_session_timeout = 0")
            try:
                yield queries
            finally:
                await queries.finish(keep=False)

    async def write(self, spaces: Sequence[str], who: str, work: Callable[[WriteTransaction], Awaitable[T]]) -> T:
        """Run a change that holds the rows of its spaces, exactly once, even if the connection breaks.

        A transaction whose commit was not answered may have happened or not. Whoever asks again waits for the same
        rows, so it is over by then, and its mark says what became of it. Two that write to the same space at the same
        time have different names (`who`), because each leaves one mark.
        """
        ordered = sorted(set(spaces))
        writer = f"{self._name}/{who}"
        self._batches += 1
        batch = self._batches
        made: list[T] = []

        async def attempt(_: float) -> T:
            async with self.pool.connection() as connection:
                queries = self._queries(connection, WRITING, ordered[0] if len(ordered) == 1 else None)
                transaction = WriteTransaction(queries, ordered)
                try:
                    if made:
                        await transaction.begin()
                        if await queries.value(_COMMITTED, ordered[0], writer) == batch:
                            await queries.finish(keep=False)
                            return made[-1]
                    made.clear()
                    result = await work(transaction)
                    transaction.settle()
                    queries.later(_MARK, ordered[0], writer, batch)
                    made.append(result)
                    self._marked = True
                    await queries.finish(keep=True)
                except (psycopg.Error, AforesaidError) as error:
                    if not is_gone(error):
                        made.clear()
                        await queries.finish(keep=False)
                    raise
                return result

        return await self._persist("writing to", attempt)

    async def close(self) -> None:
        """Let go of everything."""
        if self._marked and self.breaker.state == "closed":
            try:
                await asyncio.wait_for(self._drop_marks(), 5)
            except (psycopg.Error, OSError, TimeoutError, StoreClosed):
                self._marked = False  # whoever closes the store in a week drops them
        await self.pool.close()

    def _queries(self, connection: Connection, begin: str, space: str | None) -> Queries:
        """Return a transaction that sees one space, or all of them."""
        distributed = self.pool.distributed
        seconds = self._answer_seconds if begin == WRITING else None
        first = opening(begin, space, distributed=distributed)
        first[1:1] = self.pool.transaction_settings
        return Queries(connection, first, seconds, distributed=distributed)

    async def _drop_marks(self) -> None:
        async with self.pool.connection() as connection:
            queries = self._queries(connection, WRITING, None)
            queries.later(_DROP_MARKS, self._name)
            await queries.finish(keep=True)

    async def _persist(self, doing: str, attempt: Callable[[float], Awaitable[T]]) -> T:
        """Try until it works, the database refuses, or the time is over. Each attempt gets the seconds that are left."""
        probe = self.breaker.admit()
        give_up = time.monotonic() + (0.0 if probe else self._patience)
        pause, repeats = _FIRST_PAUSE, 0
        while True:
            try:
                result = await attempt(max(give_up - time.monotonic(), _PROBE_SECONDS))
            except AforesaidError:
                self.breaker.answered()
                raise
            except (psycopg.Error, OSError) as error:
                where = self.pool.shown
                if can_be_repeated(error) and repeats < _REPEATS:
                    repeats += 1
                    continue
                if not is_gone(error):
                    self.breaker.answered()
                    raise translate(error, where, doing) from error
                if time.monotonic() + pause > give_up:
                    unavailable = translate(error, where, doing)
                    self.breaker.failed(unavailable)
                    raise unavailable from error
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
            else:
                self.breaker.answered()
                return result
