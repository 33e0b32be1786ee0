"""Write src/aforesaid/store/sqlite/schema.sql: the schema after all steps, as one script for new files."""

from __future__ import annotations

from pathlib import Path

import apsw

from aforesaid.store.sqlite.connection import migrations

TARGET = Path(__file__).parent.parent / "src/aforesaid/store/sqlite/schema.sql"
HEADER = """\
-- schema {number}
-- The sum of the steps in migrations/ up to this number, for files that are created. tools/sqlite_schema.py writes it.
"""


def script() -> str:
    """Return the script. SQLite itself creates the tables inside its indexes, and its own table of sequences."""
    connection = apsw.Connection(":memory:")
    for name in ("index_terms", "row_checksum"):
        connection.create_scalar_function(name, lambda *_: None)
    for step in migrations():
        connection.execute(step.sql)
    made = connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid").fetchall()
    virtual = [name for name, sql in made if str(sql).startswith("CREATE VIRTUAL TABLE")]
    inner = {f"{name}_{part}" for name in virtual for part in ("data", "idx", "config")} | {"sqlite_sequence"}
    statements = [f"{sql};\n" for name, sql in made if name not in inner]
    return HEADER.format(number=migrations()[-1].number) + "".join(statements)


if __name__ == "__main__":
    TARGET.write_text(script(), encoding="utf-8")
    print(f"wrote {TARGET}")
