"""One SQL text serves SQLite and PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import apsw

from aforesaid.domain.scope import Scope
from aforesaid.store.messages import Messages
from aforesaid.store.sql import for_postgres, for_sqlite
from aforesaid.store.sqlite.connection import Options, connect, migrate
from aforesaid.store.sqlite.rows import answered

TEXT = "SELECT [[y.chunks[1] ~ json_extract(y.chunks, '$[0]')]] FROM summary y WHERE [[y.space = $1 AND ]]y.id = $2"


def test_a_text_has_parts_for_each_database() -> None:
    assert for_postgres(TEXT) == "SELECT y.chunks[1] FROM summary y WHERE y.space = $1 AND y.id = $2"
    assert for_sqlite(TEXT) == "SELECT json_extract(y.chunks, '$[0]') FROM summary y WHERE y.id = ?2"


def test_parts_can_be_on_lines_of_their_own() -> None:
    text = "SELECT 1\n[[FROM space\n~ FROM person]]"
    assert for_postgres(text) == "SELECT 1\nFROM space"
    assert for_sqlite(text) == "SELECT 1\nFROM person"


def test_sqlite_compiles_a_statement_once_whatever_its_values(path: Path) -> None:
    connection = connect(path, Options(), create=True)
    migrate(connection, path)
    compiled: list[int] = []

    def note(operation: int, *_: str | None) -> int:
        compiled.append(operation)  # SQLite asks for rights while it compiles, and not while it runs
        return apsw.SQLITE_OK

    connection.authorizer = note
    answered(connection, Messages(Scope.of("ann")).answer())
    assert compiled
    compiled.clear()
    answered(connection, Messages(Scope.of("bob")).answer())
    connection.close()
    assert not compiled
