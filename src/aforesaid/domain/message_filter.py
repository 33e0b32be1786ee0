"""Which messages of a scope a read or a search returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aforesaid.domain import checks
from aforesaid.domain.literals import Role
from aforesaid.domain.message import Message


@dataclass(frozen=True, slots=True)
class MessageFilter:
    """Conditions that a message must all fulfil. None sets no condition."""

    role: Role | None = None
    author: str | None = None
    """The id of whoever wrote it."""
    since: int | None = None
    """Said at this time or later, in microseconds since 1970."""
    until: int | None = None
    """Said before this time, in microseconds since 1970."""

    def holds(self, message: Message) -> bool:
        """Return whether a message fulfils all conditions."""
        if self.role not in (None, message.role) or self.author not in (None, message.author):
            return False
        if self.since is None and self.until is None:
            return True
        at = checks.microseconds(message.at, "at")
        return (self.since is None or self.since <= at) and (self.until is None or at < self.until)


EVERY_MESSAGE: Final = MessageFilter()
"""No condition at all."""


def message_filter(*, role: Role | None, author: object, since: object, until: object) -> MessageFilter:
    """Validate conditions and return the filter. Raises InvalidInput."""
    return MessageFilter(
        None if role is None else checks.role(role),
        None if author is None else checks.identifier(author, "the author", "author"),
        None if since is None else checks.microseconds(since, "since", "since"),
        None if until is None else checks.microseconds(until, "until", "until"),
    )
