"""What PostgreSQL needs beside the rest. Imported before everything else here: where it is missing, that is said."""

from __future__ import annotations

from recollect.errors import StoreUnavailable

try:
    import psycopg  # noqa: F401 - only whether it is there
    from pgvector import HalfVector, Vector
except ImportError as missing:  # pragma: no cover - tested in a process that cannot import it
    raise StoreUnavailable("PostgreSQL needs more packages: pip install 'recollect[postgres]'") from missing

__all__ = ["HalfVector", "Vector"]
