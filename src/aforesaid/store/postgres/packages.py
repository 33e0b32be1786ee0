"""What PostgreSQL needs beside the rest. Imported before everything else here: where it is missing, that is said."""

from __future__ import annotations

from aforesaid.errors import StoreRefused
from aforesaid.extras import how_to_install

try:
    from pgvector import HalfVector, Vector
    from psycopg import sql
except ImportError as missing:  # pragma: no cover - tested in a process that cannot import it
    raise StoreRefused(f"PostgreSQL needs more packages; {how_to_install('postgres')}") from missing

__all__ = ["HalfVector", "Vector", "sql"]
