"""What rules expect of users and messages before they change anything."""

from __future__ import annotations

from collections.abc import Iterable

from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope
from aforesaid.errors import NotFound, SourcesChanged, quoted
from aforesaid.store.rules.driving import Rule, ask
from aforesaid.store.rules.lookups import IsUser


def expect_user(scope: Scope) -> Rule[None]:
    """Refuse a user who owns nothing."""
    if not (yield from ask(IsUser(scope))):
        raise NotFound(f"there is no user {quoted(scope.user)} in the space {quoted(scope.space)}")


def expect_newest(messages: Iterable[Message]) -> None:
    """Raise SourcesChanged if one of the messages has a newer version or was taken back."""
    for message in messages:
        if message.replaced:
            raise SourcesChanged(f"message {message.seq} was edited or taken back since; read it again")
