"""Bringing a database to the schema that this version speaks.

Steps only ever add: tables, columns that have a default, indexes. So a process that has not been upgraded yet goes on
working beside one that has, and the steps run while both are in use. A step that would break older processes says so
in its first line: `-- needs 7` means that they must know at least step 7.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from aforesaid.errors import StoreTooNew
from aforesaid.store.postgres.citus import distribute_new_tables
from aforesaid.store.postgres.connection import is_distributed
from aforesaid.store.steps import Migration, steps_of

if TYPE_CHECKING:
    from aforesaid.store.postgres.connection import Connection

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
    """Return all steps in order."""
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
