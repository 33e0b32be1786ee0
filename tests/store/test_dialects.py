"""One SQL text serves SQLite and PostgreSQL."""

from __future__ import annotations

from aforesaid.store.dialects import for_postgres, for_sqlite

TEXT = "SELECT [[y.chunks[1] ~ json_extract(y.chunks, '$[0]')]] FROM summary y WHERE [[y.space = $1 AND ]]y.id = $2"


def test_a_text_has_parts_for_each_database() -> None:
    assert for_postgres(TEXT) == "SELECT y.chunks[1] FROM summary y WHERE y.space = $1 AND y.id = $2"
    assert for_sqlite(TEXT) == "SELECT json_extract(y.chunks, '$[0]') FROM summary y WHERE y.id = ?2"
