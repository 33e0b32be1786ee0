"""One SQL text for SQLite and PostgreSQL, where their tables differ by their keys alone.

PostgreSQL has the space in every table, and the names of users and threads; SQLite has their numbers. So a part of a
text can be written for each: `[[for PostgreSQL ~ for SQLite]]`, or `[[for PostgreSQL]]`. Both know booleans, `FILTER`
and `IS DISTINCT FROM`. Values are bound to `$1`, `$2`, …
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_PART: Final = re.compile(r"\[\[(.*?)(?:\s~\s(.*?))?\]\]", re.DOTALL)
_VALUE: Final = re.compile(r"\$(\d+)")


@lru_cache(maxsize=4_000)
def for_postgres(text: str) -> str:
    """Return the text for PostgreSQL."""
    return _PART.sub(lambda part: part[1], text)


@lru_cache(maxsize=4_000)
def for_sqlite(text: str) -> str:
    """Return the text for SQLite."""
    return _VALUE.sub(r"?\1", _PART.sub(lambda part: part[2] or "", text))
