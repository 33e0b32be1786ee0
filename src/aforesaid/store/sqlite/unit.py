"""What every change needs: the connection that holds the write lock, the numbers of names, and the audit log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import apsw

from aforesaid.domain.clock import now
from aforesaid.domain.scope import Scope
from aforesaid.store.sqlite.names import Names

_AUDIT: Final = "INSERT INTO audit (at, space, user, actor, action, subject) VALUES (?, ?, ?, ?, ?, ?)"


@dataclass(frozen=True, slots=True)
class Unit:
    """The inside of one write transaction."""

    connection: apsw.Connection
    names: Names

    def audit(self, scope: Scope, actor: str, action: str, subject: str, at: int | None = None) -> None:
        """Add a row to the audit log."""
        when = now() if at is None else at
        self.connection.execute(_AUDIT, (when, scope.space, scope.user, actor, action, subject))
