"""What every change needs: the connection that holds the write lock, the numbers of names, and the audit log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import apsw

from aforesaid.domain.clock import now
from aforesaid.domain.scope import Scope
from aforesaid.errors import NotFound, quoted
from aforesaid.store.sqlite.names import Names

_OWNER: Final = "SELECT id FROM person WHERE space = ? AND name = ? AND owner = 1"
_AUDIT: Final = "INSERT INTO audit (at, space, user, actor, action, subject) VALUES (?, ?, ?, ?, ?, ?)"


@dataclass(frozen=True, slots=True)
class Unit:
    """The inside of one write transaction."""

    connection: apsw.Connection
    names: Names

    def audit(self, scope: Scope, actor: str, action: str, subject: str) -> None:
        """Write down who did what."""
        self.connection.execute(_AUDIT, (now(), scope.space, scope.user, actor, action, subject))

    def known_owner(self, scope: Scope) -> int:
        """Return the user's number without making a user of a name that nobody has heard of."""
        found: int | None = self.connection.execute(_OWNER, (scope.space, scope.user)).get
        if found is None:
            raise NotFound(f"there is no user {quoted(scope.user)} in the space {quoted(scope.space)}")
        return found
