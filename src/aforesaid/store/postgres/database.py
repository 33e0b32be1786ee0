"""The database: transactions that read and transactions that write, over connections that may break."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeVar, cast

import psycopg

from aforesaid.errors import AforesaidError, InvalidInput, StoreClosed, StoreRefused, StoreTooNew
from aforesaid.extras import re
from aforesaid.store.checksums import POSTGRES as CHECKSUMS
from aforesaid.store.postgres.connection import (
    Breaker,
    Options,
    Pool,
    can_be_repeated,
    is_distributed,
    is_gone,
    shown,
    translate,
    translated,
)
from aforesaid.store.postgres.queries import SNAPSHOT, WRITING, Queries, opening
from aforesaid.store.postgres.transaction import Continuation, WriteTransaction
from aforesaid.store.sql import Migration, steps_of

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

    async def write(
        self,
        spaces: Sequence[str],
        who: str,
        work: Callable[[WriteTransaction], Awaitable[T]],
        at_once: Continuation | None = None,
    ) -> T:
        """Run a change that holds the rows of its spaces, exactly once, even if the connection breaks.

        A transaction whose commit was not answered may have happened or not. Whoever asks again waits for the same
        rows, so it is over by then, and its mark says what became of it. Two that write to the same space at the same
        time have different names (`who`), because each leaves one mark.

        `at_once` is the same change as one round trip, which is tried first. It leaves no mark, but what it stores is
        found, and stops it if it arrives when it has been made in the other way.
        """
        ordered = sorted(set(spaces))
        writer = f"{self._name}/{who}"
        self._batches += 1
        batch = self._batches
        quick, unheard = at_once, False
        made: list[T] = []

        async def committed(queries: Queries) -> T | None:
            if made and await queries.value(_COMMITTED, ordered[0], writer) == batch:
                return made[-1]
            return cast("T | None", await at_once.found(queries)) if at_once is not None and unheard else None

        async def attempt(_: float) -> T:
            nonlocal quick, unheard
            async with self.pool.connection() as connection:
                if quick is not None and not (self.pool.distributed or self.pool.pooled):
                    tried, quick, unheard = quick, None, True
                    try:
                        done = await tried.store(Queries(connection, [], self._answer_seconds))
                    except psycopg.Error as error:
                        unheard = is_gone(error)
                        raise
                    unheard = False
                    if done is not None:
                        return cast("T", done)
                queries = self._queries(connection, WRITING, ordered[0] if len(ordered) == 1 else None)
                transaction = WriteTransaction(queries, ordered)
                try:
                    if made or unheard:
                        await transaction.begin()
                        if (before := await committed(queries)) is not None:
                            await queries.finish(keep=False)
                            return before
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


TABLES: Final = (
    *("space", "writer", "person", "thread", "session", "log", "summary", "summary_source", "memory", "memory_source"),
    *("memory_version", "facts", "tombstone", "derived", "setting", "audit", "spending", "cursor", "agenda"),
    *("embedder", "embedding", "note_embedding", "metadata", "receipt", "fact"),
)
"""All tables, those that others refer to before these."""

_LOCAL_TABLES: Final = """
SELECT name FROM unnest($1::text[]) AS name WHERE to_regclass(name) NOT IN (SELECT logicalrelid FROM pg_dist_partition)
"""
_SEE_ALL: Final = "SELECT set_config('aforesaid.reach', 'all', true)"
_HAS_CITUS: Final = "SELECT to_regproc('create_distributed_table') IS NOT NULL"
_HAS_TABLES: Final = "SELECT to_regclass('aforesaid_schema') IS NOT NULL"
_HAS_SPACES: Final = "SELECT EXISTS (SELECT 1 FROM space)"


def citus_statements() -> list[str]:
    """Return what is run once, in a database on a coordinator of Citus that Aforesaid has opened before."""
    first, *others = TABLES
    return [f"SELECT create_distributed_table('{first}', 'space');", *map(_beside_the_first, others)]


def _beside_the_first(table: str) -> str:
    return f"SELECT create_distributed_table('{table}', 'space', colocate_with => '{TABLES[0]}');"


async def distribute_new_tables(connection: Connection) -> None:
    """Distribute the tables that a later step of the schema added to a distributed database."""
    if await is_distributed(connection):
        found = await connection.execute(_LOCAL_TABLES, (list(TABLES),))
        for (table,) in await found.fetchall():
            await connection.execute(_beside_the_first(table).encode())


async def distribute(dsn: str) -> int:
    """Run the statements, all or none of them, and return how many tables were distributed.

    The tables must exist and be empty, because row-level security hides their rows from Citus. Existing data is copied
    into a distributed database with `aforesaid migrate FROM TO`.
    """
    where = shown(dsn)
    with translated(where, "distributing"):
        async with await psycopg.AsyncConnection.connect(dsn) as connection, connection.transaction():

            async def says(question: str) -> bool:
                row = await (await connection.execute(question.encode())).fetchone()
                return bool(row and row[0])

            await connection.execute(_SEE_ALL)
            if not await says(_HAS_CITUS):
                raise StoreRefused(
                    f"{where} has no Citus: nothing was distributed. An administrator must install it on all machines, "
                    "run CREATE EXTENSION citus in this database, and name the machines with citus_add_node"
                )
            if not await says(_HAS_TABLES):
                raise InvalidInput(f"{where} has no tables yet: open it once, with: aforesaid status --store {where}")
            if await says(_HAS_SPACES):
                raise InvalidInput(
                    f"{where} holds messages already: distribute an empty database, then copy into it with "
                    "aforesaid migrate FROM TO"
                )
            for statement in citus_statements():
                await connection.execute(statement.encode())
    return len(TABLES)


async def fill_checksums(dsn: str) -> int | None:
    """Compute the checksums of rows that have none, and return how many; None where the tables are not distributed.

    An earlier version added the column of checksums without filling it on the workers.
    """
    with translated(shown(dsn), "filling checksums of"):
        async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
            if not await is_distributed(connection):
                return None
            async with connection.transaction():
                await connection.execute("SET LOCAL citus.propagate_set_commands = 'local'")
                await connection.execute("SET LOCAL aforesaid.reach = 'all'")
                updates = [await connection.execute(CHECKSUMS.fill(table).encode()) for table in CHECKSUMS.columns]
                return sum(update.rowcount for update in updates)


_LOCK: Final = 0x52436C74
"""The number of the advisory lock that is held while a step runs (the letters RClt, kept from the first version)."""
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS aforesaid_schema (
    step integer PRIMARY KEY,
    name text NOT NULL,
    needs integer NOT NULL,
    at timestamptz NOT NULL DEFAULT now()
)
"""
_RENAME: Final = """
DO $$
DECLARE
    old text;
BEGIN
    IF to_regclass('aforesaid_schema') IS NULL THEN
        SELECT table_name INTO old FROM information_schema.columns
         WHERE table_schema = current_schema() AND table_name LIKE '%\\_schema'
         GROUP BY table_name HAVING array_agg(column_name::text ORDER BY column_name) = ARRAY['at', 'name', 'needs', 'step'];
        IF old IS NOT NULL THEN
            EXECUTE format('ALTER TABLE %I RENAME TO aforesaid_schema', old);
        END IF;
    END IF;
END
$$
"""
"""Finds the table of steps by its columns where an earlier version made it under another name."""
_THERE: Final = "SELECT to_regclass('aforesaid_schema') IS NOT NULL"
_DONE: Final = "SELECT coalesce(max(step), 0), coalesce(max(needs), 0) FROM aforesaid_schema"
_EXTENSION: Final = re.compile(rb"^CREATE EXTENSION IF NOT EXISTS (\w+)", re.MULTILINE)
_NOTE: Final = "INSERT INTO aforesaid_schema (step, name, needs) VALUES ($1, $2, $3)"


def migrations() -> tuple[Migration, ...]:
    return steps_of("aforesaid.store.postgres")


async def migrate(connection: Connection, where: str) -> None:
    """Apply the steps that the database lacks, each in a transaction. Several processes may try at once."""
    if await _is_current(connection, where):
        return
    async with _locked(connection):
        await connection.execute(_RENAME)
        await connection.execute(_TABLE)
        distributed = await is_distributed(connection)
    for step in migrations():
        async with _locked(connection):
            if step.number <= await _version(connection, where):
                continue
            if distributed:
                # Otherwise `SET LOCAL aforesaid.reach` in a step would not reach the workers, and they would hide all rows.
                await connection.execute("SET LOCAL citus.propagate_set_commands = 'local'")
            for statement in statements(step.sql):
                if not await _is_there(connection, statement):
                    await connection.execute(statement)
            await distribute_new_tables(connection)
            await connection.execute(_NOTE, (step.number, step.name, step.needs))


@asynccontextmanager
async def _locked(connection: Connection) -> AsyncIterator[None]:
    """Hold the lock for one transaction. Behind a pooler, a lock of the session would stay with the pooler's session."""
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", (_LOCK,))
        yield


def statements(sql: str) -> list[bytes]:
    """Split a step into its statements; they end with a semicolon at the end of a line, outside of $$ … $$."""
    found, current, quoted = [], "", False
    for line in sql.splitlines(keepends=True):
        current += line
        quoted ^= line.count("$$") % 2 == 1
        if not quoted and line.split("--", maxsplit=1)[0].rstrip().endswith(";"):
            found.append(current.encode())
            current = ""
    return found


async def _is_there(connection: Connection, statement: bytes) -> bool:
    """Tell whether a statement creates an extension that is there.

    Citus repeats CREATE EXTENSION IF NOT EXISTS on the workers, which refuse everybody but the extension's owner.
    """
    extension = _EXTENSION.search(statement)
    if extension is None:
        return False
    found = await connection.execute("SELECT 1 FROM pg_extension WHERE extname = $1", (extension[1].decode(),))
    return await found.fetchone() is not None


async def _is_current(connection: Connection, where: str) -> bool:
    row = await (await connection.execute(_THERE)).fetchone()
    return bool(row and row[0]) and await _version(connection, where) >= migrations()[-1].number


async def _version(connection: Connection, where: str) -> int:
    row = await (await connection.execute(_DONE)).fetchone()
    version, needs = row or (0, 0)
    newest = migrations()[-1].number
    if needs > newest:
        raise StoreTooNew(
            f"{where} was changed by a newer Aforesaid (schema {version} needs {needs}; this version knows {newest}): "
            "install that version or a later one"
        )
    return int(version)
