"""Distributing the tables over machines with Citus. Every key begins with the space, so they are distributed by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import psycopg

from aforesaid.errors import InvalidInput, StoreRefused
from aforesaid.store.checksums import POSTGRES as CHECKSUMS
from aforesaid.store.postgres.connection import is_distributed, shown, translated

if TYPE_CHECKING:
    from aforesaid.store.postgres.connection import Connection

TABLES: Final = (
    *("space", "writer", "person", "thread", "session", "log", "summary", "summary_source", "memory", "memory_source"),
    *("memory_version", "facts", "forgotten", "derived", "setting", "audit", "spending", "walk", "agenda", "embedder"),
    *("meaning", "note_meaning", "mark", "receipt"),
)
"""All tables, those that others refer to before these."""

_LOCAL_TABLES: Final = """
SELECT name FROM unnest($1::text[]) AS name WHERE to_regclass(name) NOT IN (SELECT logicalrelid FROM pg_dist_partition)
"""
_SEE_ALL: Final = "SELECT set_config('aforesaid.reach', 'all', true)"
_HAS_CITUS: Final = "SELECT to_regproc('create_distributed_table') IS NOT NULL"
_HAS_TABLES: Final = "SELECT to_regclass('aforesaid_schema') IS NOT NULL"
_HAS_SPACES: Final = "SELECT EXISTS (SELECT 1 FROM space)"


def statements() -> list[str]:
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
            for statement in statements():
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
