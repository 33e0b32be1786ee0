"""Rules about users that other rules share."""

from __future__ import annotations

from aforesaid.domain.scope import Scope
from aforesaid.errors import NotFound, quoted
from aforesaid.store.rules.driving import Rule, ask
from aforesaid.store.rules.lookups import IsUser


def expect_user(scope: Scope) -> Rule[None]:
    """Refuse a user who owns nothing."""
    if not (yield from ask(IsUser(scope))):
        raise NotFound(f"there is no user {quoted(scope.user)} in the space {quoted(scope.space)}")
