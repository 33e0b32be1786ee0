"""What every change needs: the connection that holds the write lock, the numbers of names, and the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import apsw

from aforesaid.domain.clock import now
from aforesaid.domain.scope import Scope
from aforesaid.store.checksums import SQLITE as CHECKSUMS
from aforesaid.store.sqlite.names import Names

NEXT_NUMBER: Final = "(SELECT 1 + coalesce(max(seq), 0) AS id FROM sqlite_sequence WHERE name = '{}')"
"""The number that a new row of a table gets, as a table of one row. None is ever given twice."""
_AUDIT: Final = CHECKSUMS.insert_selected(
    "audit",
    {
        "id": "new.id",
        "at": "$1",
        "space": "$2",
        "user": "$3",
        "actor": "$4",
        "action": "$5",
        "subject": "$6",
    },
    f"FROM {NEXT_NUMBER.format('audit')} AS new",
)


@cache
def _insert(table: str, names: tuple[str, ...], replacing: tuple[str, ...]) -> str:
    return CHECKSUMS.insert(table, names, CHECKSUMS.replacing(table, *replacing) if replacing else "")


@dataclass(frozen=True, slots=True)
class Unit:
    """The inside of one write transaction."""

    connection: apsw.Connection
    names: Names

    def insert(self, table: str, row: Mapping[str, Any], *, replacing: tuple[str, ...] = ()) -> int:
        """Insert a row with its checksum, and return its number. `replacing` is the key of a row that may be there."""
        self.connection.execute(_insert(table, tuple(row), replacing), tuple(row.values()))
        return self.connection.last_insert_rowid()

    def number(self, table: str, least: int) -> int | None:
        """Return the number of a new row that must have at least a number; None where SQLite may choose."""
        if not least:
            return None
        number: int = self.connection.execute(f"SELECT id FROM {NEXT_NUMBER.format(table)}").get
        return max(least, number)

    def audit(self, scope: Scope, actor: str, action: str, subject: str, at: int | None = None) -> None:
        """Add a row to the audit log."""
        when = now() if at is None else at
        self.connection.execute(_AUDIT, (when, scope.space, scope.user, actor, action, subject))
