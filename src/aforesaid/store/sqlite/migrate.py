"""Bringing a file to the schema that this version speaks."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

import apsw

from aforesaid.errors import StoreRefused, StoreTooNew
from aforesaid.store.steps import Migration, steps_of

APPLICATION_ID: Final = 0x52436C74
"""Marks a file as ours in SQLite's header (the letters RClt, kept from the first version)."""


def migrations() -> tuple[Migration, ...]:
    """Return all steps in order."""
    return steps_of("aforesaid.store.sqlite")


@cache
def whole_schema() -> Migration:
    """Return the sum of the steps up to a number, as one script that creates it eight times as fast as they do.

    `tools/sqlite_schema.py` writes it. It may be older than the newest step: later steps are applied after it.
    """
    sql = (files("aforesaid.store.sqlite") / "schema.sql").read_text(encoding="utf-8")
    number = re.match(r"-- schema (\d+)", sql)
    assert number is not None  # noqa: S101 - a file of this package
    return Migration(int(number[1]), "schema", sql)


def migrate(connection: apsw.Connection, path: Path) -> None:
    """Apply the steps that the file lacks, all in one transaction. Several processes may try at once."""
    newest = migrations()[-1].number
    if schema_version(connection, path) == newest:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        current = schema_version(connection, path)
        whole = whole_schema()
        if current == 0 and whole.number <= newest:
            connection.execute(whole.sql)
            current = whole.number
        for step in migrations():
            if step.number > current:
                connection.execute(step.sql)
        connection.pragma("user_version", newest)
        connection.pragma("application_id", APPLICATION_ID)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def schema_version(connection: apsw.Connection, path: Path) -> int:
    """Return the schema of a file of ours, 0 for an empty one. Raises for all others, and for newer ones."""
    version, mark, tables = _read_header(connection)
    newest = migrations()[-1].number
    if mark == APPLICATION_ID:
        if version > newest:
            raise StoreTooNew(
                f"{path} was written by a newer Aforesaid (schema {version}; this version knows {newest}): "
                "install that version or a later one"
            )
        return version
    if mark == version == tables == 0:
        return 0
    raise StoreRefused(f"{path} is a SQLite database, but not one of Aforesaid's; choose another file")


def _read_header(connection: apsw.Connection) -> tuple[int, int, int]:
    """Return version, mark and number of tables, all of one moment: another process may be creating them."""
    alone = not connection.in_transaction
    if alone:
        connection.execute("BEGIN")
    try:
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
        return int(connection.pragma("user_version")), int(connection.pragma("application_id")), int(tables)
    finally:
        if alone and connection.in_transaction:
            connection.execute("ROLLBACK")
