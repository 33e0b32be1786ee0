"""What every change needs: the connection that holds the write lock, the numbers of names, and the audit log."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import apsw

from aforesaid.domain.checks import now
from aforesaid.domain.scope import Scope
from aforesaid.store.checksums import SQLITE as CHECKSUMS
from aforesaid.store.dialects import for_sqlite
from aforesaid.store.sqlite.names import Names
from aforesaid.store.sqlite.rows import bound

_NEXT_NUMBER: Final = "(SELECT 1 + coalesce(max(seq), 0) AS id FROM sqlite_sequence WHERE name = '{}')"
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
    f"FROM {_NEXT_NUMBER.format('audit')} AS new",
)


@dataclass(frozen=True, slots=True)
class WriteTransaction:
    """The inside of one write transaction."""

    connection: apsw.Connection
    names: Names

    def later(self, text: str, *values: Any) -> None:  # noqa: ANN401 - whatever the text binds
        """Run a statement for both databases."""
        self.connection.execute(for_sqlite(text), bound(values))

    def insert(self, table: str, row: Mapping[str, Any], *, replacing: tuple[str, ...] = ()) -> None:
        """Insert a row with its checksum. `replacing` is the key of a row that it may take the place of."""
        self.connection.execute(CHECKSUMS.insert_or_replace(table, tuple(row), replacing), bound(row.values()))

    def update(self, table: str, where: str, key: tuple[Any, ...], **values: Any) -> None:  # noqa: ANN401
        """Set columns of the rows that a condition finds, and their checksums. `key` is what the condition binds."""
        self.connection.execute(
            CHECKSUMS.update_bound(table, where, len(key), tuple(values)), (*key, *bound(values.values()))
        )

    def number(self, table: str, _: str, least: int = 0) -> int:
        """Return the number of a new row, which is at least `least`."""
        number: int = self.connection.execute(f"SELECT id FROM {_NEXT_NUMBER.format(table)}").get
        return max(least, number)

    def space(self, _: str) -> dict[str, str]:
        """Return the column that names the space of a row: there is none."""
        return {}

    def owner(self, space: str, user: str) -> int:
        """Return the number of a user."""
        return self.names.owner(space, user, now())

    def whose(self, space: str, user: str) -> dict[str, int]:
        """Return the column that names the owner of a row."""
        return {"owner": self.owner(space, user)}

    def person(self, space: str, name: str) -> int:
        """Return the number of a person."""
        return self.names.author(space, name, now())

    def thread(self, space: str, name: str) -> int:
        """Return the number of a thread, which is stored if it is new."""
        return self.names.thread(space, name)

    def array(self, values: Sequence[str]) -> str:
        """Return what a column holds of several texts: JSON."""
        return json.dumps(values, ensure_ascii=False)

    def terms(self, _: str) -> dict[str, Any]:
        """Return the column with the words of a note: there is an index instead."""
        return {}

    def own(self, scope: Scope, at: int) -> None:
        """Write down that something belongs to a user."""
        self.names.owner(scope.space, scope.user, at)

    def audit(self, scope: Scope, actor: str, action: str, subject: str, at: int | None = None) -> None:
        """Add a row to the audit log."""
        when = now() if at is None else at
        self.connection.execute(_AUDIT, (when, scope.space, scope.user, actor, action, subject))
